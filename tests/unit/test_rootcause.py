from __future__ import annotations

import pytest

from pipeline.gcpu.stacks import membership
from pipeline.model import StackMatrix
from pipeline.rootcause.attribution import attributed_fraction
from pipeline.rootcause.ranking import candidate_changes, rank_suspects
from tests.builders import build_change, build_stacks

# FBDetect Table 4: gCPU of the stack samples that hold B, before and after, in hundredths of the service.
TABLE_4 = build_stacks(
    {
        "A->B->C": (0.01, 0.02),
        "B->E->F": (0.02, 0.03),
        "D->B->C": (0.02, 0.02),
        "B->E->D": (0.04, 0.06),
        "G->B->D": (0.00, 0.01),
    },
    total=1.0,
)
OF_B = membership(TABLE_4.stacks, [("subroutine", "B")])[0]
T = 1_700_000_000.0


def test_table_4_attributes_80_percent_to_the_change_of_a_and_e() -> None:
    assert attributed_fraction(TABLE_4, OF_B, ["A", "E"]) == pytest.approx(0.80)


@pytest.mark.parametrize(
    ("subroutines", "fraction"),
    [
        pytest.param(["B"], 1.0, id="the regressed subroutine itself"),
        pytest.param(["A"], 0.2, id="only A"),
        pytest.param(["E"], 0.6, id="only E"),
        pytest.param(["G"], 0.2, id="a caller that did not exist before"),
        pytest.param(["unrelated"], 0.0, id="in no stack"),
        pytest.param([], 0.0, id="a change that modified nothing known"),
    ],
)
def test_attribution(subroutines: list[str], fraction: float) -> None:
    assert attributed_fraction(TABLE_4, OF_B, subroutines) == pytest.approx(fraction)


def test_attribution_needs_a_rise() -> None:
    flat = build_stacks({"A->B": (1, 1), "C": (9, 9)})
    assert attributed_fraction(flat, membership(flat.stacks, [("subroutine", "B")])[0], ["A"]) is None
    assert attributed_fraction(build_stacks({"B": (0, 1)}), OF_B[:1], ["B"]) is None


def test_only_changes_deployed_just_before_are_candidates() -> None:
    changes = [
        build_change(name, time=T + at)
        for name, at in [
            ("long before", -101),
            ("before", -50),
            ("at", 0),
            ("a window after", 9),
            ("after", 20),
        ]
    ]
    found = candidate_changes(changes[::-1], T, lookback_s=100, tolerance_s=10)
    assert [change.id for change in found] == ["before", "at", "a window after"]


def test_a_change_that_is_announced_again_counts_from_its_first_deployment() -> None:
    changes = [build_change("one", time=T + at) for at in (-5, -40, -20)]
    (found,) = candidate_changes(changes, T, lookback_s=100, tolerance_s=10)
    assert found.time == T - 40


def rank(matrix: StackMatrix, *changes: tuple[str, list[str], float]) -> list[str]:
    built = [build_change(name, subroutines, time=T + at) for name, subroutines, at in changes]
    return [s.change.id for s in rank_suspects(matrix, OF_B, built, T, lookback_s=100)]


def test_the_change_that_explains_most_comes_first() -> None:
    assert rank(TABLE_4, ("g", ["G"], -1), ("ae", ["A", "E"], -60), ("none", ["x"], 0)) == ["ae", "g"]


def test_between_equals_the_later_comes_first() -> None:
    assert rank(TABLE_4, ("early", ["B"], -90), ("late", ["B"], -5)) == ["late", "early"]


def test_recency_alone_accuses_nobody() -> None:
    assert rank(TABLE_4, ("docs", [], 0), ("other", ["x"], 0)) == []


def test_at_most_three_are_told_with_their_factors() -> None:
    changes = [build_change(f"c{i}", ["B"], time=T - i) for i in range(5)]
    suspects = rank_suspects(TABLE_4, OF_B, changes, T, lookback_s=100)
    assert [s.change.id for s in suspects] == ["c0", "c1", "c2"]
    assert suspects[0].factors == {"attribution": pytest.approx(1.0), "recency": pytest.approx(1.0)}
    assert suspects[0].score == pytest.approx(1.0)
