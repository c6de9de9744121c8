from __future__ import annotations

from collections import Counter

import pytest

from pipeline.counting.count import Counts, count_samples
from pipeline.model import Annotation, MetricKind, Profile
from pipeline.model.frames import element, frame_elements, series_of
from tests.support.builders import build_profile

START = 1_700_000_000.0


def count(*profiles: Profile, partitions: list[int] | None = None, window_s: float = 10.0) -> Counts:
    return count_samples(profiles, partitions or [0] * len(profiles), window_s=window_s, stack_window_s=100.0)


def by_series(counts: Counts) -> dict[tuple[str, str, float], int]:
    found: Counter[tuple[str, str, float]] = Counter()
    for cell, series, samples in zip(
        counts.series_cell, counts.series_index, counts.series_samples, strict=True
    ):
        found[counts.kinds[series], counts.names[series], float(counts.cells.windows[cell])] += int(samples)
    return dict(found)


@pytest.mark.parametrize(
    ("stacks", "expected"),
    [
        pytest.param(
            {"a;b": 3, "a;c": 4}, {"a": 7, "b": 3, "c": 4}, id="inclusive: a caller has its callees"
        ),
        pytest.param({"a;b;b;b": 5}, {"a": 5, "b": 5}, id="direct recursion counts once a sample"),
        pytest.param({"a;b;a;b": 2, "b": 1}, {"a": 2, "b": 3}, id="mutual recursion counts once a sample"),
        pytest.param({"a": 0, "b": 1}, {"b": 1}, id="a stack without samples counts for nothing"),
    ],
)
def test_subroutine_counts(stacks: dict[str, int], expected: dict[str, int]) -> None:
    counts = count(build_profile(stacks, start=START))
    assert {name: n for (_, name, _), n in by_series(counts).items()} == expected
    assert int(counts.total_samples.sum()) == sum(stacks.values())


def test_annotations_become_series_of_their_own() -> None:
    profile = build_profile(
        {"main;handle;work": 3, "main;idle": 2},
        annotations=[("handle", "endpoint", "/buy"), ("work", "metadata", "tier=gold")],
    )
    counts = {(kind, name): n for (kind, name, _), n in by_series(count(profile)).items()}
    assert counts["endpoint", "/buy"] == 3
    assert counts["metadata", "tier=gold"] == 3
    assert counts["subroutine", "handle"] == counts["subroutine", "work"] == 3
    assert counts["subroutine", "main"] == 5


def test_annotated_stacks_keep_the_annotation_above_its_frame() -> None:
    counts = count(build_profile({"main;handle;work": 3}, annotations=[("handle", "endpoint", "/buy")]))
    assert counts.stacks == (("main", "endpoint=/buy", "handle", "work"),)


def test_a_frame_named_like_its_annotation_is_that_annotation_only() -> None:
    profile = build_profile({"endpoint=/buy;work": 3}, annotations=[("endpoint=/buy", "endpoint", "/buy")])
    counts = count(profile)
    assert counts.stacks == (("endpoint=/buy", "work"),)
    assert {(kind, name) for kind, name, _ in by_series(counts)} == {
        ("endpoint", "/buy"),
        ("subroutine", "work"),
    }


def test_equal_stacks_of_different_hosts_are_one_stack() -> None:
    one = build_profile({"a;b": 3, "c": 1}, host="h1")
    other = build_profile({"c": 5, "a;b": 4}, host="h2")  # another order of frames in the dictionary
    counts = count(one, other)
    samples = {
        counts.stacks[i]: int(n) for i, n in zip(counts.stack_index, counts.stack_samples, strict=True)
    }
    assert samples == {("a", "b"): 7, ("c",): 6}


def test_stack_ids_do_not_depend_on_the_batch() -> None:
    alone = count(build_profile({"x;y": 1}))
    among = count(build_profile({"a;b;c": 1, "q": 2}), build_profile({"y;x": 1, "x;y": 1}))
    ids = dict(zip(among.stacks, among.stack_ids.tolist(), strict=True))
    assert ids["x", "y"] == alone.stack_ids[0]
    assert ids["x", "y"] != ids["y", "x"]


def test_windows_hold_the_middle_of_an_interval_and_partitions_stay_apart() -> None:
    start = 1_700_000_000.0  # a multiple of 10
    profiles = [build_profile({"a": 1}, start=start + s, end=start + s + 4) for s in (0, 7, 9)]
    counts = count(*profiles, partitions=[0, 0, 1])
    cells = list(zip(counts.cells.windows.tolist(), counts.cells.partitions.tolist(), strict=True))
    assert cells == [(start, 0), (start + 10, 1)]
    assert counts.total_samples.tolist() == [2, 1]


def test_services_stay_apart() -> None:
    counts = count(build_profile({"a": 1}, service="one"), build_profile({"a": 2}, service="two"))
    assert counts.cells.services == ("one", "two")
    assert counts.total_samples.tolist() == [1, 2]


def test_an_empty_batch_counts_nothing() -> None:
    assert count().rows == 0


@pytest.mark.parametrize(
    ("kind", "name", "label"),
    [
        ("subroutine", "shop.work", "shop.work"),
        ("endpoint", "/a=b", "endpoint=/a=b"),
        ("metadata", "tier=gold", "metadata=tier=gold"),
    ],
)
def test_elements_name_their_series(kind: MetricKind, name: str, label: str) -> None:
    assert element(kind, name) == label
    assert series_of(label) == (kind, name)


def test_a_frame_may_carry_several_annotations() -> None:
    annotations = [
        Annotation(0, "endpoint", "/x"),
        Annotation(0, "metadata", "m"),
        Annotation(0, "metadata", "m"),
    ]
    assert frame_elements(["f"], annotations) == [("metadata=m", "endpoint=/x", "f")]
