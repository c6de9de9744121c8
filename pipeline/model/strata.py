"""Strata: who sent stack samples, as far as it may matter to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import orjson
import xxhash

from pipeline.model.arrays import FloatArray, IntArray


@dataclass(frozen=True, slots=True, order=True)
class Stratum:
    """Samples of one host, or of all hosts that have the same labels, while they run one release."""

    host: str = ""  # empty: hosts are not told apart
    release: str = ""  # empty: not known
    labels: tuple[tuple[str, str], ...] = ()  # name and value, sorted by name: region, machine type, ...

    @classmethod
    def of(cls, labels: Mapping[str, str], *, host: str = "", release: str = "") -> Stratum:
        """Return the stratum of labels in any order."""
        return cls(host, release, tuple(sorted(labels.items())))

    @property
    def id(self) -> int:
        """A 64-bit hash of all that it says; 0 where it says nothing."""
        if not (self.host or self.release or self.labels):
            return 0
        return xxhash.xxh3_64_intdigest(orjson.dumps([self.host, self.release, self.labels]))


@dataclass(frozen=True, slots=True)
class StratumCounts:
    """Counts of series by stratum and stack window in coordinate form, four parallel arrays: (entries,)."""

    series: IntArray  # row of the series
    stratum: IntArray  # row of the stratum
    window: IntArray  # stack windows from the start
    samples: FloatArray
