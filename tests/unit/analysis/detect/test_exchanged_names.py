from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from pipeline.analysis.detect.exchanged_names import STEP, decide, find_exchanges
from pipeline.model import Candidate, SeriesMatrix
from pipeline.model.units import DAY_S, HOUR_S

PER_DAY = 24
DAYS = 10
TOTAL = 10_000.0
STABLE = {f"stable{i}": 0.1 / (i + 1) for i in range(100)}

Life = tuple[float, float, float]  # from day, to day, gCPU


def fleet(lives: Mapping[str, Life], *, gap: tuple[int, int] | None = None) -> SeriesMatrix:
    """Return hourly counts of a hundred stable series and others that live for some days."""
    rng = np.random.default_rng(1)
    hours = np.arange(DAYS * PER_DAY)
    every: dict[str, Life] = {name: (0, DAYS, share) for name, share in STABLE.items()} | dict(lives)
    totals = np.full(len(hours), TOTAL)
    if gap:
        totals[gap[0] : gap[1]] = 0
    rows = [
        np.where((hours >= start * PER_DAY) & (hours < end * PER_DAY), share, 0.0)
        for start, end, share in every.values()
    ]
    samples = rng.poisson(np.array(rows) * totals).astype(np.float64)
    kinds = tuple("subroutine" for _ in every)
    return SeriesMatrix(0.0, HOUR_S, kinds, tuple(every), samples, totals)  # type: ignore[arg-type]


def risen(name: str, day: float, before: float, after: float) -> Candidate:
    return Candidate("subroutine", name, "short_term", day * DAY_S, before, after, 1e-9, 50.0)


def passes(matrix: SeriesMatrix, candidate: Candidate) -> bool:
    (decision,) = decide([candidate], matrix, find_exchanges(matrix))
    assert decision.step == STEP
    return decision.passed


RESTLESS = {f"g{i}_{day}": (day, day + 1, 0.002) for i in range(20) for day in range(DAYS)}
RENAMED = {f"old{i}": (0.0, 5.0, 0.002) for i in range(40)} | {
    f"new{i}": (5.0, 10.0, 0.002) for i in range(40)
}
RARE = {f"r{i}_{day}": (day, day + 1, 0.00005) for i in range(20) for day in range(DAYS)}
NEW = {f"new{i}": (5.0, 10.0, 0.002) for i in range(40)}


@pytest.mark.parametrize(
    ("lives", "candidate", "expected"),
    [
        pytest.param(RESTLESS, risen("g3_8", 8, 0, 0.002), False, id="a name that a restart made"),
        pytest.param(RESTLESS, risen("g3_8", 8.5, 0.001, 0.002), False, id="later in its only day"),
        pytest.param(RESTLESS, risen("stable3", 8, 0.025, 0.03), True, id="a stable name of that service"),
        pytest.param(
            {**RESTLESS, **RARE}, risen("r3_8", 8.4, 0, 0.00005), False, id="a rare one, seen some time later"
        ),
        pytest.param(
            {**RESTLESS, "noon_8": (8.5, 9.0, 0.002)},
            risen("noon_8", 8.5, 0, 0.002),
            False,
            id="one used at noon",
        ),
        pytest.param(
            {**RENAMED, "noon": (5.5, 10.0, 0.002)},
            risen("noon", 5.5, 0, 0.002),
            True,
            id="new after a rename",
        ),
        pytest.param(RENAMED, risen("new3", 5, 0, 0.002), False, id="a name of a mass rename"),
        pytest.param(RENAMED, risen("new3", 8, 0.002, 0.003), True, id="a rise days after the rename"),
        pytest.param(RENAMED, risen("new3", 8, 0, 0.002), False, id="the rename, dated late"),
        pytest.param(NEW, risen("new3", 5, 0, 0.002), True, id="much new code, and nothing went"),
        pytest.param({"new": (5, 10, 0.01)}, risen("new", 5, 0, 0.01), True, id="one new subroutine"),
        pytest.param(
            {"old": (0, 5, 0.01), "new": (5, 10, 0.01)}, risen("new", 5, 0, 0.01), True, id="one rename"
        ),
    ],
)
def test_a_rise_from_nothing_where_names_were_exchanged(
    lives: Mapping[str, Life], candidate: Candidate, expected: bool
) -> None:
    assert passes(fleet(lives), candidate) is expected


def test_names_of_one_life_are_counted() -> None:
    found = find_exchanges(fleet(RESTLESS))
    assert found.one_life == 20 * (DAYS - 2), "the first day's names and the last's may have lived longer"


@pytest.mark.parametrize("lives", [{}, RENAMED, NEW], ids=["calm", "one rename", "new code"])
def test_other_services_have_none(lives: Mapping[str, Life]) -> None:
    assert find_exchanges(fleet(lives)).one_life == 0


def test_a_gap_is_no_exchange() -> None:
    found = find_exchanges(fleet({}, gap=(100, 130)))
    assert not found.began.any()
    assert not found.ended.any()


def test_a_restart_behind_a_gap_is_an_exchange() -> None:
    lives = {f"old{i}": (0.0, 4.0, 0.002) for i in range(40)} | {
        f"new{i}": (5.0, 10.0, 0.002) for i in range(40)
    }
    found = find_exchanges(fleet(lives, gap=(4 * PER_DAY, 5 * PER_DAY)))
    assert found.began.sum() == found.ended.sum() == 40


def test_rare_names_neither_begin_nor_end() -> None:
    rng = np.random.default_rng(2)
    samples = (rng.random((500, 240)) < 0.01).astype(np.float64)
    kinds = tuple("subroutine" for _ in samples)
    names = tuple(f"r{i}" for i in range(500))
    matrix = SeriesMatrix(0.0, HOUR_S, kinds, names, samples, np.full(240, TOTAL))  # type: ignore[arg-type]
    assert not find_exchanges(matrix).began.any()


def test_no_series() -> None:
    matrix = SeriesMatrix(0.0, HOUR_S, (), (), np.zeros((0, 24)), np.ones(24))
    assert find_exchanges(matrix).one_life == 0
