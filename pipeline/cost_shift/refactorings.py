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

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from pipeline.cost_shift.domains import Domain, named
from pipeline.cost_shift.stack_history import StackHistory
from pipeline.frames import series_of
from pipeline.model import BoolArray, FloatArray, IntArray
from pipeline.names import method_of

Keys = NDArray[np.uint64]

_SEED = 0x5F0D
"""Any: keys are only compared with each other."""


@dataclass(frozen=True, slots=True)
class RefactoringConfig:
    """Settings of the search."""

    most: float = 0.5  # a label that lost more than this share vanishes; a new one won more
    mistaken: float = 0.005  # share of the labels taken for new or vanished that chance makes look so


@dataclass(frozen=True, slots=True, eq=False)
class StackSimilarity:
    """Which stacks are similar, as numbers: equal ones are equal stacks, but for what is left out."""

    same_positions: IntArray  # (stacks,) with every new or vanished label replaced by one sign
    same_rest: IntArray  # (stacks,) with every new or vanished label left out
    standing: IntArray  # (elements,) as same_positions, together with the element's position
    beside: IntArray  # (elements,) with the element replaced by a sign
    whole: IntArray  # (stacks,) with nothing left out
    without: IntArray  # (elements,) with the element left out: numbers of ``whole``, or others
    vanished: BoolArray  # (labels,) beyond what chance makes of all labels
    lost: BoolArray  # (labels,) beyond what chance makes of one of them
    fresh: BoolArray  # (stacks,) that hold a new label

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
    """Return which stacks are similar, in time proportional to their elements.

    A stack's key is a sum of random numbers over its labels, each times one of its place, modulo 2^64: so
    leaving a label out is a subtraction.
    """
    index = history.index
    new, vanished, lost = _new_and_vanished(history, config or RefactoringConfig())
    changed = (new | vanished)[index.label]
    lengths = np.diff(index.starts)
    begin = np.repeat(index.starts[:-1], lengths)
    position = np.arange(len(index.label)) - begin

    rng = np.random.default_rng(_SEED)
    deepest = int(lengths.max(initial=0))
    sign, *numbers = rng.integers(2**64, size=len(index.names) + 1, dtype=np.uint64)
    of_position, mark = rng.integers(2**64, size=(2, deepest + 1), dtype=np.uint64) | np.uint64(1)
    label = np.array(numbers, dtype=np.uint64)[index.label]

    whole = _sums(label * of_position[position], index.starts)
    same_positions = _sums(np.where(changed, sign, label) * of_position[position], index.starts)
    kept = np.concatenate([[0], np.cumsum(~changed)])
    new_position = kept[:-1] - kept[begin]  # among the labels that stay
    same_rest = _sums(np.where(changed, np.uint64(0), label * of_position[new_position]), index.starts)
    # Left out, an element lets those below it move up by one place.
    above = _running(label * of_position[position])
    under = _running(label * of_position[np.maximum(position - 1, 0)])
    end = np.repeat(index.starts[1:], lengths)
    without = above[:-1] - above[begin] + under[end] - under[1:]
    both = _numbered(np.concatenate([whole, without]))
    return StackSimilarity(
        same_positions=_numbered(same_positions),
        same_rest=_numbered(same_rest),
        standing=_numbered(same_positions[index.stack] + mark[position]),
        beside=_numbered(whole[index.stack] + (sign - label) * of_position[position]),
        whole=both[: len(whole)],
        without=both[len(whole) :],
        vanished=vanished,
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
    stood = _elements_like(similar.standing, positions)
    stood = stood[similar.vanished[index.label[stood]] & ~own[index.stack[stood]]]
    renamed = None
    if len(stood):
        renamed = Domain(
            _named("renamed from", history, stood), _matching(similar.same_positions, own), gone=True
        )
    left = np.zeros(
        int(max(similar.whole.max(initial=0), similar.without.max(initial=0))) + 1, dtype=np.bool_
    )
    left[similar.without[positions]] = True
    inner = _matching(similar.same_rest, own) | left[similar.whole]
    extracted = None
    if len(others := np.flatnonzero(inner & ~own)):
        extracted = Domain(
            _named("extracted from", history, index.starts[1:][others] - 1),
            similar.with_refactored(inner),
            gone=inserted,
        )
    siblings = _elements_like(similar.beside, positions)
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
    return new, lost & certain, lost


def _elements_like(numbers: IntArray, positions: IntArray) -> IntArray:
    """Return all elements with the numbers of those at some places."""
    wanted = np.zeros(int(numbers.max(initial=0)) + 1, dtype=np.bool_)
    wanted[numbers[positions]] = True
    return np.flatnonzero(wanted[numbers])


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


def _numbered(keys: Keys) -> IntArray:
    return np.unique(keys, return_inverse=True)[1].astype(np.int64)


def _running(values: Keys) -> Keys:
    return np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(values, dtype=np.uint64)])


def _sums(values: Keys, starts: IntArray) -> Keys:
    running = _running(values)
    return running[starts[1:]] - running[starts[:-1]]
