from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from pipeline.counting.count import Counts, count_samples
from pipeline.model import Profile
from tests.support.builders import build_profile

STACKS = st.dictionaries(
    st.lists(st.sampled_from("abcdef"), min_size=1, max_size=8).map(";".join),
    st.integers(0, 50),
    min_size=1,
    max_size=12,
)
PROFILES = st.lists(
    st.builds(
        build_profile,
        STACKS,
        service=st.sampled_from(["s", "t"]),
        start=st.sampled_from([1e9, 1e9 + 7, 1e9 + 60]),
    ),
    min_size=1,
    max_size=6,
)


def naive(profiles: list[Profile]) -> Counter[tuple[str, float, str]]:
    """The definition, one sample at a time."""
    counts: Counter[tuple[str, float, str]] = Counter()
    for profile in profiles:
        window = (profile.start + profile.end) / 2 // 10 * 10
        for i, samples in enumerate(profile.counts.tolist()):
            span = slice(int(profile.stack_starts[i]), int(profile.stack_starts[i + 1]))
            for frame in {profile.frames[f] for f in profile.stack_frames[span].tolist()}:
                counts[profile.service, window, frame] += samples
    return +counts


def counted(counts: Counts) -> Counter[tuple[str, float, str]]:
    found: Counter[tuple[str, float, str]] = Counter()
    for cell, series, samples in zip(
        counts.series_cell.tolist(), counts.series_index.tolist(), counts.series_samples.tolist(), strict=True
    ):
        found[counts.cells.services[cell], float(counts.cells.windows[cell]), counts.names[series]] += samples
    return found


def run(profiles: list[Profile]) -> Counts:
    return count_samples(profiles, [0] * len(profiles), window_s=10.0, stack_window_s=60.0)


@given(PROFILES)
def test_counts_equal_the_definition(profiles: list[Profile]) -> None:
    assert counted(run(profiles)) == naive(profiles)


@given(PROFILES, PROFILES)
def test_counts_of_two_batches_add_up_to_those_of_both(one: list[Profile], other: list[Profile]) -> None:
    assert counted(run(one)) + counted(run(other)) == counted(run(one + other))


@given(PROFILES)
def test_stacks_and_totals_hold_every_sample_once(profiles: list[Profile]) -> None:
    counts = run(profiles)
    samples = sum(int(profile.counts.sum()) for profile in profiles)
    assert int(counts.total_samples.sum()) == int(counts.stack_samples.sum()) == samples
    assert len(set(counts.stacks)) == len(counts.stacks) == len(set(counts.stack_ids.tolist()))
