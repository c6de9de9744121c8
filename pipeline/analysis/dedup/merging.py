"""Merging: regressions that a rule links become one, within a scan and across scans (FBDetect §5.4.8).

What two regressions have in common joins them, the most similar first, by rules that users may write, as far
as the constraints allow. Where a rule asks for the overlap with a group alone, a regression of which nothing
is linked joins the group with the largest. Groups that are known already take up others, but never each
other: they were reported separately.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.analysis.dedup.constraints import may_be_one
from pipeline.analysis.dedup.explained import is_caused
from pipeline.analysis.dedup.links import Link
from pipeline.analysis.dedup.pairs import Pairs, of_pairs
from pipeline.analysis.dedup.rules import ROUNDING, Between, MergeRule
from pipeline.model import BoolArray, IntArray

_OF_STACKS = frozenset(("cause", "caller", "stacks"))
"""Features that are read from stacks."""


@dataclass(frozen=True, slots=True)
class Nearest:
    """What a regression was compared with and is most similar to, and the link, which misses its bound."""

    other: int
    link: Link


@dataclass(frozen=True, slots=True)
class Merged:
    """Groups as indexes, and for each regression that was linked to another one, by what.

    ``nearest`` has what is in another group; it lacks those that were compared with nothing there.
    """

    groups: tuple[tuple[int, ...], ...]
    links: Mapping[int, Link]
    nearest: Mapping[int, Nearest]


@dataclass(frozen=True, slots=True, eq=False)
class _Allowed:
    """Pairs as the constraints leave them."""

    pairs: Pairs
    may: BoolArray  # (n, n) which may be one
    rules: Sequence[MergeRule]  # those that no left-out feature stands in
    apart: BoolArray  # (n, n) which have causes of their own, whatever stacks they have in common

    def between(self, kind: Between) -> BoolArray:
        """Return the pairs that a rule is for: (n, n)."""
        return of_pairs([kind], self.pairs.gcpu)


def merge(pairs: Pairs) -> Merged:
    """Merge what is linked, the most similar first.

    Returns:
        All groups, those of reported events first and in their order, the others by their smallest index.
    """
    rules = [rule for rule in pairs.config.pairwise.rules if all(map(pairs.config.runs, rule.bounds))]
    caused = np.array([is_caused(candidate) for candidate in pairs.candidates], dtype=np.bool_)
    caused[: len(pairs.reported)] = False  # by its explanation, which is of other hours
    allowed = _Allowed(pairs, may_be_one(pairs), rules, _apart(pairs, caused))
    groups = _Groups(len(pairs.candidates), [known.event for known in pairs.reported], pairs.gcpu)
    links: dict[int, Link] = {}
    # That two begin together says less than what they have in common in stacks or in their course.
    linked = sorted(_linked(allowed), key=lambda item: (item[1].code == "onset", -item[0], *item[2:]))
    for _, link, row, other in linked:
        # What got slower in two places has two causes, though one metric may have got worse by both.
        if link.code == "onset" and groups.hold_gcpu(row, other):
            continue
        if groups.join(row, other):
            links.setdefault(row, link)
            links.setdefault(other, link)
    missed = _absorb(allowed, groups, links)
    return Merged(groups.all(), links, _nearest(allowed, groups.roots(), missed))


def _apart(pairs: Pairs, caused: BoolArray) -> BoolArray:
    """Return which pairs have causes of their own that no change made together: (n, n)."""
    apart = caused[:, None] & caused[None, :]
    for row, other in np.argwhere(np.triu(apart, k=1)).tolist():
        if pairs.causes[row].changes.keys() & pairs.causes[other].changes.keys():
            apart[row, other] = apart[other, row] = False
    return apart


def _linked(allowed: _Allowed) -> Iterable[tuple[float, Link, int, int]]:
    """Yield the pairs that a rule lets merge, each with the sum of its similarities."""
    together = np.triu(allowed.may, k=1)
    total = (
        np.add.reduce(list(allowed.pairs.features.values()), initial=0.0) if allowed.pairs.features else 0.0
    )
    total = np.broadcast_to(total, together.shape)
    seen = np.zeros_like(together)
    for rule in allowed.rules:
        if rule.is_of_group:
            continue
        fits = together & allowed.between(rule.between) & ~seen
        for feature, bound in rule.bounds.items():
            known = allowed.pairs.features.get(feature)
            fits = fits & (known >= bound - ROUNDING) if known is not None else np.zeros_like(fits)
        if not _OF_STACKS.isdisjoint(rule.bounds):
            fits = fits & ~allowed.apart
        seen |= fits
        for row, other in np.argwhere(fits).tolist():
            scores = {feature: float(allowed.pairs.features[feature][row, other]) for feature in rule.bounds}
            feature = min(scores, key=lambda name: scores[name] - rule.bounds[name])
            yield float(total[row, other]), Link(feature, scores[feature], rule.bounds[feature]), row, other


def _absorb(allowed: _Allowed, groups: _Groups, links: dict[int, Link]) -> dict[int, Nearest]:
    """Let a group join what explains its largest rise by stacks, if a rule says so, small ones first.

    So a caller joins what it calls; that one in turn is too small a part of its caller to draw others in. The
    caller of several causes is the sum of their rises: it joins the one that gives most of it.

    Returns:
        Of those that nothing explains, what comes nearest to it.
    """
    missed: dict[int, Nearest] = {}
    bound = min((rule.bounds["stacks"] for rule in allowed.rules if rule.is_of_group), default=None)
    if bound is None:
        return missed
    weighted = allowed.pairs.holds * allowed.pairs.rise
    rises = weighted.sum(axis=1)
    size = np.round(np.abs(rises), 12)  # shares: what is equal is not to differ by the order of a sum
    certain = allowed.pairs.gcpu & (size > 1e-12 * np.abs(weighted).sum(axis=1))
    roots = groups.roots()
    for row in np.argsort(size, kind="stable").tolist():
        if not certain[row] or groups.is_reported(row):
            continue
        same = np.flatnonzero(roots == roots[row])
        if same[size[same].argmax()] != row:  # of equals the first stands for its group
            continue
        # What is larger explains all that it calls, whatever made that rise.
        within = allowed.may[row] & allowed.pairs.gcpu & (size <= size[row]) & (roots != roots[row])
        within &= ~allowed.apart[row]
        members = np.flatnonzero(within)
        if not len(members):
            continue
        other, share = _explaining(allowed.pairs, row, members, roots, float(rises[row]))
        link = Link("stacks", min(share, 1.0), bound)
        if share < bound - ROUNDING:
            missed[row] = Nearest(other, link)
        elif groups.join(row, other):
            links[row] = link
            roots = groups.roots()
    return missed


def _explaining(pairs: Pairs, row: int, members: IntArray, roots: IntArray, rise: float) -> tuple[int, float]:
    """Return a member of the group that explains most of a rise, and the share that all explain together."""
    members = members[np.argsort(roots[members], kind="stable")]
    starts = np.flatnonzero(np.diff(roots[members], prepend=-1))
    stacks = np.flatnonzero(pairs.holds[row])
    unions = np.logical_or.reduceat(pairs.holds[np.ix_(members, stacks)], starts, axis=0)
    shares = unions @ pairs.rise[stacks] / rise
    together = float(pairs.rise[stacks[unions.any(axis=0)]].sum() / rise)
    best = int(shares.argmax())
    return int(members[starts[best]]), max(float(shares[best]), together)


def _nearest(allowed: _Allowed, roots: IntArray, missed: Mapping[int, Nearest]) -> dict[int, Nearest]:
    """Return for each regression which one of another group came nearest to the bounds of a rule.

    Args:
        allowed: The pairs.
        roots: (n,) what their groups are known by.
        missed: What came nearest by the rule that asks for the overlap with a group.
    """
    apart = allowed.may & (roots[:, None] != roots[None, :])
    nearest = dict(missed)
    for rule in allowed.rules:
        if rule.is_of_group or not rule.bounds.keys() <= allowed.pairs.features.keys():
            continue
        short = np.array([allowed.pairs.features[feature] - bound for feature, bound in rule.bounds.items()])
        asked = apart & allowed.between(rule.between)
        margins = np.where(asked, short.min(axis=0), -np.inf)
        for row in np.flatnonzero(asked.any(axis=1)).tolist():
            other = int(margins[row].argmax())
            known = nearest.get(row)
            if known is None or margins[row, other] > known.link.similarity - known.link.bound:
                feature = [*rule.bounds][int(short[:, row, other].argmin())]
                similarity = float(allowed.pairs.features[feature][row, other])
                nearest[row] = Nearest(other, Link(feature, similarity, rule.bounds[feature]))
    return nearest


class _Groups:
    """Disjoint sets of regressions, of which no two that hold a reported event become one."""

    def __init__(self, size: int, events: Sequence[str], gcpu: BoolArray) -> None:
        from scipy.cluster.hierarchy import DisjointSet  # slow to import, and dedup starts with this module

        self._sets = DisjointSet(range(size))
        self._first: dict[str, int] = {}  # event → the first of it
        for row, event in enumerate(events):
            # What has no event stands for itself.
            self._sets.merge(self._first.setdefault(event or f"of its own: {row}", row), row)
        self._gcpu = gcpu
        self._events = {self._sets[row]: number for number, row in enumerate(self._first.values())}

    def join(self, row: int, other: int) -> bool:
        """Make two sets one; False if they are already, or must not be."""
        roots = self._sets[row], self._sets[other]
        events = [self._events[root] for root in roots if root in self._events]
        if roots[0] == roots[1] or len(events) == 2:
            return False
        self._sets.merge(row, other)
        if events:
            self._events[self._sets[row]] = events[0]
        return True

    def hold_gcpu(self, row: int, other: int) -> bool:
        """Return whether both of two regressions' sets hold some of gCPU."""
        return all(any(self._gcpu[member] for member in self._sets.subset(one)) for one in (row, other))

    def is_reported(self, row: int) -> bool:
        """Return whether a regression's set holds a reported event."""
        return self._sets[row] in self._events

    def roots(self) -> IntArray:
        """Return what each regression's set is known by: (n,)."""
        return np.array([self._sets[row] for row in self._sets], dtype=np.int64)

    def all(self) -> tuple[tuple[int, ...], ...]:
        """Return every set, those of reported events first."""
        members: dict[int, list[int]] = {}
        for row in self._sets:
            members.setdefault(self._sets[row], []).append(row)
        order = sorted(
            members, key=lambda root: (root not in self._events, self._events.get(root, members[root][0]))
        )
        return tuple(tuple(members[root]) for root in order)
