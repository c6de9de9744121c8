"""Instruments of telemetry: histograms, and values of labels within a bound."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Mapping, Sequence

Sample = tuple[str, Mapping[str, str], float]
"""Name without the prefix, labels, value."""

OTHER = "(other)"
"""Value of a label that stands for all beyond its bound."""


class LabelBound:
    """Values of one label that are shown by themselves, the first ones that come; the rest is OTHER.

    Prometheus keeps a series for each value for as long as it keeps anything: so what comes from messages
    must not decide how many there are.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._shown: set[str] = set()

    def of(self, value: str) -> str:
        """Return the value as the label shows it."""
        if value in self._shown:
            return value
        if len(self._shown) >= self._most:
            return OTHER
        self._shown.add(value)
        return value


class Histogram:
    """Values counted by size, so that Prometheus can add up processes; threads may share it.

    ``bounds`` are the upper bounds of the buckets, ascending; the last one, which holds all, comes by itself.
    """

    def __init__(self, name: str, bounds: Sequence[float], labels: Sequence[str] = ()) -> None:
        self._name = name
        self._bounds = tuple(bounds)
        self._labels = tuple(labels)
        self._counts: dict[tuple[str, ...], list[int]] = {}
        self._sums: dict[tuple[str, ...], float] = {}
        self._lock = threading.Lock()

    def show(self, *labels: str) -> None:
        """Show these values of the labels before any is counted: else the first increase is not seen."""
        with self._lock:
            self._of(labels)

    def observe(self, value: float, *labels: str) -> None:
        """Count a value; a negative one, which only clocks that differ can bring, as 0."""
        value = max(0.0, value)
        with self._lock:
            self._of(labels)[bisect_left(self._bounds, value)] += 1
            self._sums[labels] += value

    def samples(self) -> list[Sample]:
        """Return the buckets, added up from the smallest, with sum and count."""
        with self._lock:
            found = [(labels, counts.copy(), self._sums[labels]) for labels, counts in self._counts.items()]
        samples: list[Sample] = []
        for values, counts, total in found:
            labels = dict(zip(self._labels, values, strict=True))
            so_far = 0
            for bound, count in zip((*self._bounds, None), counts, strict=True):
                so_far += count
                le = "+Inf" if bound is None else f"{bound:.15g}"
                samples.append((f"{self._name}_bucket", {**labels, "le": le}, so_far))
            samples += [(f"{self._name}_sum", labels, total), (f"{self._name}_count", labels, so_far)]
        return samples

    def _of(self, labels: tuple[str, ...]) -> list[int]:
        if labels not in self._counts:
            self._counts[labels] = [0] * (len(self._bounds) + 1)
            self._sums[labels] = 0.0
        return self._counts[labels]
