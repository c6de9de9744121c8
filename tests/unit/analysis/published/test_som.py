from __future__ import annotations

import numpy as np
import pytest

from pipeline.analysis.published.som import SomConfig, cluster_items, train_map
from pipeline.analysis.published.som_dedup import group_by_som, potential_causes
from pipeline.model import FloatArray, IntArray
from tests.support.builders import build_change

HOUR = 3600.0


def blobs(centres: int, each: int, *, spread: float = 0.05, columns: int = 8) -> tuple[FloatArray, IntArray]:
    rng = np.random.default_rng(11)
    means = 3.0 * rng.normal(size=(centres, columns))
    belongs = np.repeat(np.arange(centres), each)
    return means[belongs] + spread * rng.normal(size=(len(belongs), columns)), belongs


@pytest.mark.parametrize(("items", "side"), [(1, 1), (4, 2), (5, 3), (100, 10), (101, 11)])
def test_the_map_has_a_side_of_the_root_of_n(items: int, side: int) -> None:
    assert train_map(np.random.default_rng(1).normal(size=(items, 4))).side == side


@pytest.mark.parametrize(("centres", "each"), [(1, 9), (2, 20), (10, 5), (30, 10)])
def test_separate_heaps_are_separate_clusters(centres: int, each: int) -> None:
    items, belongs = blobs(centres, each)
    found = cluster_items(items)
    assert len(set(zip(found.tolist(), belongs.tolist(), strict=True))) == centres == found.max() + 1


def test_clusters_are_numbered_as_their_first_items_come() -> None:
    items, belongs = blobs(5, 4)
    order = np.random.default_rng(3).permutation(len(items))
    found = cluster_items(items[order])
    assert np.unique(found, return_index=True)[1].tolist() == sorted(np.unique(found, return_index=True)[1])
    assert len(set(zip(found.tolist(), belongs[order].tolist(), strict=True))) == 5


def test_a_wider_merge_distance_makes_no_more_clusters() -> None:
    items = np.random.default_rng(8).normal(size=(150, 5))
    counts = [
        int(cluster_items(items, config=SomConfig(merge_distance=d)).max()) + 1 for d in (0.0, 1.0, 4.0)
    ]
    assert counts[0] >= counts[1] >= counts[2] >= 1
    assert counts[2] < counts[0]


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        pytest.param(np.zeros((0, 3)), [], id="none"),
        pytest.param(np.ones((1, 3)), [0], id="one"),
        pytest.param(np.ones((4, 3)), [0, 0, 0, 0], id="all equal"),
        pytest.param(np.array([[0.0], [9.0]]), [0, 1], id="two, in one column"),
    ],
)
def test_few_items(items: FloatArray, expected: list[int]) -> None:
    assert cluster_items(items).tolist() == expected


def stepped(*sizes_at: tuple[float, int]) -> FloatArray:
    """Series that step up by a size at an index, on the same noise scaled by it."""
    noise = np.random.default_rng(2).normal(size=400)
    return np.stack([0.01 + size * ((np.arange(400) >= at) + 0.05 * noise) for size, at in sizes_at])


def test_a_scan_of_two_changes_gives_two_groups_with_the_most_important_first() -> None:
    names = ["cart.Cart.total", "cart.Cart.totals", "login.Session.open", "login.Session.opens"]
    changes = [build_change("D1", [names[0], names[1]]), build_change("D2", names[2:])]
    groups = group_by_som(
        stepped((0.010, 300), (0.012, 300), (0.010, 200), (0.030, 200)),
        names,
        np.array([10 * HOUR, 10 * HOUR, 2 * HOUR, 2 * HOUR]),
        np.full(4, 0.01),
        np.array([0.020, 0.022, 0.020, 0.040]),
        potential_causes(names, [changes] * 4),
    )
    assert [(group.representative, group.members) for group in groups] == [(1, (0,)), (3, (2,))]
    assert all(0.3 < share < 1 for group in groups for share in group.explained)


def test_potential_causes_are_the_changes_that_modify_the_subroutine_itself() -> None:
    one, other = build_change("D1", ["a", "b"]), build_change("D2", ["a"])
    assert potential_causes(["a", "b", "c", "a"], [(one, other), (one, other), (one,), ()]).tolist() == [
        [True, True],
        [True, False],
        [False, False],
        [False, False],
    ]


def test_no_candidates_make_no_groups() -> None:
    nothing = np.zeros(0)
    assert group_by_som(np.zeros((0, 5)), [], nothing, nothing, nothing, np.zeros((0, 0), np.bool_)) == []
