"""Instruments of telemetry: counters, histograms, their samples, and values of labels within a bound."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from prometheus_client import Counter, Histogram
from prometheus_client.registry import Collector

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


def counter(name: str, *labels: str) -> Counter:
    """Return a counter; threads may share it. Its method ``labels`` shows a series before the first event."""
    return Counter(name, "", labels, registry=None)


def histogram(name: str, bounds: Sequence[float], *labels: str) -> Histogram:
    """Return a histogram whose buckets have these upper bounds, beside one for all; threads may share it."""
    return Histogram(name, "", labels, registry=None, buckets=bounds)


def samples_of(*instruments: Collector) -> list[Sample]:
    """Return the samples of instruments, except the times at which the series began."""
    return [
        (sample.name, _labels(sample.labels), sample.value)
        for instrument in instruments
        for family in instrument.collect()
        for sample in family.samples
        if not sample.name.endswith("_created")
    ]


def _labels(labels: Mapping[str, str]) -> Mapping[str, str]:
    """Return labels with a bucket's bound as 60 or 1382400; the library writes 60.0 and 1.3824e+06."""
    bound = labels.get("le", "+Inf")
    return labels if bound == "+Inf" else {**labels, "le": f"{float(bound):.15g}"}
