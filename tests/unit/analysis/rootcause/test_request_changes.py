"""Suspects of a request that costs more, ranked by the call graph alone."""

from __future__ import annotations

import pytest

from pipeline.analysis.rootcause import RequestReach, rank_request_changes
from pipeline.model import Change

DEPTHS = {"handler": 0, "callee": 1, "shared": 1, "deep": 3}
ALL = frozenset({*DEPTHS, *(f"other{number}" for number in range(50))})
REACH = RequestReach("GET /cart/:id", DEPTHS, {"handler": 1, "callee": 1, "shared": 9, "deep": 1}, ALL)


def change(name: str, *subroutines: str, title: str = "Change", files: tuple[str, ...] = ("a.py",)) -> Change:
    return Change(name, "shop", 0.0, title, subroutines=subroutines, files=files)


@pytest.mark.parametrize(
    ("changes", "order"),
    [
        pytest.param([change("far", "deep"), change("near", "callee")], ["near", "far"], id="nearer first"),
        pytest.param(
            [change("all", "shared"), change("own", "deep")], ["own", "all"], id="of few requests first"
        ),
        pytest.param(
            [change("none", "other1"), change("own", "deep")], ["own"], id="out of reach is left out"
        ),
        pytest.param(
            [change("large", "callee", *(f"other{n}" for n in range(30))), change("small", "callee")],
            ["small", "large"],
            id="of few subroutines first",
        ),
        pytest.param(
            [change("a", "deep"), change("b", "deep", title="Cart: look up each id")],
            ["b", "a"],
            id="similar words first",
        ),
        pytest.param([], [], id="no change"),
    ],
)
def test_suspects_are_ranked(changes: list[Change], order: list[str]) -> None:
    found = rank_request_changes(REACH, changes)
    assert [suspect.change.id for suspect in found] == order


def test_scores_are_shares_of_all_changes() -> None:
    changes = [change("near", "callee"), change("none", "other1"), change("text", files=("README.md",))]
    (suspect,) = rank_request_changes(REACH, changes)
    assert 0.9 < suspect.score < 1.0
    assert suspect.factors["nearness"] == 0.5
    alone = rank_request_changes(REACH, changes[:1])
    assert alone[0].score == pytest.approx(1.0)


def test_the_order_of_changes_does_not_matter() -> None:
    changes = [change("a", "deep"), change("b", "callee"), change("c", "shared", "handler")]
    there = rank_request_changes(REACH, changes)
    back = rank_request_changes(REACH, changes[::-1])
    assert [suspect.change.id for suspect in there] == [suspect.change.id for suspect in back]
    assert [suspect.score for suspect in there] == pytest.approx([suspect.score for suspect in back])
