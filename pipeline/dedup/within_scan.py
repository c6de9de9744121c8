"""Which candidates of a scan have one cause, seen through stacks and through what changes modified.

SOMDedup (FBDetect §5.4.7) merges what looks alike. What one cause makes rise need not look alike: the callers
of a regressed subroutine share no stack with each other, and the parts of a new feature share nothing but
the moment of their deployment. So candidates are linked by what can have caused them, in five steps:

1. ``below``: both rise through one element at or below them, be it a candidate itself or not.
2. ``caller``: one rises in the stacks of another, which nothing below explains: it is called more often.
   Either the other is rare, so that it is no chance, or one rises as much as all that the other calls.
3. ``change``: one change modified what each of them rises through.
4. ``deployment``: changes deployed at one moment did, so many that it cannot be chance.
5. ``sum``: one is the sum of several others, and goes with the one that gives most of it.

Of the first kind each candidate has one link only, to its best explanation, and the third looks at a group's
largest rise alone, the fourth also at what was modified itself: a caller that two causes share must not make
one of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.dedup.links import Link
from pipeline.dedup.releases import ReleaseConfig, sure_of_one_thing
from pipeline.frames import element
from pipeline.model import BoolArray, Change, FloatArray, IntArray
from pipeline.stacks import (
    Group,
    Rises,
    Series,
    StackIndex,
    likeness,
    mean_depths,
    measure_rises,
    shares_given,
)


@dataclass(frozen=True, slots=True)
class CauseConfig:
    """Settings of the grouping."""

    explained: float = 0.7  # share that is most of a rise; estimates of both may be off by some
    rare: float = 0.05  # gCPU up to which two rises below one caller are there by chance in 5 % of cases
    one_thing: float = 0.99  # how sure it must be that a release's regressions have one cause
    release: ReleaseConfig = ReleaseConfig()


@dataclass(frozen=True, slots=True)
class CauseGroup(Group):
    """Candidates with one cause; ``links`` says by which step, and how surely, each was first linked.

    That need not be to the representative. Of the first two steps and the last one the similarity is a share
    of a rise, of both the smaller; of the fourth how sure it is; one change is enough for the third.
    """

    links: tuple[Link, ...] = ()  # parallel to members


@dataclass(frozen=True, slots=True)
class _Sources(Rises):
    """What is known of each candidate's rise."""

    level: FloatArray  # (candidates,) gCPU at most
    explaining: tuple[IntArray, ...]  # (candidates,) names that most of it goes through, its own included
    source: IntArray  # (candidates,) the best of them


def group_by_cause(
    frames: StackIndex,
    series: Sequence[Series],
    before: FloatArray,
    after: FloatArray,
    changes: Sequence[Sequence[Change]],
    *,
    config: CauseConfig | None = None,
) -> list[CauseGroup]:
    """Group the candidates of a scan by cause.

    A group's representative is, of those that rise by most of what the largest does, one that a change
    modified if there is any (PotentialRootCauseFound of §5.4.7), and then the deepest. ``explained`` is the
    share of a member's rise that comes through what the representative rises through, from 0 to 1.

    Args:
        frames: Stack counts before the first and after the last change point, from ``index_stacks``.
        series: (candidates,)
        before: (candidates,) gCPU.
        after: (candidates,) gCPU.
        changes: (candidates,) deployed about when each began to rise.
        config: Settings.
    """
    config = config or CauseConfig()
    if not len(series):
        return []
    rises = _explain(frames, series, before, after, config)
    parts, delta = _Parts(len(series)), after - before
    for one, other, share in _below_links(rises):
        parts.join(one, other, Link("below", share, config.explained))
    own_names = [element(*one) for one in series]
    culprits = _culprits(frames, own_names, rises, changes)
    for one, other, share in _caller_links(frames, rises, config):
        if not _have_own(culprits[one], culprits[other]):
            parts.join(one, other, Link("caller", share, config.explained))
    _join_by_changes(parts, [*frames.names], own_names, rises, delta, changes, config)
    _join_sums(parts, frames, rises, delta, config)
    depths = mean_depths(frames, series)
    modified = np.array(
        [
            any(name in change.subroutines for change in own)
            for name, own in zip(own_names, changes, strict=True)
        ]
    )
    groups = []
    for members in parts.groups():
        chosen = choose_representative(members, modified, np.abs(delta), depths, config)
        groups.append(_as_group(chosen, [member for member in members if member != chosen], parts, rises))
    return groups


def _explain(
    frames: StackIndex, series: Sequence[Series], before: FloatArray, after: FloatArray, config: CauseConfig
) -> _Sources:
    rises = measure_rises(frames, series, after - before)
    explaining, source = [], rises.rows.copy()
    for i, (own, size) in enumerate(zip(rises.rows.tolist(), rises.size.tolist(), strict=True)):
        names, rise = rises.through(i)
        if not size:
            explaining.append(rises.rows[i : i + 1])
            continue
        most = (rise / size >= config.explained) | (names == own)
        explaining.append(names[most])
        span = slice(rises.below.weight.indptr[i], rises.below.weight.indptr[i + 1])
        mass, depth = rises.below.weight.data[span], rises.below.depth.data[span]
        source[i] = _best(names[most], rise[most] * np.sign(size), mass[most], depth[most])
    return _Sources(rises.size, rises.rows, rises.below, np.maximum(before, after), tuple(explaining), source)


def _best(names: IntArray, rise: FloatArray, mass: FloatArray, depth: FloatArray) -> int:
    """Return the name whose samples rose most relative to their number, the deepest of equals."""
    relative = np.divide(rise, mass, out=np.full(len(rise), -np.inf), where=mass > 0)
    equal = relative >= relative.max() - 1e-9 * np.abs(relative.max())
    depths = np.divide(depth, mass, out=np.zeros(len(mass)), where=mass > 0)
    return int(names[np.lexsort((names, -depths, ~equal))[0]])


def _below_links(rises: _Sources) -> Iterator[tuple[int, int, float]]:
    """Yield candidates that have one source, or of which one is the other's source, and the share of it."""
    holder = {int(row): i for i, row in enumerate(rises.rows.tolist()) if row >= 0}
    for i, (row, source) in enumerate(zip(rises.rows.tolist(), rises.source.tolist(), strict=True)):
        if row < 0:
            continue
        yield i, holder[row], 1.0
        other = holder.setdefault(source, i)
        own = 1.0 if rises.rows[other] == source else _through(rises, other, source)
        yield i, other, min(_through(rises, i, source), own)


def _caller_links(
    frames: StackIndex, rises: _Sources, config: CauseConfig
) -> Iterator[tuple[int, int, float]]:
    """Yield candidates and a caller of theirs that is its own source and is called more often.

    That must be the reason of what gives most of the candidate's rise too, which may have other callers. The
    third is how much it is the reason for, of all that must be enough the least.
    """
    own = np.flatnonzero(frames.first)
    whole = np.bincount(
        frames.label[own], weights=frames.rise[frames.stack[own]], minlength=len(frames.names)
    )
    places: dict[int, list[int]] = {}
    for i, row in enumerate(rises.rows.tolist()):
        places.setdefault(row, []).append(i)
    for caller in np.flatnonzero((rises.source == rises.rows) & (rises.rows >= 0)).tolist():
        names, rise = rises.through(caller)
        rare = rises.level[caller] < config.rare
        given = dict(zip(names.tolist(), rise.tolist(), strict=True))
        for name, common, alike in zip(names, rise, rises.in_step(caller), strict=True):
            for other in places.get(int(name), ()):
                size = rises.size[other]
                if not size:
                    continue
                called = 1.0 if rare else float(likeness(alike, size))
                share = min(float(common / size), called)
                if share < config.explained:
                    continue
                source = int(rises.source[other])
                behind = float(shares_given(np.array(given.get(source, 0.0)), whole[source]))
                if behind >= config.explained:
                    yield other, caller, min(share, behind)


def _culprits(
    frames: StackIndex, own_names: Sequence[str], rises: _Sources, changes: Sequence[Sequence[Change]]
) -> list[frozenset[str]]:
    """Return the changes that modified what most of each candidate's rise goes through, by id."""
    found = []
    for own, explaining, deployed in zip(own_names, rises.explaining, changes, strict=True):
        names = {own, *(frames.names[row] for row in explaining.tolist() if row >= 0)}
        found.append(frozenset(c.id for c in deployed if not names.isdisjoint(c.subroutines)))
    return found


def _have_own(one: frozenset[str], other: frozenset[str]) -> bool:
    """Tell whether two regressions were each modified by changes that leave the other alone."""
    return bool(one and other) and one.isdisjoint(other)


def _join_by_changes(
    parts: _Parts,
    labels: Sequence[str],
    own_names: Sequence[str],
    rises: _Sources,
    delta: FloatArray,
    changes: Sequence[Sequence[Change]],
    config: CauseConfig,
) -> None:
    """Join groups whose largest rise goes through what one change modified, or one deployment.

    Of a deployment also what one of its changes modified itself and nothing below explains: the largest rise
    of a group may be a caller of several such parts, none of which gives most of it.
    """
    leaders = _leaders(parts, delta)
    names = {
        part: {own_names[leader], *(labels[row] for row in rises.explaining[leader].tolist() if row >= 0)}
        for part, leader in leaders.items()
    }
    by_change: dict[str, dict[int, int]] = {}
    in_release: dict[str, list[int]] = {}
    deployed: dict[float, set[str]] = {}
    for i, own in enumerate(changes):
        part = parts.of(i)
        for change in own:
            if not change.subroutines:
                continue
            deployed.setdefault(change.time, set()).add(change.id)
            if not names[part].isdisjoint(change.subroutines):
                by_change.setdefault(change.id, {})[part] = leaders[part]
                in_release.setdefault(change.id, []).append(leaders[part])
            elif rises.source[i] == rises.rows[i] and own_names[i] in change.subroutines:
                in_release.setdefault(change.id, []).append(i)
    for hit in by_change.values():
        first, *others = hit.values()
        for other in others:
            parts.join(other, first, Link("change", 1.0, 1.0))
    for ids in deployed.values():
        hits = [in_release[change] for change in sorted(ids) if change in in_release]
        sure = sure_of_one_thing(len(hits), len(ids), config.release)
        if sure >= config.one_thing:
            for other in dict.fromkeys(place for places in hits for place in places):
                parts.join(other, hits[0][0], Link("deployment", sure, config.one_thing))


def _join_sums(
    parts: _Parts, frames: StackIndex, rises: _Sources, delta: FloatArray, config: CauseConfig
) -> None:
    """Join each group whose largest rise is the sum of others to the one that gives most of it."""
    leaders = _leaders(parts, delta)
    for leader in sorted(leaders.values(), key=lambda i: (abs(float(delta[i])), i)):
        if rises.rows[leader] < 0 or not rises.size[leader]:
            continue
        given = _given_by_others(parts, frames, rises, leader)
        share = float(sum(given.values()) / rises.size[leader])
        if share >= config.explained:
            most = max(given, key=lambda part: (given[part] * np.sign(rises.size[leader]), -part))
            parts.join(leader, most, Link("sum", min(share, 1.0), config.explained))


def _given_by_others(parts: _Parts, frames: StackIndex, rises: _Sources, leader: int) -> dict[int, float]:
    """Return how much of a rise comes through the sources of other groups, each stack by the deepest."""
    part_of = np.full(len(frames.names), -1)
    sources = rises.source >= 0
    part_of[rises.source[sources]] = parts.all()[sources]
    start = np.flatnonzero(frames.first & (frames.label == rises.rows[leader]))
    found = np.full(len(start), -1)
    own = parts.of(leader)
    for step in range(1, frames.deepest):
        there = np.minimum(start + step, len(frames.label) - 1)
        part = np.where(frames.stack[there] == frames.stack[start], part_of[frames.label[there]], -1)
        found = np.where((part >= 0) & (part != own), part, found)
    rise = frames.rise[frames.stack[start]]
    return {int(part): float(rise[found == part].sum()) for part in np.unique(found[found >= 0])}


def _leaders(parts: _Parts, delta: FloatArray) -> dict[int, int]:
    """Return each group's largest rise."""
    return {
        parts.of(members[0]): max(members, key=lambda i: (abs(float(delta[i])), -i))
        for members in parts.groups()
    }


def choose_representative(
    members: Sequence[int],
    modified: BoolArray,
    sizes: FloatArray,
    depths: FloatArray,
    config: CauseConfig | None = None,
) -> int:
    """Return which of some candidates stands for them, as ``group_by_cause`` says.

    Args:
        members: Indexes of the candidates.
        modified: (candidates,) whether a change deployed just before modified each.
        sizes: (candidates,) by how much each rose.
        depths: (candidates,) how deep each stands.
        config: Settings.
    """
    config = config or CauseConfig()
    own = np.array(members)
    largest = own[sizes[own] >= config.explained * sizes[own].max()]
    order = np.lexsort((largest, -sizes[largest], -depths[largest], ~modified[largest]))
    return int(largest[order[0]])


def _as_group(chosen: int, others: Sequence[int], parts: _Parts, rises: _Sources) -> CauseGroup:
    source = int(rises.source[chosen])
    return CauseGroup(
        representative=chosen,
        members=tuple(others),
        explained=tuple(_through(rises, member, source) for member in others),
        links=tuple(parts.link(member) for member in others),
    )


def _through(rises: _Sources, member: int, source: int) -> float:
    names, rise = rises.through(member)
    common = float(rise[names == source].sum())
    size = float(rises.size[member])
    return min(max(common / size, 0.0), 1.0) if size else 0.0


class _Parts:
    """Disjoint sets of candidates, with the link that first joined each to another."""

    def __init__(self, size: int) -> None:
        self._part = np.arange(size)
        self._links: dict[int, Link] = {}

    def of(self, one: int) -> int:
        """Return the number of a candidate's set: its smallest member."""
        return int(self._part[one])

    def all(self) -> IntArray:
        """Return the number of each candidate's set."""
        return self._part

    def join(self, one: int, other: int, link: Link) -> None:
        """Make two sets one."""
        parts = sorted((self.of(one), self.of(other)))
        if parts[0] == parts[1]:
            return
        self._links.setdefault(one, link)
        self._links.setdefault(other, link)
        self._part = np.where(self._part == parts[1], parts[0], self._part)

    def link(self, one: int) -> Link:
        """Return the link that first joined a candidate to something; it must not be alone."""
        return self._links[one]

    def groups(self) -> list[list[int]]:
        """Return the members of each set, by the smallest."""
        order = np.argsort(self._part, kind="stable")
        bounds = np.flatnonzero(np.diff(self._part[order])) + 1
        return [chunk.tolist() for chunk in np.split(order, bounds)]
