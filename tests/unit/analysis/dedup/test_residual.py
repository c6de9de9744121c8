"""What is left of a rise without the regressions that are known below it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pipeline.analysis.dedup.residual import explain_by_known
from pipeline.analysis.stacks import index_stacks
from pipeline.model import SeriesKey
from tests.support.builders import build_stacks

CHANCE = 1e-5  # 4.26 standard errors
TOTAL = 100_000.0


def explain(
    rows: dict[str, tuple[float, float]], *known: str, z: float = 5.0, series: str = "view"
) -> tuple[str, float] | None:
    """Return what of the known explains a rise of so many standard errors, and the share."""
    found = explain_by_known(
        index_stacks(build_stacks(rows, TOTAL)),
        SeriesKey("subroutine", series),
        [SeriesKey("subroutine", name) for name in known],
        p_value=float(stats.norm.sf(z)),
        chance=CHANCE,
    )
    return None if found is None else (known[found.known], round(found.share, 6))


ROWS = {
    "main->view->slow": (1000.0, 1400.0),  # 40 % of the view's rise
    "main->view->parse": (2000.0, 2300.0),  # 30 %
    "main->view->draw": (3000.0, 3300.0),
    "main->page": (94_000.0, 93_000.0),
}


@pytest.mark.parametrize(
    ("known", "z", "expected"),
    [
        pytest.param(["slow"], 5.0, ("slow", 0.4), id="three standard errors are left of five"),
        pytest.param(["slow"], 7.0, ("slow", 0.4), id="4.2 of seven are hardly enough"),
        pytest.param(["slow"], 7.2, None, id="4.3 of 7.2 are a change point"),
        pytest.param(["slow"], 4.0, None, id="what is none with all of it is not asked about"),
        pytest.param(["parse", "slow"], 5.0, ("slow", 0.4), id="the one that explains most"),
        pytest.param(["page"], 5.0, None, id="not below it"),
        pytest.param(["gone"], 5.0, None, id="in no stack"),
        pytest.param([], 5.0, None, id="nothing is known"),
        pytest.param(["view"], 5.0, None, id="the same series"),
        pytest.param(["main"], 5.0, None, id="a caller of it explains all and nothing"),
    ],
)
def test_what_is_known_under_explains_a_rise_if_the_rest_is_no_change_point(
    known: list[str], z: float, expected: tuple[str, float] | None
) -> None:
    assert explain(ROWS, *known, z=z) == expected


def test_what_most_of_it_comes_through_is_judged_elsewhere() -> None:
    rows = {**ROWS, "main->view->slow": (1000.0, 2500.0)}
    assert explain(rows, "slow") is None
    assert explain(rows, "slow", "parse") is None  # 14 % are too little


def test_what_no_longer_rises_explains_nothing() -> None:
    # 25 samples more of 1,000 are chance, though they are half of what the view has more.
    rows = {"main->view->slow": (1000.0, 1025.0), "main->view->draw": (10.0, 35.0)}
    assert explain(rows, "slow") is None


def test_a_fall_is_explained_as_a_rise_is() -> None:
    fallen = {name: (after, before) for name, (before, after) in ROWS.items()}
    assert explain(fallen, "slow") == ("slow", 0.4)


def test_without_stacks_nothing_is_explained() -> None:
    assert explain({}, "slow") is None
    assert explain({"main->page": (10.0, 20.0)}, "slow") is None


@given(st.floats(4.3, 30), st.integers(1, 2000), st.integers(1, 2000))
def test_the_share_that_is_enough_leaves_less_than_a_change_point(z: float, under: int, beside: int) -> None:
    rows = {
        "main->view->slow": (1000.0, 1000.0 + under),
        "main->view->draw": (1000.0, 1000.0 + beside),
        "main->page": (90_000.0, 90_000.0),
    }
    found = explain(rows, "slow", z=z)
    if found is not None:
        assert z * (1 - found[1]) <= float(stats.norm.isf(CHANCE)) + 1e-4
        assert found[1] < 0.7
