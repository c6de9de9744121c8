"""Observations for a comparison: samples of two releases at the same time and from the same senders."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.sparse import coo_array, csr_array

from pipeline.analysis.mix.terms import RELEASE_LABELS, release_of, runs
from pipeline.model import BoolArray, FloatArray, IntArray, SeriesKey, StrataMatrix, Stratum
from pipeline.releases.gcpu.contrast import Observations

Evidence = Literal["side_by_side", "one_after_the_other"]
Unit = Literal["host", "block", "host_and_block"]

_MATCHED = 0.5
"""Smallest share of the candidate's samples that must meet the baseline within values of a label."""

_BOTH = 0.01
"""Share of a block's samples from which on a release counts as running in it."""

_FEW_BLOCKS = 2
"""Number of blocks with both releases that suffices for side by side, even if most samples are elsewhere."""

_SURE_BLOCKS = 4
"""Fewest blocks with both releases that count as side by side on one host: one or two hold a handover."""

_FEW_HOSTS = 4
"""Number of hosts, of both releases together, from which on they show the variance between hosts."""

_MOST_CELLS = 600
"""Largest number of cells; blocks are joined until there are no more."""


@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """Counts of all series by block of time and stratum, for pairs that have any."""

    start: float
    block_s: float
    strata: tuple[Stratum, ...]
    series: tuple[SeriesKey, ...]
    block: IntArray  # (observations,) blocks from the start
    stratum: IntArray  # (observations,)
    totals: FloatArray  # (observations,) positive
    counts: csr_array  # (series, observations)

    @property
    def releases(self) -> dict[str, float]:
        """Samples of each release, the one with the most first."""
        totals: dict[str, float] = {}
        per_stratum = np.bincount(self.stratum, self.totals, minlength=len(self.strata))
        for stratum, samples in zip(self.strata, per_stratum.tolist(), strict=True):
            totals[release_of(stratum)] = totals.get(release_of(stratum), 0.0) + samples
        return dict(sorted(totals.items(), key=lambda release: -release[1]))

    def of(self, release: str) -> BoolArray:
        """Return the mask of a release's observations, given its name or a label as ``name=value``."""
        chosen = [runs(stratum, release) for stratum in self.strata]
        mask: BoolArray = np.array(chosen, dtype=np.bool_)[self.stratum]
        return mask

    def only(self, chosen: BoolArray) -> Samples:
        """Return the selected observations."""
        return Samples(
            self.start,
            self.block_s,
            self.strata,
            self.series,
            self.block[chosen],
            self.stratum[chosen],
            self.totals[chosen],
            self.counts[:, np.flatnonzero(chosen)],
        )


@dataclass(frozen=True, slots=True, eq=False)
class Matched:
    """The matched observations of two releases, and how they were matched."""

    observed: Observations
    evidence: Evidence
    unit: Unit
    units: tuple[str, ...]  # names of the units of the observations
    held: tuple[str, ...]  # labels within whose values releases are compared
    not_held: tuple[str, ...]  # labels whose values differ between releases and cannot be compared within
    hosts: tuple[int, int]  # of baseline and candidate
    samples: tuple[float, float]
    span: tuple[float, float]  # of time
    blocks: int  # with samples
    shared_host: bool  # whether hosts of the candidate ran the baseline, too


def collect(parts: Iterable[StrataMatrix]) -> Samples | None:
    """Return counts of consecutive blocks of time, each a matrix of one window; None if there are none."""
    strata: dict[Stratum, int] = {}
    series: dict[SeriesKey, int] = {}
    first: StrataMatrix | None = None
    columns_by_kind: list[list[FloatArray]] = [[np.zeros(0)] for _ in range(6)]
    block, stratum, totals, rows, columns, counts = columns_by_kind
    size = 0
    for part in parts:
        first = first or part
        held = np.flatnonzero(part.samples.any(axis=0)) if len(part.series) else np.zeros(0, dtype=np.int64)
        if not len(held):
            continue
        of_stratum = [float(strata.setdefault(part.strata[row], len(strata))) for row in held.tolist()]
        of_series = np.array([float(series.setdefault(key, len(series))) for key in part.series])
        row, column = np.nonzero(part.samples[:, held])
        block.append(np.full(len(held), float(round((part.start - first.start) / part.resolution_s))))
        stratum.append(np.array(of_stratum))
        # The two are inserted one after the other: leave out counts that have no totals yet.
        least = part.samples[:, held].max(axis=0)
        totals.append(np.maximum(part.totals[held].sum(axis=1), least))
        rows.append(of_series[row])
        columns.append(size + column.astype(np.float64))
        counts.append(part.samples[:, held][row, column])
        size += len(held)
    if first is None or not size:
        return None
    where = np.concatenate(rows).astype(np.int64), np.concatenate(columns).astype(np.int64)
    return Samples(
        start=first.start,
        block_s=first.resolution_s,
        strata=tuple(strata),
        series=tuple(series),
        block=np.concatenate(block).astype(np.int64),
        stratum=np.concatenate(stratum).astype(np.int64),
        totals=np.concatenate(totals),
        counts=coo_array((np.concatenate(counts), where), shape=(len(series), size)).tocsr(),
    )


def match(samples: Samples, baseline: str, candidate: str, by: Sequence[str] | None = None) -> Matched | None:
    """Return the matched samples of two releases; None if one has no samples, or all samples are of both.

    Args:
        samples: Of a service.
        baseline: Name of the old release, or a label as ``name=value``.
        candidate: Name of the new release.
        by: Labels within whose values they are compared; all that both releases share if None.
    """
    new, old = samples.of(candidate), samples.of(baseline)
    old &= ~new
    if not new.any() or not old.any():
        return None
    evidence: Evidence = "one_after_the_other"
    both = _blocks_of_both(samples, old, new)
    if _is_side_by_side(samples, old, new, both):
        evidence = "side_by_side"
        inside = (samples.block >= both[0]) & (samples.block <= both[-1])
        new, old = new & inside, old & inside
    chosen = old | new
    samples, new = samples.only(chosen), new[chosen]
    held, not_held = _labels(samples, new, by, timed=evidence == "side_by_side")
    names = [stratum.host or ", ".join(stratum.texts) for stratum in samples.strata]
    host = _numbers([names[row] for row in samples.stratum.tolist()])
    unit, units, cell = _units(samples, new, host, _keys(samples, held), evidence)
    of_old, of_new = set(host[~new].tolist()), set(host[new].tolist())
    return Matched(
        observed=Observations(samples.counts, samples.totals, _numbers(cell.tolist()), units, new),
        evidence=evidence,
        unit=unit,
        units=_names(units, [names[row] for row in samples.stratum.tolist()]),
        held=tuple(held),
        not_held=tuple(not_held),
        hosts=(len(of_old), len(of_new)),
        samples=(float(samples.totals[~new].sum()), float(samples.totals[new].sum())),
        span=(
            samples.start + float(samples.block.min()) * samples.block_s,
            samples.start + float(samples.block.max() + 1) * samples.block_s,
        ),
        blocks=len(np.unique(samples.block)),
        shared_host=bool(of_old & of_new),
    )


def _is_side_by_side(samples: Samples, old: BoolArray, new: BoolArray, both: IntArray) -> bool:
    """Return whether releases ran at the same time, given the blocks in which both ran."""
    is_matched = bool(np.isin(samples.block[new], both).mean() >= _MATCHED)
    strata = np.unique(samples.stratum[old | new]).tolist()
    if len({samples.strata[row].host or row for row in strata}) > 1:
        return len(both) >= _FEW_BLOCKS or is_matched
    return len(both) >= _SURE_BLOCKS and is_matched


def _blocks_of_both(samples: Samples, old: BoolArray, new: BoolArray) -> IntArray:
    """Return the blocks in which both releases ran."""
    size = int(samples.block.max()) + 1
    sums = [np.bincount(samples.block, samples.totals * chosen, minlength=size) for chosen in (old, new)]
    least = np.minimum(*sums)
    return np.flatnonzero((least > 0) & (least >= _BOTH * (sums[0] + sums[1])))


def _labels(
    samples: Samples, new: BoolArray, by: Sequence[str] | None, *, timed: bool
) -> tuple[list[str], list[str]]:
    """Return the labels within whose values releases can be compared, and the labels that prevent it.

    Labels with few values come first; one that leaves too few of the candidate's samples with samples of the
    baseline beside them is left out.
    """
    if by is not None:
        return list(by), []
    values: dict[str, set[str]] = {}
    names = {name for stratum in samples.strata for name, _ in stratum.labels}
    for stratum in samples.strata:
        for name in names:
            values.setdefault(name, set()).add(dict(stratum.labels).get(name, ""))
    candidates = [
        name for name, counts in values.items() if name.lower() not in RELEASE_LABELS and len(counts) > 1
    ]
    held: list[str] = []
    not_held = []
    for name in sorted(candidates, key=lambda name: (len(values[name]), name)):
        if _matched(samples, new, [*held, name], timed=timed) >= _MATCHED * _matched(
            samples, new, held, timed=timed
        ):
            held.append(name)
        elif _hosts_of_values(samples, name) > 1:  # else it is a name of the host
            not_held.append(name)
    return held, not_held


def _hosts_of_values(samples: Samples, label: str) -> int:
    """Return the largest number of hosts that share one value of a label."""
    hosts: dict[str, set[str]] = {}
    for stratum in samples.strata:
        hosts.setdefault(dict(stratum.labels).get(label, ""), set()).add(stratum.host)
    return max(map(len, hosts.values()), default=0)


def _matched(samples: Samples, new: BoolArray, labels: Sequence[str], *, timed: bool) -> float:
    """Return the share of the candidate's samples that have samples of the baseline in the same cell."""
    cell = _keys(samples, labels)
    if timed:
        cell = cell * (int(samples.block.max()) + 1) + samples.block
    inside = np.isin(cell[new], np.unique(cell[~new]))
    return float(samples.totals[new][inside].sum() / samples.totals[new].sum())


def _keys(samples: Samples, labels: Sequence[str]) -> IntArray:
    """Return the number of each observation's combination of label values: (observations,)."""
    values = [tuple(dict(stratum.labels).get(name, "") for name in labels) for stratum in samples.strata]
    return _numbers([values[row] for row in samples.stratum.tolist()])


def _units(
    samples: Samples, new: BoolArray, host: IntArray, key: IntArray, evidence: Evidence
) -> tuple[Unit, IntArray, IntArray]:
    """Return the units, and the unit and the cell of each observation."""
    if evidence == "one_after_the_other":
        stayed = np.isin(host[new], host[~new])
        on_same = samples.totals[new][stayed].sum() >= _MATCHED * samples.totals[new].sum()
        # The release that runs in a block is part of its name: a block of both is two units.
        return "block", _numbers((samples.block * 2 + new).tolist()), host if on_same else key
    keys = int(key.max()) + 1
    width = max(1, -(-len(np.unique(samples.block)) * keys // _MOST_CELLS))
    cell = (samples.block - samples.block.min()) // width * keys + key
    hosts = int(host.max()) + 1
    if hosts >= _FEW_HOSTS:
        return "host", host, cell
    return "host_and_block", _numbers((samples.block * hosts + host).tolist()), cell


def _numbers(values: Sequence[object]) -> IntArray:
    """Return numbers without gaps for values, in the order in which they come: (values,)."""
    index: dict[object, int] = {}
    return np.array([index.setdefault(value, len(index)) for value in values], dtype=np.int64)


def _names(units: IntArray, names: Sequence[str]) -> tuple[str, ...]:
    """Return a name of each unit."""
    name_of = dict(zip(units.tolist(), names, strict=True))
    return tuple(name_of[unit] for unit in range(len(name_of)))
