"""Which requests cost more: equal releases, one and two changes, and types that cannot be kept apart."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.model import FloatArray
from pipeline.releases.requests import BASE, EVERY, ReleasePeriods, Releases, compare_costs

COSTS = np.array([0.02, 0.01, 0.005])
TYPES = ("GET /a", "GET /b", "GET /c")


def drawn(
    seed: int, changes: dict[str, float], noise: float = 0.02, counts: FloatArray | None = None
) -> Releases:
    """Two releases of 200 periods; ``changes`` are absolute, by type or BASE."""
    rng = np.random.default_rng(seed)
    if counts is None:
        counts = rng.poisson(rng.lognormal(3.0, 0.5, (400, 3))).astype(np.float64)
    risen = COSTS + np.array([changes.get(name, 0.0) for name in TYPES])
    metric = np.concatenate([counts[:200] @ COSTS, counts[200:] @ risen + changes.get(BASE, 0.0)]) + 0.1
    metric *= 1.0 + noise * rng.standard_normal(400)
    return Releases(
        TYPES, ReleasePeriods(counts[:200], metric[:200]), ReleasePeriods(counts[200:], metric[200:])
    )


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"GET /b": 0.002}, {"GET /b"}),
        ({"GET /b": -0.002}, {"GET /b"}),
        ({"GET /a": 0.002, "GET /c": 0.004}, {"GET /a", "GET /c"}),
        ({BASE: 0.05}, {BASE}),
    ],
)
def test_changes_are_found_with_their_size(changes: dict[str, float], found: set[str]) -> None:
    costs = compare_costs(drawn(2, changes), np.random.default_rng(0))
    assert {change.type for change in costs.changes} == found
    for change in costs.changes:
        assert abs(change.change - changes[change.type]) < 4.0 * change.error
        assert next(iter(change.likely)) == change.type
        assert change.p <= 0.05
    assert costs.r_squared > 0.95
    for name, cost in zip(TYPES, COSTS, strict=True):
        assert costs.old[name] == pytest.approx(cost, abs=0.002)


def test_a_slower_machine_is_no_type_and_hides_none() -> None:
    releases = drawn(2, {"GET /b": 0.004})
    new = ReleasePeriods(releases.new.counts, 1.1 * releases.new.metric)
    costs = compare_costs(Releases(TYPES, releases.old, new), np.random.default_rng(0))
    sizes = {change.type: (change.change, change.error) for change in costs.changes}
    assert set(sizes) == {EVERY, "GET /b"}
    for type_, truth in ((EVERY, 0.1), ("GET /b", 1.1 * 0.004)):
        assert abs(sizes[type_][0] - truth) < 4.0 * sizes[type_][1]
    assert costs.old[EVERY] == 1.0


@pytest.mark.parametrize("fades_after", [4.0, 10.0, 20.0])
def test_a_warm_up_is_no_change_and_hides_none(fades_after: float) -> None:
    begun = 1.0 + 0.5 * np.exp(-np.arange(200) / fades_after)
    for changes in ({}, {"GET /b": 0.004}):
        releases = drawn(2, changes)
        new = ReleasePeriods(releases.new.counts, begun * releases.new.metric)
        costs = compare_costs(Releases(TYPES, releases.old, new), np.random.default_rng(0), alpha=0.01)
        assert {change.type for change in costs.changes} == changes.keys()
        assert (costs.p <= 0.01) == bool(changes)
        assert costs.warm_up == pytest.approx(1.0 - 1.0 / begun.mean(), abs=0.02)


@pytest.mark.parametrize("changes", [{}, {"GET /b": 0.002}])
def test_costs_that_go_with_the_time_of_day_are_no_change(changes: dict[str, float]) -> None:
    starts = np.arange(0.0, 120_000.0, 300.0)  # a day and a third
    rng = np.random.default_rng(3)
    counts = rng.poisson(rng.lognormal(3.0, 0.5, (400, 3))).astype(np.float64)
    risen = np.where(np.arange(400)[:, None] < 300, COSTS, COSTS + [changes.get(name, 0.0) for name in TYPES])
    day = (
        1.0 + 0.05 * np.sin(2.0 * np.pi * starts / 86_400.0) + 0.03 * np.cos(4.0 * np.pi * starts / 86_400.0)
    )
    metric = (0.1 + (counts * risen).sum(axis=1)) * day * (1.0 + 0.02 * rng.standard_normal(400))
    sides = (
        ReleasePeriods(counts[part], metric[part], starts=starts[part])
        for part in np.split(np.arange(400), [300])
    )
    costs = compare_costs(Releases(TYPES, *sides), np.random.default_rng(0), alpha=0.01)
    assert {change.type for change in costs.changes} == changes.keys()


def test_what_lasts_is_no_warm_up() -> None:
    costs = compare_costs(drawn(2, {"GET /b": 0.004}), np.random.default_rng(0), alpha=0.01)
    assert costs.warm_up == 0.0


def test_the_share_is_that_of_the_metric_at_the_new_load() -> None:
    releases = drawn(2, {"GET /b": 0.003})
    (change,) = compare_costs(releases, np.random.default_rng(0)).changes
    truth = 0.003 * releases.new.counts[:, 1].mean() / releases.new.metric.mean()
    assert abs(change.share - truth) < 4.0 * change.share_error
    assert change.share_error == pytest.approx(change.error * change.share / change.change)


def test_equal_releases_differ_as_often_as_asked() -> None:
    chances = [
        compare_costs(drawn(seed, {}), np.random.default_rng(seed), draws=199).p for seed in range(200)
    ]
    assert 0.01 <= np.mean([p <= 0.05 for p in chances]) <= 0.10  # 99.8 % of binomial draws of 0.05
    assert 0.40 <= np.mean([p <= 0.5 for p in chances]) <= 0.60


def test_other_load_and_noise_that_lasts_are_no_change() -> None:
    rng = np.random.default_rng(7)
    alarms = 0
    for _ in range(80):
        counts = rng.poisson(rng.lognormal(3.0, 0.3, (400, 3))).astype(np.float64)
        counts[200:] = rng.poisson(rng.lognormal(3.3, 0.5, (200, 3)))
        slow = np.repeat(rng.standard_normal(40), 10)
        metric = (0.1 + counts @ COSTS) ** 1.2 * (1.0 + 0.03 * slow)
        releases = Releases(
            TYPES, ReleasePeriods(counts[:200], metric[:200]), ReleasePeriods(counts[200:], metric[200:])
        )
        alarms += compare_costs(releases, rng, draws=199).p <= 0.05
    assert alarms <= 10


def test_types_that_always_come_together_are_named_together() -> None:
    rng = np.random.default_rng(3)
    counts = rng.poisson(rng.lognormal(3.0, 0.5, (400, 3))).astype(np.float64)
    counts[:, 2] = counts[:, 1]
    (change,) = compare_costs(drawn(3, {"GET /b": 0.004}, counts=counts), rng).changes
    assert set(change.likely) == {"GET /b", "GET /c"}
    assert change.likely["GET /b"] == pytest.approx(change.likely["GET /c"])


def test_a_type_that_is_new_explains_its_own_requests() -> None:
    rng = np.random.default_rng(4)
    counts = rng.poisson(rng.lognormal(3.0, 0.5, (400, 3))).astype(np.float64)
    counts[:200, 2] = 0.0
    costs = compare_costs(drawn(4, {}, counts=counts), rng)
    assert costs.p > 0.05
    assert costs.old["GET /c"] == pytest.approx(0.005, abs=0.002)
    assert np.isnan(costs.errors["GET /c"])  # whether it changed cannot be known


def test_the_same_seed_gives_the_same_answer() -> None:
    releases = drawn(5, {"GET /a": 0.001})
    assert compare_costs(releases, np.random.default_rng(1)) == compare_costs(
        releases, np.random.default_rng(1)
    )


@pytest.mark.parametrize("scale", [1e-9, 1e9])
def test_the_unit_of_the_metric_does_not_matter(scale: float) -> None:
    plain = drawn(6, {"GET /b": 0.002})
    other = Releases(
        TYPES,
        ReleasePeriods(plain.old.counts, plain.old.metric * scale),
        ReleasePeriods(plain.new.counts, plain.new.metric * scale),
    )
    ours, theirs = (compare_costs(each, np.random.default_rng(1)) for each in (plain, other))
    assert theirs.p == ours.p
    assert theirs.changes[0].share == pytest.approx(ours.changes[0].share)
