"""Counting batches, with what is kept from one to the next, equals counting one sample after the other.

Messages are hostile here: frames that stand twice in a table, empty and recursive stacks, stacks that stand
twice, deeper than is kept, more of them than are kept, and counts as large as they may be.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pipeline.counting import distinct_stacks
from pipeline.counting.bounds import StackBounds
from pipeline.counting.count import STRATUM_STACK_WINDOWS, Counts, count_samples, stack_ids
from pipeline.counting.vocabulary import Vocabulary
from pipeline.messages.schema.inputs import MAX_COUNT
from pipeline.model import Annotation, Profile
from pipeline.model.frames import DEEP, OTHER, frame_elements, series_of

WINDOW_S, STACK_WINDOW_S = 10.0, 60.0
BOUNDS = StackBounds(depth=6, stacks=4, characters=60)
LABELS = ["a", "b", "c", "endpoint=/x", "größe", OTHER, DEEP]

Tally = Counter[tuple[Hashable, ...]]


@st.composite
def profiles(draw: st.DrawFn) -> Profile:
    frames = tuple(draw(st.lists(st.sampled_from(LABELS), min_size=1, max_size=6)))
    one = st.lists(st.integers(0, len(frames) - 1), max_size=10)
    stacks = draw(st.lists(one, max_size=7))
    sizes = st.integers(0, 3) | st.just(MAX_COUNT // 8)
    counts = draw(st.lists(sizes, min_size=len(stacks), max_size=len(stacks)))
    marks = st.builds(Annotation, st.integers(0, len(frames) - 1), st.just("endpoint"), st.just("/x"))
    start = draw(st.sampled_from([1e9, 1e9 + 7, 1e9 + 60, 1e9 + 4000]))
    return Profile(
        service=draw(st.sampled_from(["s", "t"])),
        host=draw(st.sampled_from(["", "h1", "h2"])),
        start=start,
        end=start + 4,
        frames=frames,
        stack_frames=np.array([frame for stack in stacks for frame in stack], dtype=np.int64),
        stack_starts=np.cumsum([0, *map(len, stacks)], dtype=np.int64),
        counts=np.array(counts, dtype=np.int64),
        annotations=tuple(draw(st.lists(marks, max_size=2))),
    )


def spelled(profile: Profile) -> list[tuple[str, ...]]:
    """Return the stacks of a profile by their labels."""
    elements = frame_elements(profile.frames, profile.annotations)
    starts, flat = profile.stack_starts.tolist(), profile.stack_frames.tolist()
    return [
        tuple(label for frame in flat[a:b] for label in elements[frame])
        for a, b in zip(starts, starts[1:], strict=False)
    ]


def kept_of(stacks: Sequence[tuple[str, ...]], counts: Sequence[int]) -> tuple[list[tuple[str, ...]], int]:
    """Return what a message's stacks are kept as, by the words of StackBounds, and how many are folded."""
    deep = {stack for stack in stacks if len(stack) > BOUNDS.depth}
    head = (BOUNDS.depth - 1) // 2
    cut = [
        stack
        if len(stack) <= BOUNDS.depth
        else (*stack[:head], DEEP, *stack[len(stack) - (BOUNDS.depth - 1 - head) :])
        for stack in stacks
    ]
    if len(stacks) <= BOUNDS.stacks and sum(len("".join(stack)) for stack in cut) <= BOUNDS.characters:
        return cut, sum(stack in deep for stack in stacks)
    samples: Counter[tuple[str, ...]] = Counter()
    folded = dict(zip(stacks, cut, strict=True))
    for stack, count in zip(stacks, counts, strict=True):
        samples[stack] += count
    ids = dict(zip(samples, stack_ids(list(samples)).tolist(), strict=True))
    stay: set[tuple[str, ...]] = set()
    characters = 0
    for stack in sorted(samples, key=lambda stack: (-samples[stack], ids[stack])):
        characters += len("".join(folded[stack]))
        if characters <= BOUNDS.characters and len(stay) < BOUNDS.stacks:
            stay.add(stack)
    rest = [stack not in stay or stack in deep for stack in stacks]
    return [folded[stack] if stack in stay else (OTHER,) if stack else () for stack in stacks], sum(rest)


def one_by_one(batch: Sequence[tuple[Profile, int]]) -> dict[str, Tally]:
    """The definition, one stack at a time."""
    found: dict[str, Tally] = defaultdict(Counter)
    stratum_s = STRATUM_STACK_WINDOWS * STACK_WINDOW_S
    for profile, partition in batch:
        middle = (profile.start + profile.end) / 2
        window, wide, stack_window = (
            middle // width_s * width_s for width_s in (WINDOW_S, stratum_s, STACK_WINDOW_S)
        )
        whole, counts = spelled(profile), profile.counts.tolist()
        for stack, kept, count in zip(whole, kept_of(whole, counts)[0], counts, strict=True):
            found["totals"][profile.service, window, partition] += count
            found["stacks"][profile.service, stack_window, partition, kept] += count
            for label in set(stack):
                found["series"][profile.service, window, partition, series_of(label)] += count
                cell = (profile.service, wide, partition, profile.sender.id)
                found["strata"][(*cell, series_of(label))] += count
    return {name: +tally for name, tally in found.items() if +tally}


def tallies(counts: Counts) -> dict[str, Tally]:
    """Return counts by what they are of; an entry that stands twice would be wrong, as is one of none."""
    keys = list(zip(counts.kinds, counts.names, strict=True))
    cells, strata, kept_cells = counts.cells, counts.stratum_cells, counts.stack_cells
    at = list(zip(cells.services, cells.windows.tolist(), cells.partitions.tolist(), strict=True))
    wide = list(
        zip(strata.services, strata.windows.tolist(), strata.partitions.tolist(), strata.strata, strict=True)
    )
    stacked = list(
        zip(kept_cells.services, kept_cells.windows.tolist(), kept_cells.partitions.tolist(), strict=True)
    )
    entries = {
        "totals": [(key, n) for key, n in zip(at, counts.total_samples.tolist(), strict=True) if n],
        "series": [
            ((*at[cell], keys[index]), n)
            for cell, index, n in zip(
                counts.series_cell.tolist(),
                counts.series_index.tolist(),
                counts.series_samples.tolist(),
                strict=True,
            )
        ],
        "strata": [
            ((*wide[cell], keys[index]), n)
            for cell, index, n in zip(
                counts.stratum_cell.tolist(),
                counts.stratum_index.tolist(),
                counts.stratum_samples.tolist(),
                strict=True,
            )
        ],
        "stacks": [
            ((*stacked[cell], counts.stacks[index]), n)
            for cell, index, n in zip(
                counts.stack_cell.tolist(),
                counts.stack_index.tolist(),
                counts.stack_samples.tolist(),
                strict=True,
            )
        ],
    }
    found = {}
    for name, pairs in entries.items():
        tally: Tally = Counter(dict(pairs))
        assert len(tally) == len(pairs)
        assert all(n > 0 for n in tally.values())
        if tally:
            found[name] = tally
    return found


BATCHES = st.lists(st.lists(st.tuples(profiles(), st.integers(0, 1)), min_size=1, max_size=5), max_size=3)


@given(BATCHES, st.sampled_from([1, 8, 1 << 15]))
def test_batches_count_like_one_stack_after_the_other(
    batches: list[list[tuple[Profile, int]]], group: int
) -> None:
    vocabulary = Vocabulary()
    whole_group, distinct_stacks._GROUP = distinct_stacks._GROUP, group
    try:
        for batch in batches:
            counts = count_samples(
                [profile for profile, _ in batch],
                [partition for _, partition in batch],
                window_s=WINDOW_S,
                stack_window_s=STACK_WINDOW_S,
                bounds=BOUNDS,
                vocabulary=vocabulary,
            )
            assert tallies(counts) == one_by_one(batch)
            assert counts.stack_ids.tolist() == stack_ids(counts.stacks).tolist()
            assert counts.shortened == tuple(
                kept_of(spelled(profile), profile.counts.tolist())[1] for profile, _ in batch
            )
    finally:
        distinct_stacks._GROUP = whole_group
