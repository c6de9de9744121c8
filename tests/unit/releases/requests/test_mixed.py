"""The mixed model: few periods of many types, the level of equal releases, and beside costs in one table."""

from __future__ import annotations

import numpy as np
import pytest
from statsmodels.regression.mixed_linear_model import MixedLM, VCSpec

from loadgen.requests.simulate import PRESETS, simulate
from loadgen.requests.table import COSTS, MIXED, measure
from pipeline.analysis.statistics.fit import orthonormal
from pipeline.model import FloatArray
from pipeline.releases.requests import EVERY, NotCompared, ReleasePeriods, Releases, compare_releases
from pipeline.releases.requests.costs import cost_columns
from pipeline.releases.requests.mixed import MixedFit, compare_mixed

TYPES = tuple(f"GET /{number}" for number in range(20))


def drawn(
    periods: int, rises: dict[int, float], seed: int = 0, share: float = 1.0, every: float = 0.0
) -> Releases:
    """Two releases of twenty types; ``rises`` are relative, of each type's cost."""
    rng = np.random.default_rng(seed)
    counts = rng.poisson(rng.lognormal(3.0, 0.5, (2 * periods, len(TYPES)))).astype(np.float64)
    costs = np.full(len(TYPES), 0.01)
    change = costs * [rises.get(number, 0.0) for number in range(len(TYPES))]
    own = np.floor(share * counts)
    after = np.arange(2 * periods) >= periods
    metric = 0.5 + counts @ costs + after * (own @ change)
    metric *= (1.0 + every * after) * (1.0 + 0.01 * rng.standard_normal(2 * periods))
    return Releases(
        TYPES,
        ReleasePeriods(counts[~after], metric[~after]),
        ReleasePeriods(counts[after], metric[after], None if share == 1.0 else own[after]),
    )


def test_few_periods_say_something_of_many_types() -> None:
    """Thirty of each release are too few for costs one by one, which need 44."""
    releases = drawn(30, {4: 0.6})
    (costs,) = compare_releases({"cpu": releases}).values()
    assert isinstance(costs, NotCompared)
    found = compare_mixed(releases, np.random.default_rng(0))
    assert found.p == 0.001
    assert next(iter(found.likely)) == "GET /4"
    assert sum(found.likely.values()) >= 0.95
    level = releases.new.metric.mean()
    assert found.share == pytest.approx(0.6 * 0.01 * releases.new.counts[:, 4].mean() / level, rel=0.3)


@pytest.mark.parametrize(
    ("given", "first"),
    [
        pytest.param({"rises": {4: 1.0}, "share": 0.4}, "GET /4", id="side by side"),
        pytest.param({"rises": {}, "every": 0.1}, EVERY, id="a slower machine"),
        pytest.param({"rises": {4: 0.8, 9: -0.8}}, "GET /4", id="one more, another less"),
    ],
)
def test_the_type_that_rose_most_comes_first(given: dict[str, float], first: str) -> None:
    found = compare_mixed(drawn(60, **given), np.random.default_rng(0))  # type: ignore[arg-type]
    assert found.p < 0.01
    assert next(iter(found.likely)) == first


def test_the_fit_is_that_of_statsmodels() -> None:
    releases = drawn(40, {4: 0.3})
    metric = np.concatenate([releases.old.metric, releases.new.metric])
    common, changed = cost_columns(releases, metric)
    fixed = orthonormal(common)
    columns = changed / np.sqrt(np.square(changed).sum(axis=0))
    names = [str(number) for number in range(columns.shape[1])]
    effects = VCSpec(["change"], [[names]], [[columns]])
    wanted = MixedLM(metric, fixed, groups=np.zeros(len(metric)), exog_vc=effects).fit(reml=True)
    (means,) = wanted.random_effects.values()
    found = MixedFit.of(metric, fixed, columns)
    assert found.means == pytest.approx(means.to_numpy(), rel=0.01, abs=1e-4)
    # Its covariance is of fixed effects that are known; here they are not.
    fresh = columns - fixed @ (fixed.T @ columns)
    width, noise = float(wanted.vcomp[0]), float(wanted.scale)
    covariance = np.linalg.inv(fresh.T @ fresh / noise + np.eye(len(names)) / width)
    assert found.covariance == pytest.approx(covariance, rel=0.01, abs=1e-5)
    # A change of its own is a fixed effect among random ones: generalised least squares.
    others = np.delete(columns, 5, axis=1)
    inverse = np.linalg.inv(noise * np.eye(len(metric)) + width * others @ others.T)
    design = np.column_stack([fixed, columns[:, 5]])
    errors = np.linalg.inv(design.T @ inverse @ design)
    own, own_errors = found.own()
    assert own[5] == pytest.approx((errors @ design.T @ inverse @ metric)[-1], rel=0.02)
    assert own_errors[5] == pytest.approx(np.sqrt(errors[-1, -1]), rel=0.02)


def test_intervals_hold_the_changes() -> None:
    """Those of random effects hold a single large change in one of five cases."""
    held = []
    for seed in range(20):
        releases = drawn(30, {4: 0.6}, seed)
        changes = compare_mixed(releases, np.random.default_rng(0), 1).changes
        true = {"GET /4": 0.006}
        held += [
            (each.type in true, abs(each.change - true.get(each.type, 0.0)) <= 1.96 * each.error)
            for each in changes
            if each.type in TYPES
        ]
    assert np.mean([holds for risen, holds in held if risen]) >= 0.85
    assert np.mean([holds for risen, holds in held if not risen]) >= 0.9


def test_what_got_cheaper_is_no_rise() -> None:
    found = compare_mixed(drawn(60, {4: -0.6}), np.random.default_rng(0))
    assert found.p < 0.01
    assert found.share < 0.0


def test_equal_releases_differ_as_often_as_asked() -> None:
    chances = [compare_mixed(drawn(40, {}, seed), np.random.default_rng(0)).p for seed in range(60)]
    assert np.mean(np.array(chances) <= 0.1) <= 0.2


def test_too_few_periods_are_no_verdict() -> None:
    with pytest.raises(NotCompared, match="both releases have 26 periods, fewer than") as caught:
        compare_mixed(drawn(13, {}), np.random.default_rng(0))
    assert caught.value.code == "few_periods"


def test_a_metric_without_noise_has_an_answer() -> None:
    releases = drawn(30, {})
    exact: FloatArray = np.asarray(releases.new.counts @ np.full(len(TYPES), 0.01))
    found = compare_mixed(
        Releases(TYPES, releases.old, ReleasePeriods(releases.new.counts, exact)), np.random.default_rng(0)
    )
    assert 0.0 <= found.p <= 1.0


def test_both_stand_in_one_table() -> None:
    rows = list(measure("few", 0.05, 3, 0.05, 1, (MIXED,)))
    assert [row.method for row in rows] == [COSTS, MIXED]
    assert rows[1].compared == 1.0
    assert rows[1].found >= 0.6
    case = simulate(PRESETS["few"], np.random.default_rng((1, 0)), 0.05)
    assert compare_mixed(case.releases.readable(), np.random.default_rng(0)).p < 0.05
