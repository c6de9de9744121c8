"""Response times as evidence: what all types share is no shift, and no shift decides by itself."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.model import FloatArray
from pipeline.releases.requests import ReleasePeriods, Releases, compare_costs
from pipeline.releases.requests.response_times import FEWEST_PERIODS, Shifts, log_evidence, response_shifts

TYPES = 6


def sides(
    rises: dict[int, float], periods: int = 80, slower: float = 0.0, spread: float = 0.5
) -> tuple[ReleasePeriods, ReleasePeriods]:
    """Two releases under load that makes all requests wait; ``slower`` of all types, ``rises`` of some."""
    rng = np.random.default_rng(3)
    found = []
    for extra in (np.zeros(TYPES), slower + np.array([rises.get(each, 0.0) for each in range(TYPES)])):
        counts = rng.poisson(30.0, (periods, TYPES)).astype(np.float64)
        waiting = np.cumsum(rng.normal(0.0, 0.1, periods))[:, None]
        noise = spread * rng.standard_normal(counts.shape) / np.sqrt(np.maximum(counts, 1.0))
        times = np.arange(TYPES) / 2.0 - 3.0 + extra + waiting + noise
        found.append(ReleasePeriods(counts, counts.sum(axis=1), times=np.where(counts > 0.0, times, np.nan)))
    return found[0], found[1]


@pytest.mark.parametrize("slower", [0.0, 0.7, -0.7])
@pytest.mark.parametrize("rises", [{}, {2: 0.1}, {0: -0.2, 5: 0.3}])
def test_a_shift_is_what_a_type_alone_takes_longer(rises: dict[int, float], slower: float) -> None:
    shifts = response_shifts(*sides(rises, slower=slower))
    truth = np.array([rises.get(each, 0.0) for each in range(TYPES)])
    assert (np.abs(shifts.shift - truth) < 4.0 * shifts.error).all()
    assert (shifts.error < 0.1).all()


def test_types_that_differ_though_nothing_changed_widen_the_error() -> None:
    every = {0: 0.5, 1: -0.4, 2: 0.3, 3: -0.3, 4: 0.4, 5: -0.5}
    assert (response_shifts(*sides(every)).error > 5.0 * response_shifts(*sides({})).error).all()


@pytest.mark.parametrize("missing", ["all", "old", "few"])
def test_what_is_not_known_is_no_evidence(missing: str) -> None:
    old, new = sides({2: 0.3})
    if missing == "few":
        assert new.times is not None
        new.times[FEWEST_PERIODS - 1 :, 2] = np.nan
    else:
        old = ReleasePeriods(old.counts, old.metric)
        new = new if missing == "old" else ReleasePeriods(new.counts, new.metric)
    shifts = response_shifts(old, new)
    assert np.isnan(shifts.shift).tolist() == [missing != "few" or each == 2 for each in range(TYPES)]
    assert log_evidence(shifts, np.ones(TYPES))[2] == pytest.approx(0.0)


def test_evidence_goes_with_the_sign_of_the_cost() -> None:
    shifts = Shifts(np.array([0.0, 0.3, -0.3, 0.0]), np.full(4, 0.05))
    dearer, cheaper = log_evidence(shifts, np.ones(4)), log_evidence(shifts, -np.ones(4))
    assert dearer[1] > 0.5
    assert cheaper[2] == pytest.approx(dearer[1])
    assert dearer[[0, 2, 3]] == pytest.approx(np.zeros(3))
    assert cheaper[[0, 1, 3]] == pytest.approx(np.zeros(3))


@pytest.mark.parametrize(
    ("other", "chance"),
    [
        pytest.param(0.0, 1 / 10, id="no other is shifted"),
        pytest.param(0.2, 1 / 10, id="another less"),
        pytest.param(-1.0, 2 / 10, id="another as much, though faster"),
        pytest.param(2.0, 2 / 10, id="another more"),
    ],
)
def test_a_shift_counts_by_how_many_others_are_as_large(other: float, chance: float) -> None:
    shift = np.zeros(9)
    shift[:2] = 1.0, other
    evidence = log_evidence(Shifts(shift, np.full(9, 0.02)), np.ones(9))
    assert evidence[0] == pytest.approx(-np.log(chance), abs=1e-6)


_NUMBERS = st.floats(-50.0, 50.0)


@given(st.lists(st.tuples(_NUMBERS, st.floats(0.01, 10.0), st.booleans(), st.booleans()), min_size=1))
def test_evidence_is_bounded_by_how_many_types_there_are(
    drawn: list[tuple[float, float, bool, bool]],
) -> None:
    shift, error, known, rises = (np.array(column) for column in zip(*drawn, strict=True))
    evidence = log_evidence(
        Shifts(np.where(known, shift, np.nan), np.where(known, error, np.nan)), np.where(rises, 1.0, -1.0)
    )
    assert (evidence >= -1e-12).all()
    assert (evidence <= np.log(known.sum() + 1.0) + 1e-6).all()
    assert evidence[~known] == pytest.approx(np.zeros((~known).sum()))


def _together(times: tuple[FloatArray | None, FloatArray | None]) -> dict[str, float]:
    """Return how likely each type is the change where two that come together cost more together."""
    rng = np.random.default_rng(5)
    names = tuple(f"GET /{each}" for each in range(TYPES))
    found = []
    for number, costs in enumerate((np.full(TYPES, 0.01), np.array([0.01, 0.01, 0.02, 0.01, 0.01, 0.01]))):
        counts = rng.poisson(rng.lognormal(3.0, 0.5, (80, TYPES))).astype(np.float64)
        counts[:, 1] = counts[:, 2]
        metric = (0.1 + counts @ costs) * (1.0 + 0.02 * rng.standard_normal(80))
        found.append(ReleasePeriods(counts, metric, times=times[number]))
    compared = compare_costs(Releases(names, *found), np.random.default_rng(0))
    return compared.changes[0].likely


@pytest.mark.parametrize("dearer", [1, 2])
def test_times_say_which_of_two_types_that_come_together_costs_more(dearer: int) -> None:
    old, new = sides({dearer: 0.2})
    alone, other = f"GET /{dearer}", f"GET /{3 - dearer}"
    likely = _together((old.times, new.times))
    assert next(iter(likely)) == alone
    assert likely[alone] > 2.0 * likely.get(other, 0.0)
    for likely in (_together((None, None)), _together((old.times, None))):
        assert likely[alone] == pytest.approx(likely[other])
