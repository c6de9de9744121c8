"""Pairs of regressions: what is known of each of them, and how similar they are.

Features are similarities of two regressions, at most 1 (FBDetect §5.4.8):

- ``cause``: the share of both rises from stacks in which one thing stands at or below both: a subroutine,
  whether it is found to regress itself or not, or what one change modified. Two callers of a regressed
  subroutine share no stack, but they share that.
- ``caller``: the share of one's rise from stacks of the other, where nothing below the other explains its
  rise: it is called more often. A caller of everything is shared by chance; so only so much of the rise
  counts as all that it calls rose in step.
- ``release``: how improbable it is that so many of the changes deployed at one moment go along with a
  regression, where a change of that moment modified either: 1 less the chance.
- ``stacks``: stack-trace overlap, the share of both rises from stacks that hold both.
- ``correlation``: Pearson's coefficient of the series, the worse direction taken for up.
- ``metric_id``: cosine of the metric ids' TF-IDF vectors of 2- and 3-grams.
- ``onset``: how sure it is that it is no chance that both begin at one time, not both of gCPU.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.analysis.dedup.causes import Causes, cause_similarities, causes_of
from pipeline.analysis.dedup.evidence import (
    DedupConfig,
    DedupEvidence,
    Reported,
    ReportHistory,
    asked_features,
    largest_members,
    may_be_one,
)
from pipeline.analysis.dedup.onsets import ChanceTime, RegressionOnset, onset_similarities
from pipeline.analysis.dedup.packages import modified_by
from pipeline.analysis.dedup.releases import release_similarities
from pipeline.analysis.dedup.rules import Between, Feature
from pipeline.analysis.stacks import StackIndex, explained_shares, membership
from pipeline.analysis.statistics.name_vectors import name_vectors
from pipeline.model import BoolArray, Candidate, Change, FloatArray, SeriesKey
from pipeline.model.metric_kind import is_gcpu
from pipeline.model.units import DAY_S

_RELEASE_S = 1.0
"""Changes that follow each other by no more were deployed in one go."""

_GRAMS = (2, 3)
_NAME_DIMENSIONS = 512


@dataclass(frozen=True, slots=True)
class GroupMember:
    """A member of a group of this or of an earlier scan, and the changes deployed just before it."""

    row: int  # of a regression of the group
    candidate: Candidate
    deployed: Sequence[Change]


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """What is known of n regressions, the reported ones first, and of each pair of them."""

    candidates: Sequence[Candidate]  # (n,)
    reported: Sequence[Reported]  # (known,) the first of them
    members: Sequence[GroupMember]  # of their groups
    series: Sequence[SeriesKey]  # (n,)
    causes: Sequence[Causes]  # (n,) what may have made each rise; without stacks nothing
    levels: FloatArray  # (n, windows) of the series, as far as a question asks for them
    starts: FloatArray  # (windows,) epoch seconds
    times: FloatArray  # (n,) change points, epoch seconds
    deltas: FloatArray  # (n,)
    slow: BoolArray  # (n,) which are slow rises
    gcpu: BoolArray  # (n,) which are of gCPU; the others are of service-level metrics
    holds: BoolArray  # (n, stacks) which stacks hold which
    rise: FloatArray  # (stacks,) by how much each stack's share grew
    features: Mapping[Feature, FloatArray]  # (n, n) each, symmetric; those that a rule asks for
    config: DedupConfig

    @property
    def known(self) -> int:
        """How many were reported before."""
        return len(self.reported)


def pair_up(
    evidence: DedupEvidence,
    index: StackIndex,
    candidates: Sequence[Candidate],
    config: DedupConfig,
    *,
    reported: Sequence[Reported] = (),
    members: Sequence[GroupMember] = (),
    deployed: Sequence[Sequence[Change]] | None = None,
) -> Pairs:
    """Return what is known of regressions, and how similar they are, as far as any rule asks.

    Args:
        evidence: Of the scan.
        index: Of the stacks before the first of them and after the last one.
        candidates: Of this scan.
        config: The rules.
        reported: Reported ones that they may be part of.
        members: Of the groups of both: they say of which release a group is.
        deployed: (reported and candidates,) the changes just before each; empty for service-level metrics.
    """
    every = [*(known.candidate for known in reported), *candidates]
    series = [candidate.series for candidate in every]
    gcpu = np.array([is_gcpu(kind) for kind, _ in series], dtype=np.bool_)
    asked = asked_features(config.pairwise, every)
    holds = membership(index, series)
    causes: Sequence[Causes] = [Causes({}, {})] * len(every)
    features: dict[Feature, FloatArray] = {}
    if gcpu.any():
        before = deployed or [()] * len(every)
        near = (change for some in (*before, *(m.deployed for m in members)) for change in some)
        modified = modified_by(near, index, words=config.runs("named_packages"))
        causes = causes_of(
            index, series, modified, [{c.id for c in some} for some in before], config.pairwise
        )
        features |= cause_similarities(index, series, causes)
        features["release"] = _releases(index, every, causes, before, members, modified, config)
        if "stacks" in asked and any(
            "stacks" in rule.bounds and not rule.is_of_group for rule in config.pairwise.rules
        ):
            features["stacks"] = stack_overlaps(holds, index.rise)
    levels = evidence.levels.of(series)
    if "correlation" in asked:
        turned = levels * np.sign([candidate.delta for candidate in every])[:, None]
        between = [rule.between for rule in config.pairwise.rules if "correlation" in rule.bounds]
        features["correlation"] = _correlations(turned, every, evidence, config) * of_pairs(between, gcpu)
    if "onset" in asked:
        features["onset"] = onset_similarities(*_onsets(evidence, candidates, reported, config))
    if "metric_id" in asked:
        vectors = name_vectors([name for _, name in series], _GRAMS, _NAME_DIMENSIONS)
        features["metric_id"] = np.clip(vectors @ vectors.T, 0.0, 1.0)
    return Pairs(
        candidates=every,
        reported=reported,
        members=members,
        series=series,
        causes=causes,
        levels=levels,
        starts=evidence.levels.starts,
        times=np.array([candidate.change_time for candidate in every]),
        deltas=np.array([candidate.delta for candidate in every]),
        slow=np.array([candidate.kind == "long_term" for candidate in every], dtype=np.bool_),
        gcpu=gcpu,
        holds=holds,
        rise=index.rise,
        features=features,
        config=config,
    )


def members_near(
    evidence: DedupEvidence,
    history: ReportHistory,
    reported: Sequence[Reported],
    candidates: Sequence[Candidate],
    config: DedupConfig,
) -> list[GroupMember]:
    """Return the members of new groups, and of reported ones near them, with the changes before each."""
    rows = {known.event: row for row, known in reversed([*enumerate(reported)]) if known.event}
    found = [
        (rows[member.event], member.candidate)
        for member in history.members
        if member.event in rows
        and any(may_be_one(member.candidate, candidate, config) for candidate in candidates)
    ]
    for row, candidate in enumerate(candidates, start=len(reported)):
        found += [(row, member) for member in largest_members(candidate)]
    deployed = evidence.deployed.before([member for _, member in found], config)
    return [GroupMember(row, member, before) for (row, member), before in zip(found, deployed, strict=True)]


def of_pairs(kinds: Sequence[Between], gcpu: BoolArray) -> BoolArray:
    """Return the pairs that are of any of some kinds: (n, n)."""
    both, neither = gcpu[:, None] & gcpu[None, :], ~gcpu[:, None] & ~gcpu[None, :]
    choices = {"any": np.ones_like(both), "gcpu": both, "service": neither, "mixed": ~(both | neither)}
    return np.asarray(np.logical_or.reduce([choices[kind] for kind in kinds]), dtype=np.bool_)


def stack_overlaps(holds: BoolArray, change: FloatArray) -> FloatArray:
    """Return the share of both rises from stacks that hold both, of the smaller such share: (n, n).

    Args:
        holds: (n, stacks) which stacks hold which series.
        change: (stacks,) by how much each stack's share grew.
    """
    shares = np.clip(explained_shares(holds, change), 0.0, 1.0)
    return np.asarray(np.minimum(shares, shares.T), dtype=np.float64)


def day_differences(values: FloatArray, columns: slice, *, day: int) -> FloatArray:
    """Return by how much series differ in some windows from what they were a day before.

    What all series do every day would make any two similar.

    Args:
        values: (series, windows), NaN where there is no data.
        columns: The windows that are looked at.
        day: Windows a day; where the day before is not known, the values themselves are returned.
    """
    first, last, _ = columns.indices(values.shape[1])
    if day < 2 or first < day:
        return values[:, first:last]
    return values[:, first:last] - values[:, first - day : last - day]


def pearson(values: FloatArray) -> FloatArray:
    """Return Pearson's correlation of every pair of rows: (rows, rows); 0 where it is not defined.

    Args:
        values: (rows, windows), NaN where there is no data; a pair is compared where both have some.
    """
    known = ~np.isnan(values)
    rows = np.where(known, values, 0.0)
    both = known.astype(np.float64)
    n = both @ both.T
    per = np.maximum(n, 1.0)
    # Sums of each row over the windows that the other one knows too.
    sums, squares = rows @ both.T, (rows * rows) @ both.T
    covariance = rows @ rows.T / per - sums * sums.T / per**2
    variance = np.maximum(squares / per - (sums / per) ** 2, 0.0)
    scale = np.sqrt(variance * variance.T)
    tiny = scale <= 1e-12 * np.sqrt(squares * squares.T) / per
    found = np.divide(covariance, scale, out=np.zeros_like(covariance), where=~tiny & (n > 2))
    correlation: FloatArray = np.clip(found, -1.0, 1.0)
    return correlation


def _correlations(
    levels: FloatArray, candidates: Sequence[Candidate], evidence: DedupEvidence, config: DedupConfig
) -> FloatArray:
    """Return Pearson's coefficient of each pair of series around the change, their daily cycles aside."""
    scan, step_s = evidence.scan, config.resolution_s
    first = min(candidate.change_time for candidate in candidates)
    # As much before the first change as there is after it, and an analysis window at least.
    span_s = max(scan.end - first, config.analysis_s)
    columns = slice(max(round((first - span_s - scan.start) / step_s), 0), levels.shape[1])
    return pearson(day_differences(levels, columns, day=round(DAY_S / step_s)))


def _onsets(
    evidence: DedupEvidence,
    candidates: Sequence[Candidate],
    reported: Sequence[Reported],
    config: DedupConfig,
) -> tuple[list[RegressionOnset], ChanceTime]:
    """Return the onsets of reported ones and of candidates, and what they might have met by chance."""

    def onset(candidate: Candidate, known: Reported | None = None) -> RegressionOnset:
        time = candidate.change_time
        window = (time - config.resolution_s, time)
        interval = candidate.change_time_interval or (known.onset if known else None) or window
        return RegressionOnset(
            *interval, is_gcpu(candidate.metric_kind), abs(candidate.delta), known.event if known else ""
        )

    watched = ChanceTime(
        evidence.watched_s or evidence.scan.end - evidence.scan.start,
        [onset(known.candidate, known) for known in evidence.history.regressions],
        evidence.deployed.first_times,
    )
    known_ones = [onset(known.candidate, known) for known in reported]
    return [*known_ones, *map(onset, candidates)], watched


def _releases(
    index: StackIndex,
    candidates: Sequence[Candidate],
    causes: Sequence[Causes],
    deployed: Sequence[Sequence[Change]],
    members: Sequence[GroupMember],
    modified: Mapping[str, Sequence[str]],
    config: DedupConfig,
) -> FloatArray:
    """Return how sure it is that two regressions come from one release.

    A regression is of the release nearest to its change point, of those that modified what it rises through,
    since of hundreds of changes within hours some did so by chance. A group is of the releases of those of
    its members that nothing below explains.
    """
    if members:
        rises = [member.candidate for member in members]
        before = [{change.id for change in member.deployed} for member in members]
        causes = [
            *causes,
            *causes_of(index, [rise.series for rise in rises], modified, before, config.pairwise),
        ]
        deployed = [*deployed, *(member.deployed for member in members)]
        candidates = [*candidates, *rises]
    moments, sizes = _moments(deployed, modified)
    hits = []
    for candidate, cause in zip(candidates, causes, strict=True):
        of_changes = {moments[change] for change in cause.changes}
        nearest = min(of_changes, key=lambda moment: abs(moment - candidate.change_time), default=0.0)
        hits.append({(nearest, change) for change in cause.changes if moments[change] == nearest})
    of_groups = hits[: len(hits) - len(members)]
    first = len(of_groups)
    for member, cause, more in zip(members, causes[first:], hits[first:], strict=True):
        # What something below explains is a caller of a part, and many changes modified one of those.
        if cause.subroutines.keys() <= {member.candidate.metric}:
            of_groups[member.row] |= more
    return release_similarities(of_groups, sizes, config.pairwise.release)


def _moments(
    deployed: Sequence[Sequence[Change]], modified: Mapping[str, Sequence[str]]
) -> tuple[dict[str, float], dict[float, int]]:
    """Return the moment of each change's release, and how many changes were deployed at each moment."""
    every = {change.id: change for some in deployed for change in some if modified[change.id]}
    moments: dict[str, float] = {}
    sizes: dict[float, int] = {}
    start = last = -np.inf
    for change in sorted(every.values(), key=lambda change: change.time):
        if change.time - last > _RELEASE_S:
            start = change.time
        last = change.time
        moments[change.id] = start
        sizes[start] = sizes.get(start, 0) + 1
    return moments, sizes
