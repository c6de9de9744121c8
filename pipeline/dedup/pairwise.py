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

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.dedup.below import lay_out, measure_rises, sum_sets_below
from pipeline.dedup.explained import alike_shares, explained_shares
from pipeline.dedup.merge_rules import Between, Feature, MergeRule, PairwiseConfig
from pipeline.dedup.releases import sure_of_one_thing
from pipeline.gcpu.labels import element, series_of
from pipeline.gcpu.stacks import Series, membership, share_changes
from pipeline.model import BoolArray, FloatArray, IntArray, StackMatrix


@dataclass(frozen=True, slots=True)
class Link:
    """What makes a regression part of a group: the feature, the similarity, and the bound it reached."""

    feature: str
    similarity: float
    bound: float


@dataclass(frozen=True, slots=True)
class Merged:
    """Groups as indexes, and for each regression that was linked to another one, by what."""

    groups: tuple[tuple[int, ...], ...]
    links: Mapping[int, Link]


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
    _absorb(found, parts, links, config)
    return Merged(parts.groups(), links)


@dataclass(frozen=True, slots=True)
class Causes:
    """What stands at or below a series in most of its rise: each with the share of the rise."""

    subroutines: Mapping[str, float]
    changes: Mapping[str, float]  # by id, of those deployed just before it


def causes_of(
    matrix: StackMatrix,
    series: Sequence[Series],
    modified: Mapping[str, Sequence[str]],
    deployed: Sequence[Collection[str]],
    config: PairwiseConfig | None = None,
) -> list[Causes]:
    """Return what may have made each series rise.

    Args:
        matrix: Stack counts before and after.
        series: (n,) of gCPU, or others, of which nothing is found.
        modified: The subroutines that each change modified, by its id.
        deployed: (n,) ids of the changes deployed just before each began to rise. Of all that were deployed at
            any time, some modified any two subroutines.
        config: Settings.
    """
    config = config or PairwiseConfig()
    frames = lay_out(matrix)
    rises = measure_rises(frames, series)
    ids = sorted(set().union(*deployed))
    through = sum_sets_below(frames, rises.rows, [modified[one] for one in ids])
    is_subroutine = np.array([series_of(name)[0] == "subroutine" for name in frames.names], dtype=np.bool_)
    found = []
    for place, (row, size) in enumerate(zip(rises.rows.tolist(), rises.size.tolist(), strict=True)):
        names, rise = rises.through(place)
        asked = is_subroutine[names] | (names == row)
        span = slice(through.indptr[place], through.indptr[place + 1])
        subroutines = _most_of(frames.names, names[asked], rise[asked], size, config.most)
        if size:
            subroutines[frames.names[row]] = 1.0
        by_change = _most_of(ids, through.indices[span], through.data[span], size, config.most)
        before = deployed[place]
        found.append(Causes(subroutines, {one: share for one, share in by_change.items() if one in before}))
    return found


def cause_similarities(
    matrix: StackMatrix,
    series: Sequence[Series],
    causes: Sequence[Causes],
    config: PairwiseConfig | None = None,
) -> dict[Feature, FloatArray]:
    """Return what stacks say of whether regressions have one cause: ``cause`` and ``caller``.

    Args:
        matrix: Stack counts before and after.
        series: (n,)
        causes: (n,) from ``causes_of``.
        config: Settings.
    """
    config = config or PairwiseConfig()
    holds, change = membership(matrix.stacks, series), share_changes(matrix)
    level = holds @ (matrix.after / max(matrix.total_after, 1.0))
    explained = np.minimum(explained_shares(holds, change), 1.0)
    alike = alike_shares(holds, matrix.before / max(matrix.total_before, 1.0), change)
    explained = np.where(level < config.rare, explained, np.minimum(explained, alike))
    # A caller that something below explains is no cause itself.
    own = [not cause.subroutines.keys() - {element(*s)} for s, cause in zip(series, causes, strict=True)]
    callers = np.where(np.array(own)[None, :], explained, 0.0)
    callers = _with_all_behind(callers, matrix, series, causes, config)
    common = np.maximum(
        _common([cause.subroutines for cause in causes]), _common([cause.changes for cause in causes])
    )
    return {"cause": common, "caller": np.maximum(callers, callers.T)}


def _with_all_behind(
    callers: FloatArray,
    matrix: StackMatrix,
    series: Sequence[Series],
    causes: Sequence[Causes],
    config: PairwiseConfig,
) -> FloatArray:
    """Let a caller explain no more of a rise than of what is behind that one: (n, n).

    What is below both may have risen in other callers' stacks too, and then this one is not the reason.
    """
    called, caller = np.nonzero(callers >= config.most)
    names = sorted({name for place in set(called.tolist()) for name in causes[place].subroutines})
    wanted = np.unique(caller)
    if not names:
        return callers
    holds = membership(matrix.stacks, [*(series_of(name) for name in names), *(series[i] for i in wanted)])
    change = share_changes(matrix)
    behind = explained_shares(holds, change)[: len(names), len(names) :]
    row = {name: place for place, name in enumerate(names)}
    column = {place: i for i, place in enumerate(wanted.tolist())}
    found = callers.copy()
    for one, other in zip(called.tolist(), caller.tolist(), strict=True):
        rows = [row[name] for name in causes[one].subroutines]
        found[one, other] = min(callers[one, other], float(behind[rows, column[other]].min(initial=1.0)))
    return found


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


def release_similarities(
    hits: Sequence[Iterable[tuple[float, str]]],
    deployed: Mapping[float, int],
    config: PairwiseConfig | None = None,
) -> FloatArray:
    """Return how sure it is that two regressions come from one release: (n, n).

    Unrelated changes go along with a regression rarely, so that many of one release that do have a common
    reason: they are parts of one thing, such as a new feature.

    Args:
        hits: For each regression the moment and the id of each change that may have made it rise.
        deployed: How many changes that modify subroutines were deployed at each moment.
        config: Settings.
    """
    config = config or PairwiseConfig()
    changes: dict[float, set[str]] = {}
    places: dict[float, set[int]] = {}
    for place, own in enumerate(hits):
        for moment, change in own:
            changes.setdefault(moment, set()).add(change)
            places.setdefault(moment, set()).add(place)
    similarity = np.zeros((len(hits), len(hits)))
    for moment, hit in changes.items():
        sure = sure_of_one_thing(len(hit), deployed.get(moment, 0), config.release)
        rows = sorted(places[moment])
        block = np.ix_(rows, rows)
        similarity[block] = np.maximum(similarity[block], sure)
    return similarity


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


def _most_of(
    names: Sequence[str], places: IntArray, rises: FloatArray, whole: float, least: float
) -> dict[str, float]:
    """Return the things through which most of a rise comes, each with its share."""
    if not whole:
        return {}
    shares = rises / whole
    most = shares >= least
    return {
        names[place]: min(share, 1.0)
        for place, share in zip(places[most].tolist(), shares[most].tolist(), strict=True)
    }


def _common(below: Sequence[Mapping[str, float]]) -> FloatArray:
    holders: dict[str, list[int]] = {}
    for place, things in enumerate(below):
        for thing in things:
            holders.setdefault(thing, []).append(place)
    similarity = np.zeros((len(below), len(below)))
    for thing, rows in holders.items():
        shares = np.array([below[row][thing] for row in rows])
        block = np.ix_(rows, rows)
        similarity[block] = np.maximum(similarity[block], np.minimum.outer(shares, shares))
    return similarity


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


def _absorb(found: Likeness, parts: _Parts, links: dict[int, Link], config: PairwiseConfig) -> None:
    """Let what stands alone join the group whose stacks explain its rise, if a rule says so, rare ones first.

    So a caller joins what it calls; that one in turn is too small a part of its caller to draw others in.
    """
    bound = min((rule.bounds["stacks"] for rule in config.rules if is_of_a_group(rule)), default=None)
    if bound is None:
        return
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
        if shares[best] >= bound and parts.join(one, int(members[starts[best]])):
            links[one] = Link("stacks", min(float(shares[best]), 1.0), bound)
            roots = parts.roots()


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
