"""Fetches what says how alike regressions are: stacks, changes deployed before them, series, names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.dedup.across_scans import Likeness, day_differences, is_of_a_group, pearson, stack_overlaps
from pipeline.dedup.causes import Causes, cause_similarities, causes_of
from pipeline.dedup.features import name_vectors
from pipeline.dedup.releases import release_similarities
from pipeline.dedup.rules import Feature, MergeRule, PairwiseConfig
from pipeline.detect.expected import values_and_weights
from pipeline.frames import element
from pipeline.model import BoolArray, Candidate, Change, FloatArray, Scan
from pipeline.model.metric_kind import is_gcpu
from pipeline.stacks import StackIndex, membership
from pipeline.stages.gather.evidence import rows_of_series
from pipeline.stages.gather.onset_order import begun_later
from pipeline.storage.interface import SeriesSource, Store
from pipeline.units import DAY_S
from pipeline.workloads import Workload

_RELEASE_S = 1.0
"""Changes that follow each other by no more were deployed in one go."""

_GRAMS = (2, 3)
_NAME_DIMENSIONS = 512


@dataclass(frozen=True, slots=True)
class Part:
    """A member of a group of this or of an earlier scan, and the changes deployed just before it."""

    place: int  # of a regression of the group among the candidates
    candidate: Candidate
    changes: Sequence[Change]


@dataclass(frozen=True, slots=True)
class Told:
    """A regression that an earlier scan passed on."""

    event: str  # the id of the regression that it is part of
    seen_until: float  # where that scan stopped to look for change points
    leads: bool  # whether the event is named after it; else it has joined the event


def likeness_of(
    store: Store,
    scan: Scan,
    candidates: Sequence[Candidate],
    frames: StackIndex,
    changes: Sequence[Sequence[Change]],
    workload: Workload,
    config: PairwiseConfig,
    *,
    told: Sequence[Told] = (),
    parts: Sequence[Part] = (),
) -> Likeness:
    """Return how alike candidates of this and of earlier scans are, as far as any rule asks.

    Args:
        store: Where series are.
        scan: The present scan.
        candidates: (n,) of this and of earlier scans.
        frames: Stacks before the first of them and after the last one, from ``index_stacks``.
        changes: (n,) the changes deployed just before each.
        workload: Of the scan.
        config: The rules.
        told: What is known of the first of the candidates, which earlier scans have passed on.
        parts: Other members of their groups: they say of which release a group is.
    """
    series = [(candidate.metric_kind, candidate.metric) for candidate in candidates]
    gcpu = np.array([is_gcpu(candidate.metric_kind) for candidate in candidates], dtype=np.bool_)
    every = {change.id: change for some in changes for change in some}
    features: dict[Feature, FloatArray] = {}
    near = _near(candidates, workload)
    holds, change = membership(frames, series), frames.rise
    if gcpu.any():
        every |= {change.id: change for part in parts for change in part.changes}
        modified = {change.id: change.subroutines for change in every.values()}
        causes = causes_of(frames, series, modified, [{c.id for c in own} for own in changes], config)
        features |= cause_similarities(frames, series, causes, config)
        features["caller"] = np.where(_have_own(causes), 0.0, features["caller"])
        features["release"] = _releases(frames, candidates, causes, changes, parts, modified, config)
        near |= _late(candidates, causes, len(told), workload)
        members = [(part.place, part.candidate) for part in parts]
        near &= ~begun_later(
            store, scan, candidates, causes, _first_seen(candidates, told), members, workload
        )
        near &= ~_behind_members(candidates, causes, told)
        if _is_asked_for("stacks", gcpu, [rule for rule in config.rules if not is_of_a_group(rule)]):
            features["stacks"] = stack_overlaps(holds, change)
    if _is_asked_for("correlation", gcpu, config.rules):
        features["correlation"] = _correlations(store, scan, candidates, workload)
    if _is_asked_for("metric_id", gcpu, config.rules):
        vectors = name_vectors([c.metric for c in candidates], _GRAMS, _NAME_DIMENSIONS)
        features["metric_id"] = np.clip(vectors @ vectors.T, 0.0, 1.0)
    return Likeness(
        gcpu=gcpu,
        near=near,
        features=features,
        holds=holds,
        change=change,
    )


def _is_asked_for(feature: Feature, gcpu: BoolArray, rules: Sequence[MergeRule]) -> bool:
    """Tell whether a rule about some of these pairs looks at a feature."""
    present = {
        "any": True,
        "gcpu": bool(gcpu.any()),
        "service": not gcpu.all(),
        "mixed": bool(gcpu.any()) and not gcpu.all(),
    }
    return any(feature in rule.bounds and present[rule.between] for rule in rules)


def _near(candidates: Sequence[Candidate], workload: Workload) -> BoolArray:
    """Tell which changes are near enough in time to be one, and move the same way.

    A change point may be placed anywhere in the analysis window; when a slow rise began is known to a day.
    What goes up in gCPU may go down in a service's metric.
    """
    times = np.array([candidate.change_time for candidate in candidates])
    rises = np.array([candidate.delta > 0 for candidate in candidates])
    slow = np.array([candidate.kind == "long_term" for candidate in candidates])
    gcpu = np.array([is_gcpu(candidate.metric_kind) for candidate in candidates])
    reach_s = np.where(slow[:, None] | slow[None, :], max(workload.analysis_s, DAY_S), workload.analysis_s)
    near: BoolArray = np.abs(times[:, None] - times[None, :]) <= reach_s
    near &= (rises[:, None] == rises[None, :]) | (gcpu[:, None] != gcpu[None, :])
    return near


def _have_own(causes: Sequence[Causes]) -> BoolArray:
    """Tell which pairs were each modified by changes that left the other alone: neither needs a caller."""
    number = {change: place for place, change in enumerate({c for cause in causes for c in cause.changes})}
    modified = np.zeros((len(causes), len(number)), dtype=np.bool_)
    for row, cause in enumerate(causes):
        modified[row, [number[change] for change in cause.changes]] = True
    some = np.asarray(modified.any(axis=1))
    common = modified.astype(np.float64) @ modified.T > 0
    return np.asarray(some[:, None] & some[None, :] & ~common)


def _late(
    candidates: Sequence[Candidate], causes: Sequence[Causes], told: int, workload: Workload
) -> BoolArray:
    """Tell which candidates rise through a regression told before, though their change points are far apart.

    Its callers do, however much later: their noise is more, so that they are found later and at less certain
    times; and if it grows, they do. What steps by more than twice as much, more than a day later, has mostly
    another cause. If it has risen anew it is a candidate itself. Then it goes on rising, as
    what grows slowly looks like one step after another, if it did so within a day and no change that was
    deployed just before modified what it rises through: such a change would be a cause of its own.
    """
    late = np.zeros((len(candidates), len(candidates)), dtype=np.bool_)
    anew = {(c.metric_kind, c.metric): place for place, c in enumerate(candidates) if place >= told}
    reach_s = max(workload.analysis_s, DAY_S)
    for row in range(told):
        known = candidates[row]
        series = (known.metric_kind, known.metric)
        if not is_gcpu(known.metric_kind):
            continue
        for place in range(told, len(candidates)):
            one = candidates[place]
            if (one.delta > 0) != (known.delta > 0) or element(*series) not in causes[place].subroutines:
                continue
            soon = one.change_time - known.change_time <= reach_s
            steps = "long_term" not in (one.kind, known.kind)
            if steps and not soon and abs(one.delta) > 2 * abs(known.delta):
                continue
            if series in anew:
                again = candidates[anew[series]]
                # What was taken back and comes again does not go on.
                stayed = abs(again.before - known.after) < abs(again.before - known.before)
                goes_on = (soon and stayed) or one.kind == "long_term"
                if not goes_on or causes[place].changes or causes[anew[series]].changes:
                    continue
            late[row, place] = late[place, row] = True
    return late


def _first_seen(candidates: Sequence[Candidate], told: Sequence[Told]) -> list[tuple[str, float]]:
    """Return each row's event, and where the first scan stopped that told of its series as part of that."""
    first: dict[tuple[str, str, str], float] = {}
    keys = [
        (one.event, known.metric_kind, known.metric) for one, known in zip(told, candidates, strict=False)
    ]
    for key, one in zip(keys, told, strict=True):
        first[key] = min(one.seen_until, first.get(key, one.seen_until))
    return [(key[0], first[key]) for key in keys]


def _behind_members(
    candidates: Sequence[Candidate], causes: Sequence[Causes], told: Sequence[Told]
) -> BoolArray:
    """Tell which new causes are behind a member that joined an event, and not behind what names the event.

    The member has a cause already, and may have a second one. What rises through the member belongs to it.
    """
    found = np.zeros((len(candidates), len(candidates)), dtype=np.bool_)
    leaders = {one.event: set(causes[row].subroutines) for row, one in enumerate(told) if one.leads}
    joined = [row for row, one in enumerate(told) if not one.leads and one.event in leaders]
    for place in range(len(told), len(candidates)):
        own = element(candidates[place].metric_kind, candidates[place].metric)
        if causes[place].subroutines.keys() != {own}:
            continue
        for row in joined:
            known = candidates[row]
            behind = own in causes[row].subroutines and own != element(known.metric_kind, known.metric)
            if behind and own not in leaders[told[row].event]:
                found[row, place] = found[place, row] = True
    return found


def _releases(
    frames: StackIndex,
    candidates: Sequence[Candidate],
    causes: Sequence[Causes],
    changes: Sequence[Sequence[Change]],
    parts: Sequence[Part],
    modified: Mapping[str, Sequence[str]],
    config: PairwiseConfig,
) -> FloatArray:
    """Return how sure it is that two regressions come from one release.

    A regression is of the release nearest to its change point, of those that modified what it rises through,
    since of hundreds of changes within hours some did so by chance. A group is of the releases of those of
    its members that nothing below explains.
    """
    if parts:
        rises = [part.candidate for part in parts]
        series = [(candidate.metric_kind, candidate.metric) for candidate in rises]
        before = [{change.id for change in part.changes} for part in parts]
        causes = [*causes, *causes_of(frames, series, modified, before, config)]
        changes = [*changes, *(part.changes for part in parts)]
        candidates = [*candidates, *rises]
    every = {change.id: change for some in changes for change in some if change.subroutines}
    moments: dict[str, float] = {}
    deployed: dict[float, int] = {}
    start = last = -np.inf
    for change in sorted(every.values(), key=lambda change: change.time):
        if change.time - last > _RELEASE_S:
            start = change.time
        last = change.time
        moments[change.id] = start
        deployed[start] = deployed.get(start, 0) + 1
    hits = []
    for candidate, cause in zip(candidates, causes, strict=True):
        own_moments = {moments[change] for change in cause.changes}
        nearest = min(own_moments, key=lambda moment: abs(moment - candidate.change_time), default=0.0)
        hits.append({(nearest, change) for change in cause.changes if moments[change] == nearest})
    own = hits[: len(hits) - len(parts)]
    for part, cause, more in zip(parts, causes[len(own) :], hits[len(own) :], strict=True):
        # What something below explains is a caller of a part, and many changes modified one of those.
        if cause.subroutines.keys() <= {part.candidate.metric}:
            own[part.place] |= more
    return release_similarities(own, deployed, config.release)


def _correlations(
    store: Store, scan: Scan, candidates: Sequence[Candidate], workload: Workload
) -> FloatArray:
    """Return Pearson's coefficient of each pair of series around the change, their daily cycles aside."""
    by_source: dict[SeriesSource, list[int]] = {}
    for place, candidate in enumerate(candidates):
        by_source.setdefault("gcpu" if is_gcpu(candidate.metric_kind) else "service", []).append(place)
    windows = round((scan.end - scan.start) / workload.resolution_s)
    values = np.full((len(candidates), windows), np.nan)
    for source, places in by_source.items():
        names = sorted({(candidates[place].metric_kind, candidates[place].metric) for place in places})
        matrix = store.series(source, scan.service, scan.start, scan.end, workload.resolution_s, names)
        rows = rows_of_series(matrix)
        found = values_and_weights(matrix)[0]
        for place in places:
            row = rows.get((candidates[place].metric_kind, candidates[place].metric))
            if row is not None:
                values[place] = found[row] * np.sign(candidates[place].delta)
    first = min(candidate.change_time for candidate in candidates)
    # As much before the first change as there is after it, and an analysis window at least.
    span_s = max(scan.end - first, workload.analysis_s)
    columns = slice(max(round((first - span_s - scan.start) / workload.resolution_s), 0), windows)
    return pearson(day_differences(values, columns, day=round(DAY_S / workload.resolution_s)))
