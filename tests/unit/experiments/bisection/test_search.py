"""Bisection under noise: the posterior, what is measured next, and when it is over."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from pipeline.experiments.bisection import (
    BeliefConfig,
    BisectionConfig,
    MeasuredVersions,
    MeasurementCosts,
    SearchOutcome,
    SearchRecord,
    SearchState,
    believe,
    next_version,
    prior_of,
    standing_of,
    suspect_range,
)
from pipeline.model import FloatArray

Cost = Callable[[int], float]


def even(commits: int) -> FloatArray:
    return np.full(commits, 1.0 / commits)


def search(
    cost: Cost,
    prior: FloatArray,
    config: BisectionConfig | None = None,
    broken: frozenset[int] = frozenset(),
) -> tuple[SearchState, SearchRecord]:
    """Search until it is over; a build takes ten times as long as a run."""
    measured: list[tuple[int, float]] = []
    ready: set[int] = set()
    skipped: set[int] = set()
    builds: list[float] = []
    while True:
        record = SearchRecord(measured, frozenset(skipped), builds, [1.0] * len(measured), frozenset(ready))
        standing = standing_of(record, prior, config or BisectionConfig())
        version = standing.next
        if version is None:
            return standing, record
        assert version not in skipped
        if version in ready:
            measured.append((version, cost(version)))
            continue
        builds.append(10.0)
        (skipped if version in broken else ready).add(version)


def noisy(cause: int, step: float, seed: int) -> Cost:
    rng = np.random.default_rng(seed)
    return lambda version: 100.0 + step * (version >= cause) + float(rng.normal())


@pytest.mark.parametrize("cause", [1, 2, 8, 15, 16])
def test_without_noise_a_commit_is_found_by_as_few_builds_as_halving_takes(cause: int) -> None:
    standing, record = search(lambda version: 1010.0 if version >= cause else 1000.0, even(16))
    assert (standing.outcome, standing.likeliest) == (SearchOutcome.FOUND, (cause - 1,))
    assert len(record.build_s) <= 2 + 4
    assert len(record.measured) <= 2 * len(record.build_s)


@pytest.mark.slow
def test_the_commit_is_found_as_often_as_the_posterior_says() -> None:
    found = 0
    for seed in range(30):
        cause = 1 + seed % 16
        standing, _ = search(noisy(cause, 3.0, seed), even(16))
        found += standing.outcome is SearchOutcome.FOUND and standing.likeliest == (cause - 1,)
    assert found >= 27


def test_a_range_without_a_step_is_seen_by_its_ends_alone() -> None:
    config = BisectionConfig(belief=BeliefConfig(threshold=0.02))
    results = [search(noisy(99, 0.0, seed), even(16), config) for seed in range(10)]
    assert sum(standing.outcome is SearchOutcome.NONE for standing, _ in results) >= 9
    assert sum(len(record.build_s) for _, record in results) <= 40


def test_a_step_in_the_other_direction_is_none_or_found_if_it_is_asked_for() -> None:
    fall = lambda version: 990.0 if version >= 5 else 1000.0  # noqa: E731
    up = BisectionConfig(belief=BeliefConfig(threshold=0.005))
    assert search(fall, even(8), up)[0].outcome is SearchOutcome.NONE
    standing, _ = search(fall, even(8), BisectionConfig(belief=BeliefConfig(direction="down")))
    assert standing.likeliest == (4,)


def test_versions_that_cannot_be_measured_make_their_neighbours_one_suspect() -> None:
    standing, _ = search(noisy(6, 8.0, 1), even(16), broken=frozenset({6, 7}))
    assert standing.outcome is SearchOutcome.FOUND
    assert standing.likeliest == (5, 6, 7)
    assert standing.commits[5:8].sum() >= 0.95


@pytest.mark.parametrize("end", [0, 16])
def test_an_end_that_cannot_be_measured_ends_the_search(end: int) -> None:
    standing, record = search(noisy(6, 8.0, 1), even(16), broken=frozenset({end}))
    assert (standing.outcome, standing.next) == (SearchOutcome.UNMEASURED, None)
    assert len(record.build_s) <= 2


@pytest.mark.parametrize(("builds", "runs"), [(1, None), (4, 40), (None, 2), (None, 9)])
def test_budgets_hold_and_what_is_known_is_said(builds: int | None, runs: int | None) -> None:
    standing, record = search(noisy(6, 0.5, 2), even(64), BisectionConfig(builds=builds, runs=runs))
    assert standing.outcome is SearchOutcome.SPENT
    assert builds is None or len(record.build_s) <= builds
    assert runs is None or len(record.run_s) <= runs
    assert standing.none + standing.commits.sum() == pytest.approx(1.0)


def test_a_likely_suspect_takes_fewer_builds() -> None:
    weights = {"c20": 0.9, "c40": 0.1}
    prior = prior_of([f"c{number}" for number in range(64)], weights)
    assert prior.sum() == pytest.approx(1.0)
    standing, record = search(noisy(21, 6.0, 3), prior)
    assert standing.likeliest == (20,)
    assert len(record.build_s) <= 5
    assert prior_of(["a", "b"], {"c": 1.0}).tolist() == [0.5, 0.5]


def measured(*values: tuple[int, float]) -> MeasuredVersions:
    versions, found = zip(*values, strict=True)
    return MeasuredVersions(np.array(versions), np.array(found))


def test_the_posterior_does_not_depend_on_the_unit_nor_on_the_order() -> None:
    rng = np.random.default_rng(1)
    version = rng.integers(0, 9, 20)
    value = 100.0 + 2.0 * (version >= 4) + rng.normal(size=20)
    config = BeliefConfig(threshold=0.01)
    expected = believe(MeasuredVersions(version, value), even(8), config)
    shuffled = rng.permutation(20)
    for other in (
        MeasuredVersions(version, value * 1e9),
        MeasuredVersions(version[shuffled], value[shuffled]),
    ):
        found = believe(other, even(8), config)
        assert found.commits == pytest.approx(expected.commits)
        assert found.none == pytest.approx(expected.none)


def test_one_outlier_is_not_believed() -> None:
    ends = [(0, 100.0 + 0.1 * number) for number in range(4)] + [
        (8, 110.0 + 0.1 * number) for number in range(4)
    ]
    middle = [(4, 100.1), (4, 100.2)]
    plain = believe(measured(*ends, *middle), even(8), BeliefConfig())
    with_outlier = believe(measured(*ends, *middle, (0, 500.0)), even(8), BeliefConfig())
    assert plain.commits[:4].sum() < 0.01
    assert with_outlier.commits[:4].sum() < 0.05
    assert with_outlier.none < 0.05


def test_dear_builds_make_repeats_of_what_is_built() -> None:
    ends = [(0, 99.0), (0, 101.0), (0, 100.5), (8, 100.0), (8, 102.5), (8, 102.0)]
    belief = believe(measured(*ends), even(8), BeliefConfig())
    build = np.full(9, 1.0)
    build[[0, 8]] = 0.0
    assert next_version(belief, MeasurementCosts(1.0, build * 1000.0)) in (0, 8)
    clear = believe(
        measured(*((one, value * (1 if one else 0.5)) for one, value in ends)), even(8), BeliefConfig()
    )
    assert next_version(clear, MeasurementCosts(1.0, build)) == 4
    assert next_version(clear, MeasurementCosts(1.0, np.full(9, np.inf))) is None


@pytest.mark.parametrize(
    ("values", "split", "up", "expected"),
    [
        ([1, 1, 1, 1, 9, 9, 9, 9], 4, True, (3, 4)),
        ([9, 9, 9, 9, 1, 1, 1, 1], 4, False, (3, 4)),
        ([1, 1, 1, 1, 1, 3, 7, 9, 9, 9, 9, 9], 6, True, (4, 7)),
        ([1, 1, 1, np.nan, np.nan, 9, 9, 9], 4, True, (2, 5)),
    ],
    ids=["step", "fall", "rise over some commits", "not measured"],
)
def test_the_range_of_suspects(
    values: list[float],
    split: int,
    up: bool,
    expected: tuple[int, int],  # noqa: FBT001
) -> None:
    assert suspect_range(np.array(values, dtype=float), split, up=up) == expected
