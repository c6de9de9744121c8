from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from pipeline.analysis.detect.change_point import Family, SideSums, signed_roots
from pipeline.analysis.detect.seasonal.weekly import roots_against_week
from pipeline.model import BoolArray

FAMILIES: tuple[Family, ...] = ("values", "counts")
YES, NO = np.array([[True]]), np.array([[False]])
DEVIATION = {"values": 2.0, "counts": 1.0}
"""Of a value with a level of 100, and of counts: at exposure 1, and as large as sampling makes it."""


@dataclass(frozen=True)
class Levels:
    """What lies on both sides of a split, by means of 400 and 100 windows of exposure 100 each."""

    before: float
    after: float

    def sums(self, family: Family) -> SideSums:
        left, right = 400.0 * 100, 100.0 * 100
        # Counts are so many for each that is expected; values are around 0, as they come from normalise.
        shift = 0.0 if family == "counts" else 1.0
        sides = ((self.before - shift) * left, left, (self.after - shift) * right, right)
        return SideSums(*(np.array([[side]]) for side in sides))


def against(
    family: Family,
    now: Levels,
    then: Levels,
    *,
    whole: BoolArray = YES,
    half: BoolArray = YES,
    older: BoolArray | None = None,
    doubt: float = 2.0,
) -> tuple[float, SideSums]:
    roots, beyond = roots_against_week(
        now.sums(family),
        then.sums(family),
        now.sums(family),
        np.array([[DEVIATION[family]]]),
        family,
        whole=whole,
        half=half,
        older=whole if older is None else older,
        doubt=doubt,
    )
    return float(roots[0, 0]), beyond


def plain(family: Family, levels: Levels) -> float:
    return float(signed_roots(levels.sums(family), family)[0, 0]) / DEVIATION[family]


def change(sums: SideSums) -> float:
    return float((sums.right / sums.right_exposure - sums.left / sums.left_exposure)[0, 0])


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("size", [0.1, -0.1, 0.5], ids=["rise", "fall", "large rise"])
def test_what_happened_last_week_too_is_no_change(family: Family, size: float) -> None:
    root, beyond = against(family, Levels(1, 1 + size), Levels(1, 1 + size))
    assert abs(plain(family, Levels(1, 1 + size))) > 3
    assert abs(root) < 0.5
    assert change(beyond) == pytest.approx(0.0, abs=0.02)


@pytest.mark.parametrize("family", FAMILIES)
def test_what_goes_beyond_last_week_is(family: Family) -> None:
    root, beyond = against(family, Levels(1, 1.5), Levels(1, 1.2))
    assert 6 < root < plain(family, Levels(1, 1.5))
    expected = 0.3 if family == "values" else 1.5 / 1.2 - 1  # of counts, in terms of last week's level
    assert change(beyond) == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(
    ("now", "then"),
    [
        pytest.param(Levels(1, 1), Levels(1, 1.3), id="a rise that did not come again"),
        pytest.param(Levels(1, 1.1), Levels(1, 1.3), id="one that came again smaller"),
        pytest.param(Levels(1, 1), Levels(1, 0.7), id="a fall that did not come again"),
        pytest.param(Levels(1, 0.9), Levels(1, 0.7), id="one that came again smaller than last week's"),
    ],
)
def test_what_did_not_come_back_is_no_change_the_other_way(family: Family, now: Levels, then: Levels) -> None:
    # A level that jumped a week ago, for any reason, made the steady one of this week a regression.
    assert against(family, now, then)[0] == 0.0


@pytest.mark.parametrize("family", FAMILIES)
def test_what_went_the_other_way_last_week_counts_for_what_it_is(family: Family) -> None:
    now = Levels(1, 1.2)
    root, beyond = against(family, now, Levels(1, 0.7))
    assert root == pytest.approx(plain(family, now))
    assert change(beyond) == pytest.approx(0.2)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("chance", [0.0, 0.005, -0.01])
def test_what_may_be_chance_counts_for_nothing(family: Family, chance: float) -> None:
    now = Levels(1, 1.2)
    root, beyond = against(family, now, Levels(1, 1 + chance))
    assert root == pytest.approx(plain(family, now))
    assert change(beyond) == pytest.approx(0.2)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_more_doubt_the_less_is_taken_out(family: Family) -> None:
    taken = [
        against(family, Levels(1, 1.2), Levels(1, 1.08), doubt=doubt)[0] for doubt in (0.0, 2.0, 5.0, 500.0)
    ]
    assert taken == sorted(taken)
    assert taken[0] < taken[1] < taken[2] < taken[3] == pytest.approx(plain(family, Levels(1, 1.2)))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(
    ("now", "then", "lowest", "highest"),
    [
        pytest.param(Levels(1, 1.2), Levels(1, 1.0), 3, 20, id="a rise above last week"),
        pytest.param(Levels(1, 1.2), Levels(1, 1.2), -0.1, 0.1, id="as last week"),
        pytest.param(Levels(1, 1.2), Levels(1, 1.3), 0, 0, id="less than last week"),
        pytest.param(Levels(1, 0.8), Levels(1, 1.0), -20, -3, id="a fall below last week"),
    ],
)
def test_of_a_young_series_the_level_must_differ_from_last_weeks(
    family: Family, now: Levels, then: Levels, lowest: float, highest: float
) -> None:
    root, beyond = against(family, now, then, whole=NO)
    assert lowest <= root <= highest
    assert abs(root) <= abs(plain(family, now))
    assert change(beyond) == pytest.approx(now.after - now.before)


@pytest.mark.parametrize("family", FAMILIES)
def test_before_a_week_is_over_nothing_is_reported(family: Family) -> None:
    assert against(family, Levels(1, 3), Levels(1, 1), whole=NO, half=NO)[0] == 0.0


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("whole", [YES, NO], ids=["whole", "half"])
def test_a_week_without_any_data_gives_finite_answers(family: Family, whole: BoolArray) -> None:
    nothing = SideSums(*(np.zeros((1, 1)) for _ in range(4)))
    now, deviation = Levels(1, 1.2).sums(family), np.array([[1.0]])
    roots, beyond = roots_against_week(
        now, nothing, now, deviation, family, whole=whole, half=YES, older=whole
    )
    assert np.isfinite(roots).all()
    assert np.isfinite(change(beyond))


def test_on_noise_the_roots_are_standard_normal() -> None:
    rng = np.random.default_rng(9)
    draws = 20_000
    exposure = [np.full((draws, 1), weight) for weight in (400.0, 100.0)]

    def noise() -> SideSums:
        left, right = (rng.standard_normal((draws, 1)) * np.sqrt(weight) for weight in exposure)
        return SideSums(left, exposure[0], right, exposure[1])

    yes = np.ones((draws, 1), dtype=np.bool_)
    now = noise()
    roots, _ = roots_against_week(
        now, noise(), now, np.ones((draws, 1)), "values", whole=yes, half=yes, older=yes
    )
    assert roots.std() == pytest.approx(1.0, abs=0.05)
    assert (np.abs(roots) > 2.576).mean() <= 0.013


@pytest.mark.parametrize("family", FAMILIES)
def test_a_change_of_last_week_that_lasted_is_no_weekly_one(family: Family) -> None:
    # Last week the level rose from 1 to 1.2 and stayed there; now it rises again.
    root, beyond = against(family, Levels(1.2, 1.4), Levels(1, 1.2))
    assert root > 5
    assert change(beyond) == pytest.approx(0.2, abs=0.03)
