from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from pipeline.analysis.published.exclusive_stacks import ExclusiveConfig, buckets, group_by_exclusive_stacks
from pipeline.analysis.stacks import index_stacks, membership
from pipeline.model import SeriesKey
from tests.support.builders import build_stacks

MINUTE = 60.0


def named(
    stacks: Mapping[str, tuple[float, float]],
    names: Sequence[str],
    minutes: Sequence[float] | None = None,
    config: ExclusiveConfig | None = None,
) -> dict[str, set[str]]:
    series: list[SeriesKey] = [SeriesKey("subroutine", name) for name in names]
    times = MINUTE * np.array(minutes or [0.0] * len(names))
    groups = group_by_exclusive_stacks(
        index_stacks(build_stacks(stacks, total=1000)), series, times, config=config
    )
    return {names[g.representative]: {names[m] for m in g.members} for g in groups}


@pytest.mark.parametrize(
    ("stacks", "names", "minutes", "expected"),
    [
        pytest.param(
            {"main->h->a": (10, 20), "main->h": (50, 50), "main->k->b": (10, 20), "main->k": (50, 50)},
            ["h", "a", "k", "b"],
            None,
            {"a": {"h"}, "b": {"k"}},
            id="callers join the callee that rises, and not each other",
        ),
        pytest.param(
            {"main->a": (10, 20), "main->b": (10, 20)},
            ["a", "b"],
            None,
            {"a": set(), "b": set()},
            id="no common stack",
        ),
        pytest.param(
            {"h->a": (10, 20)},
            ["h", "a"],
            [0, 11],
            {"h": set(), "a": set()},
            id="more than ten minutes apart",
        ),
        pytest.param(
            {"h->a->b": (10, 20), "h": (90, 90)},
            ["h", "a", "b"],
            [0, 8, 16],
            {"a": {"h", "b"}},
            id="a bucket is as long as one leads to the next",
        ),
        pytest.param(
            {"init->work->read": (10, 20), "init->work": (10, 20), "init": (500, 500)},
            ["init", "work", "read"],
            None,
            {"work": {"init", "read"}},
            id="neither the function at the top nor the one far down",
        ),
        pytest.param({"a": (1, 2)}, ["gone", "a"], None, {"gone": set(), "a": set()}, id="in no stack"),
        pytest.param({"a": (1, 2)}, [], None, {}, id="no candidates"),
    ],
)
def test_groups(
    stacks: dict[str, tuple[float, float]],
    names: list[str],
    minutes: list[float] | None,
    expected: dict[str, set[str]],
) -> None:
    assert named(stacks, names, minutes) == expected


def test_a_bucket_may_have_several_causes() -> None:
    stacks = {"main->h->a": (10.0, 20.0), "main->k->b": (10.0, 40.0), "main": (500.0, 500.0)}
    assert named(stacks, ["main", "a", "b"]) == {"a": set(), "b": {"main"}}


def test_what_removed_functions_explain_is_no_cause() -> None:
    stacks = {"a->b": (10.0, 20.0), "a": (5.0, 5.0), "b": (10.0, 20.0)}
    assert named(stacks, ["a", "b"]) == {"b": {"a"}}
    assert named(stacks, ["a", "b"], config=ExclusiveConfig(starts=1)) == {"b": {"a"}}


def test_coverage_and_size_are_balanced() -> None:
    stacks = {"h->a": (10.0, 30.0), "h->c": (10.0, 12.0), "h": (2.0, 2.0)}
    names = ["h", "a"]
    assert named(stacks, names, config=ExclusiveConfig(balance=0.0)).keys() == {"h"}
    assert named(stacks, names, config=ExclusiveConfig(balance=1.0)).keys() == {"a"}


def test_buckets_hold_each_candidate_once() -> None:
    matrix = build_stacks({"a->b": (1, 1), "b->c": (1, 1), "d": (1, 1)})
    series: list[SeriesKey] = [SeriesKey("subroutine", name) for name in "abcd"]
    found = buckets(membership(index_stacks(matrix), series), np.zeros(4), 600.0)
    assert [one.tolist() for one in found] == [[0, 1, 2], [3]]
