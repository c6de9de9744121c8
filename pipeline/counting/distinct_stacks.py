"""The distinct stacks of a batch, collected message by message, so that memory grows with them alone.

Messages of one service repeat the same stacks. The names of a stack and its series are determined once per
batch; for each message only the hashes of its stacks are computed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.counting.bounds import Ragged, StackBounds, bounded_stacks
from pipeline.counting.vocabulary import UIntArray, Vocabulary
from pipeline.model import IntArray, Profile
from pipeline.model.frames import frame_elements

MAX_ELEMENTS = 2_000_000
"""Most elements of distinct stacks that are counted together: each takes about 100 bytes of memory."""

MAX_CHARACTERS = 1 << 26
"""Most characters in the names of distinct stacks that are counted together: rows of stacks repeat names."""

_GROUP = 2**15
"""Elements that are hashed together: few enough to stay in the processor's cache."""


class OutOfRoom(Exception):
    """There are more distinct stacks than may be counted together."""


@dataclass(slots=True)
class StackRoom:
    """Room left for distinct stacks that are counted together: memory grows with them."""

    elements: int
    characters: int  # of names, which the row of a stack repeats


@dataclass(frozen=True, slots=True)
class DistinctStacks:
    """Distinct stacks of profiles, whole and shortened, and the index of each stack among them."""

    elements: Ragged  # numbers in the vocabulary
    ids: UIntArray  # (distinct stacks,) 64-bit hashes of their elements
    whole: IntArray  # (stacks of all profiles,)
    kept: IntArray  # (stacks of all profiles,); the same object as ``whole`` if nothing is shortened
    counts: IntArray  # (stacks of all profiles,) samples
    per_profile: IntArray  # (profiles,) number of stacks
    shortened: tuple[int, ...]  # (profiles,) number of shortened stacks


class _Table(dict[int, int]):
    """Numbers of stacks by their hashes, with the elements of each distinct stack."""

    def __init__(self, vocabulary: Vocabulary, room: StackRoom | None) -> None:
        super().__init__()
        self._vocabulary = vocabulary
        self._room = room
        self._parts: list[Ragged] = []

    def __missing__(self, key: int) -> int:
        number = self[key] = len(self)
        return number

    def add(self, stacks: Ragged, hashes: UIntArray) -> IntArray:
        """Return the number of each stack.

        Raises:
            OutOfRoom: there are too many stacks with these.
        """
        ids, first, of = np.unique(hashes, return_index=True, return_inverse=True)
        former_size = len(self)
        numbers = np.fromiter(map(self.__getitem__, ids.tolist()), dtype=np.int64, count=len(ids))
        if len(self) > former_size:
            new = stacks.take(first[numbers >= former_size])
            self._parts.append(new)
            if self._room:
                self._room.elements -= len(new.flat) + len(new.starts)
                self._room.characters -= int(self._vocabulary.lengths[new.flat].sum())
                if min(self._room.elements, self._room.characters) < 0:
                    raise OutOfRoom
        numbers_of_all: IntArray = numbers[of]
        return numbers_of_all

    @property
    def elements(self) -> Ragged:
        """The elements of all stacks, by number."""
        lengths = [np.diff(part.starts) for part in self._parts]
        return Ragged.of(_joined([part.flat for part in self._parts]), _joined(lengths))


def find_stacks(
    profiles: Sequence[Profile], vocabulary: Vocabulary, bounds: StackBounds, room: StackRoom | None = None
) -> DistinctStacks:
    """Find the distinct stacks of profiles.

    Args:
        profiles: Profiles of any services and hosts.
        vocabulary: Numbers elements; grows.
        bounds: Bounds on the stacks of each profile.
        room: Room for the distinct stacks, reduced by what they take; None for no limit.

    Raises:
        OutOfRoom: they need more room.
    """
    table = _Table(vocabulary, room)
    whole: list[IntArray] = []
    bounded: list[IntArray] = []
    shortened: list[int] = []
    for group in _groups(profiles):
        stacks = _flatten(group, vocabulary)
        numbers = table.add(stacks, hash_stacks(vocabulary.hashes[stacks.flat], stacks.starts))
        whole.append(numbers)
        end = 0
        for profile in group:
            first, end = end, end + len(profile.counts)
            numbers_of_profile, folded = numbers[first:end], 0
            if _may_exceed(stacks.starts[first : end + 1], vocabulary.longest, bounds):
                numbers_of_profile, folded = _bounded(
                    stacks.part(first, end), numbers_of_profile, profile.counts, vocabulary, bounds, table
                )
            bounded.append(numbers_of_profile)
            shortened.append(folded)
    all_whole = _joined(whole)
    return DistinctStacks(
        elements=table.elements,
        ids=np.fromiter(table, dtype=np.uint64, count=len(table)),
        whole=all_whole,
        kept=_joined(bounded) if any(shortened) else all_whole,
        counts=_joined([profile.counts for profile in profiles]),
        per_profile=np.array([len(profile.counts) for profile in profiles], dtype=np.int64),
        shortened=tuple(shortened),
    )


def hash_stacks(hashes: UIntArray, starts: IntArray) -> UIntArray:
    """Hash each stack's elements with their positions into 64 bits; equal stacks get equal hashes.

    Each (element, position) is mixed by splitmix64's finaliser and a stack is the sum of its parts, which
    needs no loop over stacks.
    """
    step = np.uint64(0x9E3779B97F4A7C15)
    before = starts[:-1].astype(np.uint64) * step  # modulo 2**64, as all that follows
    mixed = np.arange(1, len(hashes) + 1, dtype=np.uint64)
    mixed *= step
    mixed -= np.repeat(before, np.diff(starts))
    mixed += hashes
    mixed ^= mixed >> np.uint64(30)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(27)
    mixed *= np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    running = np.zeros(len(mixed) + 1, dtype=np.uint64)
    np.cumsum(mixed, out=running[1:])
    sums: UIntArray = running[starts[1:]] - running[starts[:-1]]
    return sums


def _groups(profiles: Sequence[Profile]) -> Iterator[list[Profile]]:
    group: list[Profile] = []
    elements = 0
    for profile in profiles:
        group.append(profile)
        elements += len(profile.stack_frames)
        if elements >= _GROUP:
            yield group
            group, elements = [], 0
    if group:
        yield group


def _flatten(profiles: Sequence[Profile], vocabulary: Vocabulary) -> Ragged:
    """Return the elements of all stacks of some profiles."""
    flats: list[IntArray] = []
    depths: list[IntArray] = []
    number = vocabulary.__getitem__
    for profile in profiles:
        flat, starts = profile.stack_frames, profile.stack_starts
        if profile.annotations:
            elements = frame_elements(profile.frames, profile.annotations)
            widths = np.fromiter(map(len, elements), dtype=np.int64, count=len(elements))
            labels = [label for group in elements for label in group]
            flat, starts = _expand(flat, starts, widths)
        else:
            labels = list(profile.frames)
        numbers = np.fromiter(map(number, labels), dtype=np.int64, count=len(labels))
        flats.append(numbers[flat])
        depths.append(np.diff(starts))
    return Ragged.of(_joined(flats), _joined(depths))


def _expand(flat: IntArray, starts: IntArray, widths: IntArray) -> tuple[IntArray, IntArray]:
    """Replace every frame by its elements: ``widths[f]`` consecutive ones for frame f."""
    first = np.cumsum(widths) - widths
    width = widths[flat]
    ends = np.cumsum(width)
    within = np.arange(int(width.sum())) - np.repeat(ends - width, width)
    return np.repeat(first[flat], width) + within, np.concatenate([[0], ends])[starts]


def _may_exceed(starts: IntArray, longest: int, bounds: StackBounds) -> bool:
    """Return whether some of a profile's stacks may have to be shortened, without reading their names."""
    elements = int(starts[-1] - starts[0])
    if len(starts) - 1 > bounds.stacks or elements * longest > bounds.characters:
        return True
    return elements > bounds.depth and int(np.diff(starts).max()) > bounds.depth


def _bounded(
    stacks: Ragged,
    numbers: IntArray,
    counts: IntArray,
    vocabulary: Vocabulary,
    bounds: StackBounds,
    table: _Table,
) -> tuple[IntArray, int]:
    """Return the numbers of one profile's stacks after shortening, and the number of shortened ones."""
    hashes = hash_stacks(vocabulary.hashes[stacks.flat], stacks.starts)
    shortened, folded = bounded_stacks(stacks, hashes, counts, vocabulary, bounds)
    if not folded:
        return numbers, 0
    return table.add(shortened, hash_stacks(vocabulary.hashes[shortened.flat], shortened.starts)), folded


def _joined(parts: Sequence[IntArray]) -> IntArray:
    return np.concatenate([np.empty(0, dtype=np.int64), *parts])
