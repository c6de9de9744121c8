"""Strata: the senders of stack samples, with the properties that may affect the samples."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import xxhash

from pipeline.model.arrays import FloatArray, IntArray
from pipeline.model.series import SeriesKey

_SEPARATOR = "="

RATE_LABEL = "rate_hz"
"""Label of a stratum's sampling rate."""


@dataclass(frozen=True, slots=True, order=True)
class Stratum:
    """Samples of one host, or of all hosts that have the same labels, while they run one release."""

    host: str = ""  # empty: hosts are counted together
    release: str = ""  # empty: unknown
    labels: tuple[tuple[str, str], ...] = ()  # name and value, sorted by name: region, machine type, ...

    @classmethod
    def of(cls, labels: Mapping[str, str], *, host: str = "", release: str = "") -> Stratum:
        """Return the stratum of labels in any order."""
        return cls(host, release, tuple(sorted(labels.items())))

    @classmethod
    def of_texts(cls, labels: Sequence[str], *, host: str = "", release: str = "") -> Stratum:
        """Return the stratum of labels as ``texts`` spells them."""
        pairs = (text.partition(_SEPARATOR) for text in labels)
        return cls(host, release, tuple((name, value) for name, _, value in pairs))

    @property
    def texts(self) -> tuple[str, ...]:
        """The labels as ``name=value``; separators are removed from names."""
        return tuple(f"{name.replace(_SEPARATOR, '-')}{_SEPARATOR}{value}" for name, value in self.labels)

    @property
    def rate_hz(self) -> float:
        """Samples per second of each of its CPUs; 0 if unknown."""
        try:
            rate = float(dict(self.labels).get(RATE_LABEL, 0))
        except ValueError:
            return 0.0
        return rate if 0 < rate < math.inf else 0.0

    @property
    def row(self) -> dict[str, Any]:
        """The stratum as a row of the store."""
        return {
            "stratum": str(self.id),
            "host": self.host,
            "release": self.release,
            "labels": list(self.texts),
        }

    @property
    def id(self) -> int:
        """A 64-bit hash of all fields; 0 if all are empty."""
        if not (self.host or self.release or self.labels):
            return 0
        return xxhash.xxh3_64_intdigest(repr((self.host, self.release, self.texts)).encode())


@dataclass(frozen=True, slots=True)
class StratumCounts:
    """Counts of series by stratum and stack window in coordinate form, four parallel arrays: (entries,)."""

    series: IntArray  # row of the series
    stratum: IntArray  # row of the stratum
    window: IntArray  # stack windows from the start
    samples: FloatArray


@final
@dataclass(frozen=True, slots=True)
class StrataMatrix:
    """The senders of a service's samples in a span of time.

    Window j starts at ``start + j * resolution_s``. Counts of series are of those coarser windows that lie
    wholly inside: of the time from ``counted[0]`` to ``counted[1]``, whatever was asked for (0 if nothing).
    """

    start: float
    resolution_s: float
    strata: tuple[Stratum, ...]
    totals: FloatArray  # (strata, windows) all samples
    series: tuple[SeriesKey, ...]
    samples: FloatArray  # (series, strata)
    counted: tuple[float, float] = (0.0, 0.0)

    @property
    def counted_totals(self) -> FloatArray:
        """(strata,) all samples in the windows of the counts of series."""
        first, end = (math.ceil((time - 1e-6 - self.start) / self.resolution_s) for time in self.counted)
        counted: FloatArray = self.totals[:, max(first, 0) : max(end, 0)].sum(axis=1)
        return counted
