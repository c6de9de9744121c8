"""Refactorings of a candidate: stacks similar but for what a refactoring changes.

A refactoring leaves most of a stack as it was. A renamed subroutine, or a whole class of them, stands in the
same stacks at the same places; a subroutine split in two likewise; one that was extracted stands in stacks
that lacked it before; work that was moved to a sibling is in the same stack but for one label. The stacks
that may have given a candidate its cost are few then, and so their noise is small: these are cost domains
(FBDetect §5.4.6) that need no knowledge of classes or changes.

Names alone say which stacks are similar. Its cost says whether a label is new or vanished, with an
error that does not grow with the number of labels (a false discovery rate). Whether the cost moved is for
``decision`` to decide.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from pipeline.analysis.cost_shift.domains import Domain, named
from pipeline.analysis.cost_shift.stack_history import StackHistory
from pipeline.analysis.stacks import StackIndex
from pipeline.counting.names import method_of
from pipeline.model import BoolArray, FloatArray, Int32Array, IntArray
from pipeline.model.frames import series_of

Keys = NDArray[np.uint64]

_BITS = 20
_SHIFT = np.uint64(64 - _BITS)
"""First bits of a key by which most that are unknown are passed over, in a table that stays in the cache."""

_LIKELY = 1.645
"""Standard errors above which chance brings 5 %."""

_SEED = 0x5F0D
"""Any: keys are only compared with each other."""


@dataclass(frozen=True, slots=True)
class RefactoringConfig:
    """Settings of the search."""

    most: float = 0.5  # a label that lost more than this share vanishes; a new one won more
    mistaken: float = 0.005  # share of the labels taken for new or vanished that chance makes look so


@dataclass(frozen=True, slots=True, eq=False)
class _LabelKeys:
    """The random numbers that keys are sums of."""

    labels: Keys  # (labels,)
    sign: Keys  # (1,) in the place of a label
    of_position: Keys  # (deepest + 1,) odd

    def at(self, label: Int32Array, depth: int) -> Keys:
        """Return what each of some labels adds to its stack's key at one depth."""
        return np.asarray(self.labels[label] * self.of_position[depth], dtype=np.uint64)


@dataclass(frozen=True, slots=True, eq=False)
class ElementNumbers:
    """Numbers of some elements, those that anything is said of."""

    position: IntArray  # (entries,) of the element, ascending
    number: IntArray  # (entries,)

    def of(self, positions: IntArray | Int32Array) -> IntArray:
        """Return the numbers of those elements that have one."""
        return self.number[np.isin(self.position, positions)]

    def having(self, numbers: IntArray) -> IntArray:
        """Return the positions of all elements with one of some numbers."""
        return self.position[np.isin(self.number, numbers)]


@dataclass(frozen=True, slots=True, eq=False)
class StackSimilarity:
    """Which stacks are similar, as numbers: equal ones are equal stacks, but for what is left out."""

    same_positions: IntArray  # (stacks,) with every new or vanished label replaced by one sign
    same_rest: IntArray  # (stacks,) with every new or vanished label left out
    standing: ElementNumbers  # of vanished labels: as same_positions, together with the element's position
    beside: ElementNumbers  # with the element replaced by a sign, where other stacks are the same then
    whole: IntArray  # (stacks,) with nothing left out
    without: ElementNumbers  # with the element left out, where that is a stack: its number in ``whole``
    lost: BoolArray  # (labels,) beyond what chance makes of one of them
    fresh: BoolArray  # (stacks,) that hold a new label

    def standing_at(self, index: StackIndex, positions: IntArray | Int32Array) -> IntArray:
        """Return what ``standing`` would be of some elements."""
        return _standing(index, self.same_positions, positions)

    def with_refactored(self, rows: BoolArray) -> BoolArray:
        """Return stacks and what became of them: what was renamed, extracted or inlined was not saved."""
        old = rows & ~self.fresh
        return rows | _matching(self.same_positions, old) | _matching(self.same_rest, old)


@dataclass(frozen=True, slots=True)
class Refactorings:
    """Domains of a candidate and what it may have been before."""

    renamed: Domain | None = None  # all vanished labels that stood where it stands
    one_to_one: tuple[Domain, ...] = ()  # each of them alone
    namesakes: tuple[Domain, ...] = ()  # each that lost its cost and has the same method name
    extracted: Domain | None = None  # what is left of its stacks without it
    moved: Domain | None = None  # the label beside it that lost most
    beside: int = 0  # how many labels stand beside it, of which that is one


def compare_stacks(history: StackHistory, config: RefactoringConfig | None = None) -> StackSimilarity:
    """Return which stacks are similar, in time proportional to their elements, and room to their stacks.

    A stack's key is a sum of random numbers over its labels, each times one of its place, modulo 2^64: so
    leaving a label out is a subtraction.
    """
    index = history.index
    new, vanished, lost = _new_and_vanished(history, config or RefactoringConfig())
    rng = np.random.default_rng(_SEED)
    numbers = rng.integers(2**64, size=len(index.names) + 1, dtype=np.uint64)
    of_position = rng.integers(2**64, size=index.deepest + 1, dtype=np.uint64) | np.uint64(1)
    keys = _LabelKeys(numbers[1:], numbers[:1], of_position)
    whole, positions, rest = _stack_keys(index, keys, new | vanished)
    same_positions = _numbered(positions)
    gone = np.flatnonzero(vanished[index.label])
    without, beside = _element_numbers(index, keys, whole)
    return StackSimilarity(
        same_positions=same_positions,
        same_rest=_numbered(rest),
        standing=ElementNumbers(gone, _standing(index, same_positions, gone)),
        beside=beside,
        whole=_numbered(whole),
        without=without,
        lost=lost,
        fresh=index.holding(index.names[number] for number in np.flatnonzero(new).tolist()),
    )


def find_refactorings(
    history: StackHistory, similar: StackSimilarity, label: str, *, inserted: bool = False
) -> Refactorings:
    """Return the domains that a candidate and its possible refactorings make.

    Args:
        history: The stacks.
        similar: What ``compare_stacks`` says of them.
        label: The candidate, as stacks hold it.
        inserted: Whether it is known for a frame that was put into stacks that stayed as they were.
    """
    index = history.index
    positions = index.positions(label)
    own = index.holding([label])
    stood = similar.standing.having(similar.standing_at(index, positions))
    stood = stood[~own[index.stack[stood]]]
    renamed = None
    if len(stood):
        renamed = Domain(
            _named("renamed from", history, stood), _matching(similar.same_positions, own), gone=True
        )
    left = np.isin(similar.whole, similar.without.of(positions))
    inner = _matching(similar.same_rest, own) | left
    extracted = None
    if len(others := np.flatnonzero(inner & ~own)):
        extracted = Domain(
            _named("extracted from", history, index.starts[1:][others] - 1),
            similar.with_refactored(inner),
            gone=inserted,
        )
    siblings = similar.beside.having(similar.beside.of(positions))
    moved, choices = _most_lost(history, similar, siblings[~own[index.stack[siblings]]], own)
    return Refactorings(
        renamed=renamed,
        one_to_one=_each(history, stood, own),
        namesakes=_namesakes(history, similar, label),
        extracted=extracted,
        moved=moved,
        beside=choices,
    )


def _namesakes(history: StackHistory, similar: StackSimilarity, label: str) -> tuple[Domain, ...]:
    """Return a domain for each subroutine that lost its cost and has the candidate's name in another class.

    However many names a move to another package or a new runtime changes, methods keep theirs, and so does
    the cost of each.
    """
    index = history.index
    kind, name = series_of(label)
    if kind != "subroutine":
        return ()
    own, method = index.holding([label]), method_of(name)
    lost = [index.names[number] for number in np.flatnonzero(similar.lost & index.subroutine).tolist()]
    others = [
        (other, index.holding([other])) for other in lost if other != label and method_of(other) == method
    ]
    # What stands nowhere but in the candidate's stacks, above it or below, has not become it.
    return tuple(
        Domain(f"renamed from: {other}", own | rows, gone=True)
        for other, rows in others
        if (rows & ~own).any()
    )


def _each(history: StackHistory, positions: IntArray, own: BoolArray) -> tuple[Domain, ...]:
    """Return a domain for each label at some places: the stacks that hold it there, and the own ones."""
    index = history.index
    domains = []
    for number in np.unique(index.label[positions]).tolist():
        rows = own.copy()
        rows[index.stack[positions[index.label[positions] == number]]] = True
        domains.append(Domain(f"renamed from: {index.names[number]}", rows, gone=True))
    return tuple(domains)


def _most_lost(
    history: StackHistory, similar: StackSimilarity, positions: IntArray, own: BoolArray
) -> tuple[Domain | None, int]:
    """Return the domain of the label at some places that lost most, and how many labels are there.

    As in ``with_refactored``, a label has lost what all stacks have that are similar, the new ones included.
    """
    index = history.index
    if not len(positions):
        return None, 0
    change = np.where(own, 0.0, history.before[0] - history.after[0])
    by_positions = np.bincount(similar.same_positions, weights=change)
    lost = np.concatenate([by_positions, np.bincount(similar.same_rest, weights=change)])
    kin = np.where(similar.fresh, similar.same_positions, similar.same_rest + len(by_positions))
    pairs = np.unique(np.stack([index.label[positions], kin[index.stack[positions]]]), axis=1)  # each once
    labels, position = np.unique(pairs[0], return_inverse=True)
    best = int(labels[np.argmax(np.bincount(position, weights=lost[pairs[1]]))])
    rows = np.zeros(index.stacks, dtype=np.bool_)
    rows[index.stack[positions[index.label[positions] == best]]] = True
    return Domain(f"moved from: {index.names[best]}", similar.with_refactored(rows) | own), len(labels)


def _new_and_vanished(
    history: StackHistory, config: RefactoringConfig
) -> tuple[BoolArray, BoolArray, BoolArray]:
    """Return which labels are new, which vanished, and which lost most of their cost taken for themselves."""
    from scipy import stats  # slow to import, and every worker imports this module

    index = history.index
    before, after = index.sums(np.stack([history.before[0] * history.share_factor[0], history.after[0]]))
    sampled: FloatArray = np.sqrt(
        history.dispersion * (before / history.samples_before[0] + after / history.samples_after[0])
    )
    chance = special.ndtr(-np.abs(after - before) / np.maximum(sampled, np.finfo(np.float64).tiny))
    certain = stats.false_discovery_control(chance) <= config.mistaken
    least, most = before, before
    if len(history.before) > 1:
        # What was there for some hours only, a spike that ended, has not vanished.
        day_before = index.sums(np.stack([history.before[1], history.after[1]])).max(axis=0)
        least, most = np.minimum(before, day_before), np.maximum(before, day_before)
    new = (most < config.most * after) & certain & (after > before)
    lost = (after < config.most * least) & (chance <= config.mistaken) & (before > after)
    # What lost half by chance has not vanished.
    half = config.most * least
    error: FloatArray = np.sqrt(
        history.dispersion * half * (1 / history.samples_after[0] + config.most / history.samples_before[0])
    )
    return new, lost & certain & (half - after >= _LIKELY * error), lost


def _matching(numbers: IntArray, rows: BoolArray) -> BoolArray:
    """Return the stacks with the numbers of some stacks, these included."""
    wanted = np.zeros(int(numbers.max(initial=0)) + 1, dtype=np.bool_)
    wanted[numbers[rows]] = True
    return wanted[numbers]


def _named(kind: str, history: StackHistory, positions: IntArray) -> str:
    """Return a domain's name from the labels at some places, in the order in which stacks are read."""
    index = history.index
    numbers = np.unique(index.label[positions])
    in_order = numbers[np.argsort(index.by_label[index.label_starts[numbers]])]
    return named(kind, [index.names[number] for number in in_order.tolist()])


def _stack_keys(index: StackIndex, keys: _LabelKeys, changed: BoolArray) -> tuple[Keys, Keys, Keys]:
    """Return keys of stacks whole, with one sign for changed labels, and without these: (stacks,) each.

    Args:
        index: Of the stacks.
        keys: Of the labels.
        changed: (labels,) which are new or vanished.
    """
    whole, same_positions, same_rest = np.zeros((3, index.stacks), dtype=np.uint64)
    staying = np.zeros(index.stacks, dtype=np.int64)  # labels so far that stay
    for depth, positions in index.levels():
        stack, label = index.stack[positions], index.label[positions]
        number, gone = keys.labels[label], changed[label]
        whole[stack] += number * keys.of_position[depth]
        same_positions[stack] += np.where(gone, keys.sign, number) * keys.of_position[depth]
        same_rest[stack] += np.where(gone, np.uint64(0), number * keys.of_position[staying[stack]])
        staying[stack] += ~gone
    return whole, same_positions, same_rest


def _element_numbers(
    index: StackIndex, keys: _LabelKeys, whole: Keys
) -> tuple[ElementNumbers, ElementNumbers]:
    """Return the numbers of stacks without an element where that is a stack, and with a sign in its place."""
    stacks = np.unique(whole)
    is_likely = np.zeros(2**_BITS, dtype=np.bool_)
    is_likely[stacks >> _SHIFT] = True
    above, under = np.zeros(index.stacks, dtype=np.uint64), np.zeros(index.stacks, dtype=np.uint64)
    # Left out, an element lets those below it move up by one place.
    for depth, positions in index.levels():
        under[index.stack[positions]] += keys.at(index.label[positions], max(depth - 1, 0))
    without, beside, numbers = [], [], 0
    for depth, positions in index.levels():
        stack, label = index.stack[positions], index.label[positions]
        under[stack] -= keys.at(label, max(depth - 1, 0))
        left = above[stack] + under[stack]
        above[stack] += (own := keys.at(label, depth))
        likely = np.flatnonzero(is_likely[left >> _SHIFT])
        row = np.minimum(np.searchsorted(stacks, left[likely]), len(stacks) - 1)
        known = stacks[row] == left[likely]
        without.append(np.stack([positions[likely[known]], row[known]]))
        replaced = whole[stack] + (keys.sign * keys.of_position[depth] - own)
        _, number, size = np.unique(replaced, return_inverse=True, return_counts=True)
        several = size[number] > 1
        beside.append(np.stack([positions[several], number[several] + numbers]))
        numbers += len(size)
    return _element_numbered(without), _element_numbered(beside)


def _element_numbered(found: Sequence[IntArray]) -> ElementNumbers:
    entries = np.concatenate([np.zeros((2, 0), dtype=np.int64), *found], axis=1)
    position, number = entries[:, np.argsort(entries[0])]
    return ElementNumbers(position, number)


def _standing(index: StackIndex, same_positions: IntArray, positions: IntArray | Int32Array) -> IntArray:
    stack = index.stack[positions]
    return same_positions[stack] * max(index.deepest, 1) + positions - index.starts[stack]


def _numbered(keys: Keys) -> IntArray:
    return np.unique(keys, return_inverse=True)[1].astype(np.int64)
