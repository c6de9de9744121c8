"""Which regressions have one cause, by how alike they are; new ones and those told before (FBDetect §5.4.8).

Each feature is a similarity of two regressions, at most 1:

- ``cause``: the share of both rises from stacks in which one thing stands at or below both: a subroutine,
  whether it is found to regress itself or not, or what one change modified. Two callers of a regressed
  subroutine share no stack, but they share that.
- ``caller``: the share of one's rise from stacks of the other, where nothing below the other explains its
  rise: it is called more often. A caller of everything is shared by chance; so where it is not rare, only so
  much of the rise counts as all that it calls rose alike.
- ``release``: how improbable it is that so many of the changes deployed at one moment go along with a
  regression, where a change of that moment modified either: 1 less the chance.
- ``stacks``: stack-trace overlap. As the only feature of a rule, the share of a rise from the union of a
  group's stacks; beside others, the share of both rises from stacks that hold both.
- ``correlation``: Pearson's coefficient of the series, the worse direction taken for up.
- ``metric_id``: cosine of the metric ids' TF-IDF vectors of 2- and 3-grams.

What two regressions are alike in joins them, by rules that users may write. Where a rule asks for the overlap
with a group alone, a regression of which nothing is linked joins the group with the largest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.dedup.links import Link
from pipeline.dedup.rules import Between, Feature, MergeRule, PairwiseConfig
from pipeline.model import BoolArray, FloatArray, IntArray
from pipeline.stacks import explained_shares


@dataclass(frozen=True, slots=True)
class Nearest:
    """What a regression was compared with and is most like, and the link, which misses its bound."""

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


@dataclass(frozen=True, slots=True)
class Likeness:
    """What is known of n regressions: which may be one at all, and their similarities, pair by pair."""

    gcpu: BoolArray  # (n,) which are of gCPU; the others are of service-level metrics
    near: BoolArray  # (n, n) which may be one, by time and direction
    features: Mapping[Feature, FloatArray]  # (n, n) each, symmetric
    holds: BoolArray  # (n, stacks) which stacks hold which
    change: FloatArray  # (stacks,) by how much each stack's share grew


def merge_alike(
    found: Likeness, known: Sequence[Sequence[int]] = (), config: PairwiseConfig | None = None
) -> Merged:
    """Merge what is alike, the most similar first.

    Groups that are known already take up others, but never each other: they were told apart.

    Args:
        found: The regressions, those of known groups among them.
        known: Known groups as indexes.
        config: Rules and bounds.

    Returns:
        All groups, the known ones first and in order, the others by their smallest index.
    """
    config = config or PairwiseConfig()
    parts = _Parts(len(found.gcpu), known)
    links: dict[int, Link] = {}
    for _, link, one, other in sorted(_links(found, config), key=lambda item: (-item[0], *item[2:])):
        if parts.join(one, other):
            links.setdefault(one, link)
            links.setdefault(other, link)
    missed = _absorb(found, parts, links, config)
    return Merged(parts.groups(), links, _nearest(found, parts.roots(), missed, config))


def least_bound(config: PairwiseConfig, *, gcpu: bool) -> float:
    """Return the lowest bound of any rule for two regressions of gCPU, or of service-level metrics."""
    kinds = ("any", "gcpu" if gcpu else "service")
    bounds = [bound for rule in config.rules if rule.between in kinds for bound in rule.bounds.values()]
    return min(bounds, default=config.most)


def stack_overlaps(holds: BoolArray, change: FloatArray) -> FloatArray:
    """Return the share of both rises from stacks that hold both, of the smaller such share: (n, n).

    Args:
        holds: (n, stacks) which stacks hold which series.
        change: (stacks,) by how much each stack's share grew.
    """
    shares = np.clip(explained_shares(holds, change), 0.0, 1.0)
    return np.asarray(np.minimum(shares, shares.T), dtype=np.float64)


def is_of_a_group(rule: MergeRule) -> bool:
    """Tell whether a rule asks for the overlap of stacks alone, which is that with a group."""
    return tuple(rule.bounds) == ("stacks",) and rule.between in ("any", "gcpu")


def day_differences(values: FloatArray, columns: slice, *, day: int) -> FloatArray:
    """Return by how much series differ in some windows from what they were a day before.

    What all series do every day would make any two alike.

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


def _links(found: Likeness, config: PairwiseConfig) -> Iterable[tuple[float, Link, int, int]]:
    """Return the pairs that a rule lets merge, each with the sum of its similarities."""
    together = np.triu(found.near, k=1)
    total = np.add.reduce(list(found.features.values()), initial=0.0) if found.features else 0.0
    total = np.broadcast_to(total, together.shape)
    seen = np.zeros_like(together)
    for rule in config.rules:
        if is_of_a_group(rule):
            continue
        fits = together & _between(rule.between, found.gcpu) & ~seen
        for feature, bound in rule.bounds.items():
            known = found.features.get(feature)
            fits = fits & (known >= bound) if known is not None else np.zeros_like(fits)
        seen |= fits
        for one, other in np.argwhere(fits).tolist():
            scores = {feature: float(found.features[feature][one, other]) for feature in rule.bounds}
            feature = min(scores, key=lambda name: scores[name] - rule.bounds[name])
            yield float(total[one, other]), Link(feature, scores[feature], rule.bounds[feature]), one, other


def _between(between: Between, gcpu: BoolArray) -> BoolArray:
    both = gcpu[:, None] & gcpu[None, :]
    neither = ~gcpu[:, None] & ~gcpu[None, :]
    mixed = ~(both | neither)
    return {"any": np.ones_like(both), "gcpu": both, "service": neither, "mixed": mixed}[between]


def _nearest(
    found: Likeness, roots: IntArray, missed: Mapping[int, Nearest], config: PairwiseConfig
) -> dict[int, Nearest]:
    """Return for each regression which one of another group came nearest to the bounds of a rule.

    Args:
        found: The regressions.
        roots: (n,) what their groups are known by.
        missed: What came nearest by the rule that asks for the overlap with a group.
        config: Rules and bounds.
    """
    apart = found.near & (roots[:, None] != roots[None, :])
    nearest = dict(missed)
    for rule in config.rules:
        if is_of_a_group(rule) or not rule.bounds.keys() <= found.features.keys():
            continue
        short = np.array([found.features[feature] - bound for feature, bound in rule.bounds.items()])
        asked = apart & _between(rule.between, found.gcpu)
        margins = np.where(asked, short.min(axis=0), -np.inf)
        for one in np.flatnonzero(asked.any(axis=1)).tolist():
            other = int(margins[one].argmax())
            known = nearest.get(one)
            if known is None or margins[one, other] > known.link.similarity - known.link.bound:
                feature = [*rule.bounds][int(short[:, one, other].argmin())]
                similarity = float(found.features[feature][one, other])
                nearest[one] = Nearest(other, Link(feature, similarity, rule.bounds[feature]))
    return nearest


def _absorb(
    found: Likeness, parts: _Parts, links: dict[int, Link], config: PairwiseConfig
) -> dict[int, Nearest]:
    """Let what stands alone join the group whose stacks explain its rise, if a rule says so, rare ones first.

    So a caller joins what it calls; that one in turn is too small a part of its caller to draw others in.

    Returns:
        Of those that no group explains, the one that comes nearest to it.
    """
    missed: dict[int, Nearest] = {}
    bound = min((rule.bounds["stacks"] for rule in config.rules if is_of_a_group(rule)), default=None)
    if bound is None:
        return missed
    weighted = found.holds * found.change
    own = weighted.sum(axis=1)
    size = np.abs(own)
    certain = size > 1e-12 * np.abs(weighted).sum(axis=1)
    roots = parts.roots()
    for one in np.argsort(size, kind="stable").tolist():
        if not certain[one] or not found.gcpu[one] or not parts.is_alone(one):
            continue
        # What is larger explains all that it calls, whatever made that rise.
        near = found.near[one] & (size <= size[one])
        near[one] = False
        members = np.flatnonzero(near)
        if not len(members):
            continue
        members = members[np.argsort(roots[members], kind="stable")]
        starts = np.flatnonzero(np.diff(roots[members], prepend=-1))
        stacks = np.flatnonzero(found.holds[one])
        unions = np.logical_or.reduceat(found.holds[np.ix_(members, stacks)], starts, axis=0)
        shares = unions @ found.change[stacks] / own[one]
        best = int(shares.argmax())
        other, link = int(members[starts[best]]), Link("stacks", min(float(shares[best]), 1.0), bound)
        if shares[best] < bound:
            missed[one] = Nearest(other, link)
        elif parts.join(one, other):
            links[one] = link
            roots = parts.roots()
    return missed


class _Parts:
    """Disjoint sets of regressions, of which no two known groups become one."""

    def __init__(self, size: int, known: Sequence[Sequence[int]]) -> None:
        self._parent = list(range(size))
        self._sizes = [1] * size
        self._known: dict[int, int] = {}
        for number, group in enumerate(known):
            for member in group[1:]:
                self._parent[self._root(member)] = self._root(group[0])
            self._known[self._root(group[0])] = number

    def join(self, one: int, other: int) -> bool:
        """Make two parts one; False if they are already, or must not be."""
        one, other = self._root(one), self._root(other)
        if one == other or (one in self._known and other in self._known):
            return False
        if one in self._known or (other not in self._known and one < other):
            one, other = other, one
        self._parent[one] = other
        self._sizes[other] += self._sizes[one]
        return True

    def is_alone(self, one: int) -> bool:
        """Tell whether a regression is a part by itself, and no known one."""
        root = self._root(one)
        return root not in self._known and self._sizes[root] == 1

    def roots(self) -> IntArray:
        """Return what each regression's part is known by: (n,)."""
        return np.array([self._root(one) for one in range(len(self._parent))], dtype=np.int64)

    def groups(self) -> tuple[tuple[int, ...], ...]:
        """Return every part, known ones first."""
        found: dict[int, list[int]] = {}
        for member in range(len(self._parent)):
            found.setdefault(self._root(member), []).append(member)
        order = sorted(
            found, key=lambda root: (root not in self._known, self._known.get(root, found[root][0]))
        )
        return tuple(tuple(found[root]) for root in order)

    def _root(self, one: int) -> int:
        while self._parent[one] != one:
            self._parent[one] = self._parent[self._parent[one]]
            one = self._parent[one]
        return one
