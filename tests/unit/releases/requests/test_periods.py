"""What can be compared: periods, types, load, and a metric's points in each period."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.releases.requests import (
    NotCompared,
    ReleasePeriods,
    Releases,
    align,
    choose_types,
    joined,
    merged,
    periods_a_point,
    seen_load,
)
from pipeline.releases.requests.support import unseen_load


def periods(count: int, seed: int = 0, types: int = 2, level: float = 20.0) -> ReleasePeriods:
    rng = np.random.default_rng(seed)
    counts = rng.poisson(level, (count, types)).astype(np.float64)
    return ReleasePeriods(counts, counts.sum(axis=1) + rng.standard_normal(count))


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (periods(19), periods(40), "the old release has 19 periods, fewer than 20"),
        (periods(40), periods(3), "the new release has 3 periods, fewer than 20"),
        (
            periods(40),
            ReleasePeriods(periods(40).counts, np.ones(40)),
            "the metric is constant in the new release",
        ),
        (
            ReleasePeriods(periods(40).counts, np.full(40, np.nan)),
            periods(40),
            "the old release has 0 periods",
        ),
        (
            ReleasePeriods(periods(40).counts * [1, 0], periods(40).metric),
            ReleasePeriods(periods(40).counts * [0, 1], periods(40).metric),
            "the releases have no type of request in common",
        ),
        (periods(200), periods(200, 1, level=200.0), "100% of the new release's periods have load that"),
    ],
)
def test_what_cannot_be_compared_is_said(old: ReleasePeriods, new: ReleasePeriods, why: str) -> None:
    with pytest.raises(NotCompared, match=why):
        seen_load(Releases(("a", "b"), old, new))


def test_periods_without_a_number_and_types_that_never_came_are_left_out() -> None:
    old, new = periods(40, types=3), periods(40, 1, types=3)
    old.metric[3] = np.nan
    new.counts[5, 0] = np.inf
    old.counts[:, 1] = new.counts[:, 1] = 0.0
    readable = Releases(("a", "b", "c"), old, new).readable()
    assert readable.types == ("a", "c")
    assert (len(readable.old), len(readable.new)) == (39, 39)


def test_load_is_unseen_if_the_combination_is_new() -> None:
    rng = np.random.default_rng(1)
    together = rng.uniform(0.0, 10.0, 300)
    old = np.column_stack([together, together + rng.normal(0.0, 0.1, 300)])
    new = np.array([[5.0, 5.0], [2.0, 8.0], [20.0, 20.0]])
    assert unseen_load(old, new).tolist() == [False, True, True]


def test_a_metric_is_averaged_over_each_period() -> None:
    starts = np.array([0.0, 30.0, 90.0])
    times = np.array([-1.0, 0.0, 29.9, 30.0, 61.0, 90.0, 119.0, 120.0])
    values = np.array([9.0, 1.0, 3.0, 5.0, 9.0, np.nan, 7.0, 9.0])
    assert align(starts, 30.0, times, values).tolist() == [2.0, 5.0, 7.0]
    assert np.isnan(align(starts, 30.0, times[:1], values[:1])).all()


@pytest.mark.parametrize(
    ("times", "many"),
    [
        ([], 1),
        ([0.0], 1),
        (np.arange(0.0, 600.0, 10.0), 1),
        (np.arange(0.0, 600.0, 45.0), 1),
        (np.arange(0.0, 6000.0, 60.0), 2),
        (np.delete(np.arange(0.0, 6000.0, 59.9), [3, 4, 9]), 2),
        (np.arange(0.0, 6000.0, 300.0), 10),
    ],
)
def test_points_are_some_periods_apart(times: list[float], many: int) -> None:
    assert periods_a_point(30.0, np.array(times)) == many


def test_periods_are_as_long_as_points_are_apart() -> None:
    starts = 30.0 * np.array([3, 4, 5, 6, 7, 9, 10, 11, 12, 13])
    counts = np.arange(20.0).reshape(10, 2)
    metric = np.array([9.0, 1.0, np.nan, 2.0, 4.0, 9.0, np.nan, np.nan, np.nan, 3.0])
    times = np.where(counts % 4 == 1, np.nan, counts)
    found = merged(ReleasePeriods(counts, metric, counts / 2.0, times, starts), 30.0, 2)
    # The first and the one in the middle lack a half.
    assert found.counts.tolist() == [[3.0, 4.0], [7.0, 8.0], [13.0, 14.0], [17.0, 18.0]]
    assert found.metric.tolist()[:2] == [1.0, 3.0]
    assert np.isnan(found.metric[2])
    assert found.metric[3] == 3.0
    assert found.served.tolist() == (found.counts / 2.0).tolist()
    assert found.times is not None
    assert found.times[0].tolist() == [pytest.approx((2 * 1 + 4 * 2) / 3), 3.0]
    assert found.starts is not None
    assert found.starts.tolist() == [120.0, 180.0, 300.0, 360.0]
    plain = ReleasePeriods(counts, metric, starts=starts)
    assert merged(plain, 30.0, 1) is plain


def test_a_type_that_a_release_does_not_have_never_came() -> None:
    found = joined(np.array([0.0, 30.0]), {"a": np.array([1.0, 2.0])}, np.array([5.0, 6.0]), ("b", "a"))
    assert found.counts.tolist() == [[0.0, 1.0], [0.0, 2.0]]


class TestChooseTypes:
    """Liao et al., §5, step 2."""

    @staticmethod
    def chosen(columns: list[np.ndarray]) -> tuple[list[int], dict[str, tuple[str, ...]]]:
        counts = np.column_stack(columns).astype(np.float64)
        half = len(counts) // 2
        names = tuple("abcdefg"[: counts.shape[1]])
        metric = np.arange(half, dtype=np.float64)
        releases = Releases(
            names, ReleasePeriods(counts[:half], metric), ReleasePeriods(counts[half:], metric)
        )
        selection = choose_types(releases)
        return selection.kept.tolist(), selection.left_out

    def test_of_two_that_correlate_the_one_with_more_requests_stays(self) -> None:
        rng = np.random.default_rng(1)
        few = rng.poisson(20, 400)
        many = 10 * few + rng.poisson(5, 400)
        assert self.chosen([few, many, rng.poisson(20, 400)]) == ([1, 2], {"a": ("b",)})

    def test_a_sum_of_others_goes(self) -> None:
        rng = np.random.default_rng(2)
        a, b, c = rng.poisson(50, (3, 400))
        kept, left_out = self.chosen([a, b, c, a + b + c])
        assert len(kept) == 3
        assert list(left_out.values()) == [tuple("abcd"[column] for column in kept)]

    def test_types_that_rose_together_with_the_release_are_not_correlated(self) -> None:
        rng = np.random.default_rng(3)
        step = np.repeat([0, 500], 200)
        assert self.chosen([rng.poisson(50, 400) + step, rng.poisson(50, 400) + step]) == ([0, 1], {})

    def test_what_never_varies_is_left_out(self) -> None:
        rng = np.random.default_rng(4)
        assert self.chosen([np.full(400, 7), rng.poisson(50, 400)]) == ([1], {"a": ()})
        with pytest.raises(NotCompared, match="no type of request varies"):
            self.chosen([np.full(400, 7)])
