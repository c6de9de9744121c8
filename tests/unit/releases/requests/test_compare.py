"""Several metrics at once, how many periods show a rise, and the baseline of response times."""

from __future__ import annotations

import numpy as np
import pytest

from loadgen.requests.simulate import PRESETS, simulate
from loadgen.requests.table import measure
from pipeline.analysis.published.liao2021.baseline import compare_response_times
from pipeline.releases.requests import (
    NotCompared,
    ReleaseComparison,
    ReleasePeriods,
    Releases,
    RequestCompareConfig,
    compare_releases,
    periods_needed,
)


def test_chances_are_adjusted_for_the_number_of_metrics() -> None:
    case = simulate(PRESETS["plain"], np.random.default_rng(1), 0.05)
    rng = np.random.default_rng(2)
    noise = {
        f"other{number}": Releases(
            case.releases.types,
            ReleasePeriods(case.releases.old.counts, rng.standard_normal(480)),
            ReleasePeriods(case.releases.new.counts, rng.standard_normal(480)),
        )
        for number in range(3)
    }
    found = compare_releases({"cpu": case.releases, **noise})
    cpu = found["cpu"]
    assert isinstance(cpu, ReleaseComparison)
    assert cpu.slower
    assert cpu.p == pytest.approx(4.0 * cpu.costs.p)
    assert next(iter(cpu.costs.changes[0].likely)) == case.type


def test_one_metric_that_cannot_be_compared_leaves_the_others() -> None:
    case = simulate(PRESETS["plain"], np.random.default_rng(1))
    constant = Releases(
        case.releases.types,
        ReleasePeriods(case.releases.old.counts, np.ones(480)),
        ReleasePeriods(case.releases.new.counts, np.ones(480)),
    )
    found = compare_releases({"memory": constant, "cpu": case.releases})
    assert isinstance(found["memory"], NotCompared)
    assert isinstance(found["cpu"], ReleaseComparison)


def test_a_faster_release_is_changed_and_not_slower() -> None:
    case = simulate(PRESETS["plain"], np.random.default_rng(1), 0.1)
    swapped = Releases(case.releases.types, case.releases.new, case.releases.old)
    (found,) = compare_releases({"cpu": swapped}).values()
    assert isinstance(found, ReleaseComparison)
    assert (found.changed, found.slower) == (True, False)


def test_too_few_periods_for_the_types_is_said() -> None:
    case = simulate(PRESETS["few"], np.random.default_rng(3))
    short = Releases(
        case.releases.types, case.releases.old.at(slice(0, 25)), case.releases.old.at(slice(25, 50))
    )
    (found,) = compare_releases({"cpu": short}).values()
    assert isinstance(found, NotCompared)


def test_as_many_periods_as_are_needed_show_the_rise() -> None:
    """A rise of which 90 of 100 are said to be found is found in about as many."""
    rng = np.random.default_rng(4)

    def drawn(periods: int, rise: float) -> Releases:
        counts = rng.poisson(40.0, (2 * periods, 2)).astype(np.float64)
        metric = counts @ [1.0, 1.0] + 4.0 * rng.standard_normal(2 * periods)
        metric[periods:] += rise * counts[periods:, 0]
        halves = (slice(0, periods), slice(periods, None))
        return Releases(("a", "b"), *(ReleasePeriods(counts[half], metric[half]) for half in halves))

    (equal,) = compare_releases({"cpu": drawn(300, 0.0)}).values()
    assert isinstance(equal, ReleaseComparison)
    needed = periods_needed(equal.costs, len(equal.compared.new), "a", 0.05, 0.05)
    assert needed is not None
    found = [compare_releases({"cpu": drawn(needed, 0.05)})["cpu"] for _ in range(20)]
    share = np.mean([isinstance(each, ReleaseComparison) and each.slower for each in found])
    assert 0.75 <= share <= 1.0
    assert periods_needed(equal.costs, 300, "a", 0.025, 0.05) == pytest.approx(4 * needed, rel=0.02)


def test_the_benchmark_counts_what_is_found_and_named() -> None:
    (row,) = measure("plain", 0.1, 3, 0.05, 1)
    assert (row.found, row.first, row.named, row.types, row.compared) == (1.0, 1.0, 1.0, 1.0, 1.0)


def test_response_times_of_equal_and_of_slower_types() -> None:
    rng = np.random.default_rng(5)
    old = {name: rng.lognormal(0.0, 0.3, 200) for name in ("equal", "slower", "gone")}
    new = {
        "equal": rng.lognormal(0.0, 0.3, 200),
        "slower": 1.5 * rng.lognormal(0.0, 0.3, 200),
        "fresh": old["gone"],
    }
    first, second = compare_response_times(old, new)
    assert (first.type, first.slower) == ("slower", True)
    assert (second.type, second.slower) == ("equal", False)
    # The share of pairs in which the new one is slower, less the share in which it is faster.
    pairs = np.sign(new["slower"][:, None] - old["slower"][None, :])
    assert first.delta == pytest.approx(pairs.mean())


def test_alpha_is_the_chance_of_a_false_alarm() -> None:
    case = simulate(PRESETS["plain"], np.random.default_rng(1))
    (strict,) = compare_releases({"cpu": case.releases}, RequestCompareConfig(alpha=1e-6)).values()
    assert isinstance(strict, ReleaseComparison)
    assert not strict.changed
