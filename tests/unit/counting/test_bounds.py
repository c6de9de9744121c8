"""What is kept of stacks and names that are out of proportion, and what of a stream is held in memory."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.counting.bounds import StackBounds
from pipeline.counting.count import Counts, count_samples
from pipeline.model import Profile
from pipeline.model.frames import DEEP, MAX_LABEL, OTHER, cut_name
from tests.support.builders import build_profile


def count(*profiles: Profile, depth: int = 512, stacks: int = 20_000) -> Counts:
    return count_samples(
        profiles,
        [0] * len(profiles),
        window_s=60.0,
        stack_window_s=300.0,
        bounds=StackBounds(depth, stacks),
    )


def kept(counts: Counts) -> dict[str, int]:
    return {
        ";".join(counts.stacks[i]): int(n)
        for i, n in zip(counts.stack_index.tolist(), counts.stack_samples, strict=True)
    }


def series(counts: Counts) -> dict[str, int]:
    return {
        counts.names[i]: int(n)
        for i, n in zip(counts.series_index.tolist(), counts.series_samples, strict=True)
    }


@pytest.mark.parametrize(
    ("stack", "depth", "wanted"),
    [
        pytest.param("a;b;c;d;e", 5, "a;b;c;d;e", id="as deep as may be"),
        pytest.param("a;b;c;d;e;f", 5, f"a;b;{DEEP};e;f", id="one too deep"),
        pytest.param("a;b;c;d;e;f;g;h", 4, f"a;{DEEP};g;h", id="an even bound keeps one more at the leaf"),
        pytest.param("a;b;c;d", 1, DEEP, id="a bound of one"),
        pytest.param("a;b;c;d", 2, f"{DEEP};d", id="a bound of two"),
    ],
)
def test_the_middle_of_a_deep_stack_is_folded(stack: str, depth: int, wanted: str) -> None:
    counts = count(build_profile({stack: 3, "a": 1}), depth=depth)
    assert kept(counts) == {wanted: 3, "a": 1}
    assert series(counts) == {"a": 4, **dict.fromkeys(stack.split(";")[1:], 3)}  # of whole stacks
    assert counts.shortened == (int(stack != wanted),)


def test_deep_stacks_that_differ_in_the_middle_alone_become_one() -> None:
    recursions = {f"main;{';'.join(['walk'] * n)};leaf": n for n in range(1000, 1005)}
    counts = count(build_profile(recursions))
    ((stack, samples),) = kept(counts).items()
    assert samples == sum(recursions.values())
    assert stack.split(";")[0] == "main"
    assert stack.split(";")[-1] == "leaf"
    assert len(stack.split(";")) == 512
    assert series(counts) == dict.fromkeys(("main", "walk", "leaf"), samples)


def test_two_thousand_frames_each_with_a_name_of_their_own_are_all_counted() -> None:
    names = [f"f{i}" for i in range(2000)]
    counts = count(build_profile({";".join(names): 2}))
    assert series(counts) == dict.fromkeys(names, 2)


def test_the_largest_stacks_of_a_message_are_kept() -> None:
    one = build_profile({"a;b": 5, "a;c": 1, "a;d": 3, "a;e": 1})
    other = build_profile({"a;c": 7})
    counts = count(one, other, stacks=2)
    assert kept(counts) == {"a;b": 5, "a;d": 3, OTHER: 2, "a;c": 7}
    assert series(counts) == {"a": 17, "b": 5, "c": 8, "d": 3, "e": 1}
    assert counts.shortened == (2, 0)


def test_a_stack_that_stands_twice_in_a_message_counts_with_both() -> None:
    frames = ("a", "b", "c")
    profile = Profile(
        "s", "h", 0.0, 1.0, frames, np.array([0, 1, 2, 0]), np.array([0, 1, 2, 3, 4]), np.array([2, 3, 3, 2])
    )
    counts = count(profile, stacks=1)
    assert kept(counts) == {"a": 4, OTHER: 6}


def test_the_names_of_kept_stacks_have_only_so_many_characters() -> None:
    """A message spells a name once; rows would spell it as often as it stands in stacks."""
    long = "x" * 100
    profile = build_profile({f"{long};{long};f{i}": 10 - i for i in range(8)})
    counts = count_samples(
        [profile], [0], window_s=60.0, stack_window_s=300.0, bounds=StackBounds(characters=650)
    )
    assert kept(counts) == {f"{long};{long};f{i}": 10 - i for i in range(3)} | {OTHER: 7 + 6 + 5 + 4 + 3}
    assert series(counts)[long] == 52
    assert counts.shortened == (5,)


def test_ties_are_decided_by_the_stacks_and_not_by_their_order() -> None:
    stacks = {f"a;f{i}": 1 for i in range(50)}
    forth = kept(count(build_profile(stacks), stacks=10))
    back = kept(count(build_profile(dict(reversed(stacks.items()))), stacks=10))
    assert forth == back
    assert forth[OTHER] == 40


def test_no_profile_at_all_counts_nothing() -> None:
    counts = count()
    assert counts.rows == 0
    assert counts.shortened == ()


@pytest.mark.parametrize("name", ["", "short", "x" * MAX_LABEL, "größe" * 200])
def test_a_name_within_the_bound_stays_as_it_is(name: str) -> None:
    assert cut_name(name) == name


def test_long_names_are_cut_and_stay_different() -> None:
    long = "x" * (1 << 20)
    cut = {cut_name(long), cut_name(long + "y"), cut_name("y" + long)}
    assert len(cut) == 3
    assert {len(name) for name in cut} == {MAX_LABEL}
    assert cut_name(long) == cut_name(long)
    assert cut_name(cut_name(long)) == cut_name(long)
    assert len(cut_name("\ud800" * 2000)) == MAX_LABEL  # half a character, as broken symbols have them
