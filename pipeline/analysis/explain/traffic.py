"""Traffic: the factors by which the work of whole entries moved together, read from what stands below them.

An entry is a node near the root whose work comes as requests come: an annotation such as ``endpoint=``, a
branch of the first fork, and whatever moved by itself on earlier days. Its factor is what most of its parts
agree on, so that one part that got dearer does not pass for traffic; parts far from it do not count.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipeline.analysis.explain.noise import Compared
from pipeline.analysis.stacks import StackIndex, caller_nodes
from pipeline.model import BoolArray, FloatArray, Int32Array, IntArray

ENOUGH = 30.0
"""Samples expected of a part from which on its ratio says something."""

_FEW_PARTS = 4
"""Parts of which a majority is no matter of one of them."""

_ERRORS = 4.0
"""Standard errors beyond which a part does not follow its entry, and an entry does not follow its caller."""

_WANDER = 0.01
"""Standard deviation by which entries and parts stray without anybody's doing, relative."""

_ROUNDS = 6

_HALF = 0.5
"""Samples that keep a drained entry from a factor of nothing."""

_VOLATILE = 3.0
"""Mean squared standard score of earlier days from which on a node carries traffic of its own."""


@dataclass(frozen=True, slots=True, eq=False)
class Entries:
    """Nodes of the call tree that may have traffic of their own, callers first."""

    stacks: tuple[Int32Array, ...]  # of each entry; the first is the root's, which are all
    parent: IntArray  # (entries,) number of the nearest entry above; -1 of the root
    nearest: IntArray  # (stacks,) number of the deepest entry of each stack


def find_entries(index: StackIndex, compared: Compared) -> Entries:
    """Return the nodes of a call tree that carry traffic of their own.

    Args:
        index: Of the stacks.
        compared: Samples of the change, and of earlier days, which say what moves by itself.
    """
    seen, expected, per_sample = compared.seen[1:], compared.expected[1:], compared.per_sample[1:]
    groups: list[Int32Array] = [np.arange(index.stacks, dtype=np.int32)]
    parents, nearest = [-1], np.zeros(index.stacks, dtype=np.int64)
    forked = np.zeros(index.stacks, dtype=np.bool_)  # whether a fork is above, at which entries begin
    lengths = np.diff(index.starts)
    for depth, nodes in enumerate(caller_nodes(index)):
        reaching = np.flatnonzero(lengths > depth)
        node, first, size = _numbered(nodes[reaching])
        if len(size) == len(reaching):  # no two stacks have a node in common any more
            break
        above = nearest[reaching[first]]
        whole = np.bincount(nearest, minlength=len(groups))[above]
        divided = (size > 1) & (size < whole)  # a caller and all that it calls are one
        label = index.label[index.starts[reaching[first]] + depth]
        annotated = ~index.subroutine[label]
        begins = ~forked[reaching[first]] | _volatile(
            seen, expected, per_sample, nearest, reaching, node, above
        )
        is_entry = divided & (annotated | ((size >= _FEW_PARTS) & begins))
        forked[reaching[divided[node]]] = True
        for number in np.flatnonzero(is_entry).tolist():
            stacks = reaching[node == number].astype(np.int32)
            nearest[stacks] = len(groups)
            groups.append(stacks)
            parents.append(int(above[number]))
    return Entries(tuple(groups), np.array(parents, dtype=np.int64), nearest)


def traffic_factors(index: StackIndex, entries: Entries, compared: Compared) -> FloatArray:
    """Return the factor by which the traffic of each stack's entry moved: (rows, stacks).

    Args:
        index: Of the stacks.
        entries: The nodes that may have a factor.
        compared: Samples; each row is a comparison of its own.
    """
    seen, expected, per_sample = compared.seen, compared.expected, compared.per_sample.tolist()
    leaf = index.label[index.starts[1:] - 1]
    logarithms = np.zeros((len(entries.stacks), len(seen)))
    for entry, stacks in enumerate(entries.stacks):
        above = logarithms[entries.parent[entry]] if entry else np.zeros(len(seen))
        logarithms[entry] = above
        parts = _parts(leaf[stacks], seen[:, stacks], expected[:, stacks])
        for row, (part_seen, part_expected) in enumerate(zip(*parts, strict=True)):
            logarithms[entry, row] = _factor(
                part_seen, part_expected, per_sample[row], float(above[row]), is_root=not entry
            )
    return np.asarray(np.exp(logarithms[entries.nearest]).T)


def _numbered(nodes: Int32Array) -> tuple[IntArray, IntArray, IntArray]:
    """Return nodes numbered from 0 on, a position of each number, and how often each comes."""
    _, first, number, size = np.unique(nodes, return_index=True, return_inverse=True, return_counts=True)
    return number.reshape(-1), first, size


def _volatile(
    seen: FloatArray,
    expected: FloatArray,
    per_sample: FloatArray,
    nearest: IntArray,
    stacks: IntArray,
    node: IntArray,
    above: IntArray,
) -> BoolArray:
    """Return which nodes strayed from the entry above on earlier days by more than sampling can: (nodes,)."""
    days, nodes = len(seen), len(above)
    if days < _FEW_PARTS:
        return np.zeros(nodes, dtype=np.bool_)
    own = [np.bincount(node, row[stacks], minlength=nodes) for row in (*seen, *expected)]
    whole = [np.bincount(nearest, row)[above] for row in (*seen, *expected)]
    own_seen, own_expected = np.split(np.array(own), 2)
    whole_seen, whole_expected = np.split(np.array(whole), 2)
    mean = own_expected * whole_seen / np.maximum(whole_expected, 1.0)
    usable = mean >= ENOUGH
    scores = (own_seen - mean) ** 2 / (per_sample[:, None] * np.maximum(mean, 1.0))
    usable_days = usable.sum(axis=0)
    # Without the largest: of one day a release may be the reason.
    squares = np.sort(np.where(usable, scores, 0.0), axis=0)[:-1].sum(axis=0)
    squares = squares / np.maximum(usable_days - 1, 1)
    return np.asarray((usable_days >= _FEW_PARTS) & (squares > _VOLATILE), dtype=np.bool_)


def _parts(leaf: Int32Array, seen: FloatArray, expected: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return samples summed by what the stacks end in, where there are leaves enough: (rows, parts)."""
    leaves, number = np.unique(leaf, return_inverse=True)
    if len(leaves) < _FEW_PARTS:
        return seen, expected
    rows = [np.bincount(number, row, minlength=len(leaves)) for row in (*seen, *expected)]
    return np.array(rows[: len(seen)]), np.array(rows[len(seen) :])


def _factor(
    seen: FloatArray, expected: FloatArray, per_sample: float, above: float, *, is_root: bool
) -> float:
    """Return the logarithm of the factor that most parts agree on, drawn to the caller's by its error."""
    usable = expected >= ENOUGH
    seen, expected = seen[usable], expected[usable]
    if len(seen) < _FEW_PARTS:
        return above
    least = _HALF / float(expected.sum())
    factor = max(_middle(seen / expected, np.sqrt(expected)), least)
    follows = np.ones(len(seen), dtype=np.bool_)
    for _ in range(_ROUNDS):
        mean = factor * expected
        follows = np.abs(seen - mean) <= _ERRORS * _error(mean, per_sample)
        if not follows.any():
            return above
        weight = _weights(expected[follows])
        factor = max(float(weight @ seen[follows] / (weight @ expected[follows])), least)
    if 2 * expected[follows].sum() < expected.sum():  # no majority: its parts went ways of their own
        return above
    own = float(np.log(factor))
    if is_root:
        return own
    usual = float(np.exp(above)) * float(weight @ expected[follows])
    if abs(factor * float(weight @ expected[follows]) - usual) > _ERRORS * float(_error(usual, per_sample)):
        return own
    return above + (own - above) * _WANDER**2 / (_WANDER**2 + per_sample / max(usual, 1.0))


def _weights(expected: FloatArray) -> FloatArray:
    """Return weights by which no part is more than a share of all: it may be dear instead of busy."""
    return np.asarray(np.minimum(1.0, expected.sum() / _FEW_PARTS / np.maximum(expected, 1.0)))


def _error(mean: FloatArray | float, per_sample: float) -> FloatArray:
    return np.asarray(np.sqrt(per_sample * mean + (_WANDER * mean) ** 2), dtype=np.float64)


def _middle(ratios: FloatArray, weights: FloatArray) -> float:
    order = np.argsort(ratios, kind="stable")
    heaped = np.cumsum(weights[order])
    return float(ratios[order][np.searchsorted(heaped, heaped[-1] / 2)])
