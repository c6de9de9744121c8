"""Samples of two releases in a store or a dataset folder, and their comparison."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pipeline.analysis.mix.terms import RELEASE_LABELS, release_of, runs
from pipeline.analysis.stacks import index_stacks, mean_depths, membership
from pipeline.backtest.dataset import read_dataset
from pipeline.counting.count import STRATUM_STACK_WINDOWS
from pipeline.files.listing import listed
from pipeline.model import FloatArray, SeriesKey, StrataMatrix
from pipeline.model.errors import ConfigError
from pipeline.releases.gcpu import (
    Changes,
    Contrast,
    Decided,
    GcpuCompareConfig,
    Matched,
    Samples,
    State,
    collect,
    decide,
    explained_by,
    match,
    measure,
)
from pipeline.storage.arrays import ArrayStore
from pipeline.storage.interface import StackQuery, Store, StrataQuery

_MOST_BLOCKS = 168
"""Most blocks of time, a week of hours: over a longer time several are joined."""


class NotYet(ConfigError):
    """A release or a named host has no samples: a watched one may get some later."""


@dataclass(frozen=True, slots=True)
class SampleSource:
    """Source of samples."""

    store: Store
    service: str
    block_s: float
    origin: float  # start of the first block; blocks begin at multiples from it
    end: float | None  # end of all data; None where data keep arriving

    def start_of(self, moment: float) -> float:
        """Return the start of a moment's block."""
        return self.origin + math.floor((moment - self.origin) / self.block_s) * self.block_s


@dataclass(frozen=True, slots=True)
class Asked:
    """The releases to compare, and the settings of the comparison."""

    baseline: str
    candidate: str
    by: tuple[str, ...] | None
    without: tuple[str, ...]  # hosts
    config: GcpuCompareConfig


@dataclass(frozen=True, slots=True)
class ReleaseComparison:
    """Two releases, and the decision on each series."""

    service: str
    asked: Asked
    matched: Matched
    contrast: Contrast
    decided: Decided
    series: tuple[SeriesKey, ...]
    cause: tuple[int, ...]  # (series,) the change that explains a significant one; its own otherwise
    grouped: bool  # whether stacks were available for that

    @property
    def decision(self) -> State:
        """Slower if a series is that no other one explains; open if any is; else steady."""
        states = self.decided.state
        if any(state == "slower" and self.cause[row] == row for row, state in enumerate(states)):
            return "slower"
        return "open" if "open" in states else "steady"


def of_store(store: Store, service: str, stack_window_s: float) -> SampleSource:
    """Return samples in a store, whose counts by sender span several stack windows each."""
    return SampleSource(store, service, STRATUM_STACK_WINDOWS * stack_window_s, 0.0, None)


def of_folder(path: Path, service: str) -> SampleSource:
    """Return samples of a dataset folder.

    Raises:
        ConfigError: a file is wrong, or the folder is of another service.
    """
    data = read_dataset(path)
    if data.service != service:
        raise ConfigError(f"--service {service}: {path} is of {data.service}")
    if not data.strata:
        raise ConfigError(f"{path}: totals.parquet has no label columns, so nothing says which release ran")
    if data.stratum_samples is None:
        raise ConfigError(f"{path}: strata.parquet is not there, nor has series.parquet label columns")
    windows = (data.end - data.start) / data.stack_window_s
    block_s = data.stack_window_s * max(1, math.ceil(windows / _MOST_BLOCKS))
    return SampleSource(ArrayStore(data), service, block_s, data.start, data.end)


def compare(source: SampleSource, asked: Asked, span: tuple[float, float]) -> ReleaseComparison:
    """Compare two releases in a span of time.

    Raises:
        NotYet: a release, or a host that is left out, has no samples in the span.
        ConfigError: no sender has a label within whose values it is to be compared.
    """
    samples = _read(source, asked, span)
    if asked.without:
        named = np.array([stratum.host in asked.without for stratum in samples.strata], dtype=np.bool_)
        samples = samples.only(~named[samples.stratum])
    matched = match(samples, asked.baseline, asked.candidate, asked.by)
    if matched is None:
        raise NotYet(f"--without {', '.join(asked.without)}: no samples are left of one release")
    contrast = measure(matched.observed)
    decided = decide(contrast, asked.config)
    cause, grouped = _causes(source, matched.span, samples.series, contrast, decided)
    return ReleaseComparison(
        source.service, asked, matched, contrast, decided, samples.series, tuple(cause), grouped
    )


def _read(source: SampleSource, asked: Asked, span: tuple[float, float]) -> Samples:
    """Return the counts of the blocks in which both releases ran, or of those with either."""
    block_s = source.block_s
    last = source.origin + math.ceil((span[1] - source.origin) / block_s) * block_s
    first = _first(source, source.start_of(span[0]), last)
    totals = source.store.counts(StrataQuery(source.service, first, last, block_s, ()))
    old, new = (_samples_of(totals, name) for name in (asked.baseline, asked.candidate))
    for name, samples in ((asked.baseline, old), (asked.candidate, new)):
        if not samples.any():
            raise NotYet(_unknown(source.service, name, totals))
    _check_terms(asked, totals)
    chosen = np.flatnonzero((old > 0) & (new > 0))
    if not len(chosen):
        chosen = np.flatnonzero((old > 0) | (new > 0))
    blocks = np.arange(chosen[0], chosen[-1] + 1)[-_MOST_BLOCKS:]
    starts = (first + blocks * block_s).tolist()
    counted = collect(
        source.store.counts(StrataQuery(source.service, start, start + block_s, block_s)) for start in starts
    )
    if counted is None or not all(counted.of(name).any() for name in (asked.baseline, asked.candidate)):
        counts = f"--service {source.service}: there are totals by release, but no counts of both"
        if source.end is not None:
            raise ConfigError(f"{counts} in that time")
        raise NotYet(f"{counts} in windows of {block_s:g} s: --stack-window should be that of the workers")
    return counted


def _first(source: SampleSource, first: float, last: float) -> float:
    """Return a block before which there are no samples: the requested span may begin years earlier."""
    coarse_s = _MOST_BLOCKS * source.block_s
    if last - first <= coarse_s:
        return first
    there = source.store.counts(StrataQuery(source.service, first, last, coarse_s, ())).totals.any(axis=0)
    return first + coarse_s * int(np.argmax(there)) if there.any() else last - coarse_s


def _check_terms(asked: Asked, totals: StrataMatrix) -> None:
    """Refuse labels and hosts that no sender has."""
    names = {name for stratum in totals.strata for name, _ in stratum.labels}
    labels = sorted(name for name in names if name.lower() not in RELEASE_LABELS)
    for name in asked.by or ():
        if name not in labels:
            raise ConfigError(f"--by {name}: no such label; there are {listed(labels, name)}")
    hosts = sorted({stratum.host for stratum in totals.strata if stratum.host})
    for name in asked.without:
        if name not in hosts:
            raise NotYet(f"--without {name}: no such host; there are {listed(hosts, name)}")


def _samples_of(totals: StrataMatrix, release: str) -> FloatArray:
    """Return the number of a release's samples: (windows,)."""
    rows = [row for row, stratum in enumerate(totals.strata) if runs(stratum, release)]
    samples: FloatArray = totals.totals[rows].sum(axis=0)
    return samples


def _unknown(service: str, name: str, totals: StrataMatrix) -> str:
    per_stratum = totals.totals.sum(axis=1).tolist()
    counts: dict[str, float] = {}
    for stratum, samples in zip(totals.strata, per_stratum, strict=True):
        counts[release_of(stratum)] = counts.get(release_of(stratum), 0.0) + samples
    if not counts:
        return f"--service {service}: no samples whose sender is known in this span"
    names = [known_name or "(none)" for known_name in sorted(counts, key=lambda term: -counts[term])]
    return f"release {name}: no samples of {service} in this span; there are {listed(names, name)}"


def _causes(
    source: SampleSource,
    span: tuple[float, float],
    series: tuple[SeriesKey, ...],
    contrast: Contrast,
    decided: Decided,
) -> tuple[list[int], bool]:
    """Return the change that explains each significant one, by the stacks of the span."""
    cause = list(range(len(series)))
    rows = [row for row, state in enumerate(decided.state) if state in ("slower", "faster")]
    if not rows:
        return cause, True
    stacks = source.store.counts(StackQuery(source.service, (span[0], span[0]), span))
    if not stacks.total_after:
        return cause, False
    index = index_stacks(stacks)
    keys = [series[row] for row in rows]
    held = membership(index, keys).astype(np.float64)
    joint = (held * stacks.after) @ held.T
    own = np.diag(joint)[:, None]
    share = contrast.share[rows]
    changes = Changes(
        change=contrast.change[rows],
        error=contrast.error[rows],
        share=share,
        depth=mean_depths(index, keys),
        overlap=np.where(own > 0, joint / np.maximum(own, 1e-300), share),
    )
    for row, by in zip(rows, explained_by(changes).tolist(), strict=True):
        cause[row] = rows[by]
    return cause, True
