from __future__ import annotations

import json
from pathlib import Path

import pytest

from agents.source.changes.trailers import MOST, expected_costs
from pipeline.cli import run
from pipeline.model import ExpectedCost
from tests.support.repositories import Work

TENTH = ExpectedCost(0.001, "shop.pricing.*")


@pytest.mark.parametrize(
    ("body", "found"),
    [
        pytest.param("Expected-Cost: 0.1% shop.pricing.*", [TENTH], id="alone"),
        pytest.param("Why.\n\nMore.\n\nExpected-Cost: 0.1% shop.pricing.*\n", [TENTH], id="after the text"),
        pytest.param(
            "Why.\n\nReviewed-by: Bob\nexpected-cost:0.1 %  shop.pricing.*\nChange-Id: I1",
            [TENTH],
            id="among others",
        ),
        pytest.param("Expected-Cost: 2%", [ExpectedCost(0.02)], id="without a name"),
        pytest.param(
            "Expected-Cost: 2%\nExpected-Cost: 1% a", [ExpectedCost(0.02), ExpectedCost(0.01, "a")], id="two"
        ),
        pytest.param("Expected-Cost: 2%\n\nNo trailer any more.", [], id="not in the last paragraph"),
        pytest.param("The Expected-Cost: 2% is high", [], id="in a sentence"),
        pytest.param("Expected costs are those of the new rules", [], id="a sentence of costs"),
        pytest.param("", [], id="no body"),
    ],
)
def test_a_cost_is_announced_in_the_last_paragraph(body: str, found: list[ExpectedCost]) -> None:
    assert expected_costs(body) == (tuple(found), [])


@pytest.mark.parametrize(
    "value",
    [
        "",
        "2",
        "0%",
        "101%",
        "-1%",
        "1e3%",
        "2% a b",
        "high",
        "2%%",
        "NaN%",
        "\u0663%",
        "2% a\x07b",
        "2% a\u202eb",
    ],
)
def test_a_wrong_trailer_is_said(value: str) -> None:
    found, (remark,) = expected_costs(f"Expected-Cost: {value}")
    assert found == ()
    assert "which is not like 'Expected-Cost: 0.1% NAME'" in remark
    assert remark.isprintable()


@pytest.mark.parametrize(
    "line", ["Expected_Cost: 0.1%", "Expected-Costs: 0.1% a", "Expected-Cost 0.1%", "expected cost = 1 %"]
)
def test_what_was_meant_to_be_a_trailer_is_said(line: str) -> None:
    found, (remark,) = expected_costs(f"Why.\n\nExpected-Cost: 2%\n{line}")
    assert found == (ExpectedCost(0.02),)
    assert remark == f"the trailer {line!r}, which is not like 'Expected-Cost: 0.1% NAME'"


def test_a_message_of_trailers_alone_has_a_bound() -> None:
    found, wrong = expected_costs("Expected-Cost: 1%\n" * 50)
    assert (len(found), len(wrong)) == (MOST, 50 - MOST)
    assert wrong[0] == "the trailer 'Expected-Cost: 1%', since a message has at most 20 of them"


def test_a_commit_brings_its_cost_and_its_gates(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    work = Work(tmp_path / "repo")
    old = "def total(flags):\n    return 1\n"
    new = 'def total(flags):\n    return 2 if flags.get_boolean_value("new_total", False) else 1\n'
    work.commit("Old", {"shop/__init__.py": "", "shop/cart.py": old})
    work.commit("Sum anew\n\nExpected-Cost: 0.1% shop.cart.*", {"shop/cart.py": new})
    assert run(["changes", "--repo", str(work.path), "--service", "shop", "--dry-run", "--json"]) == 0
    line = json.loads(capsys.readouterr().out)
    assert line["expected"] == [{"cost": 0.001, "subroutine": "shop.cart.*"}]
    assert (line["gates"], line["subroutines"]) == (["new_total"], ["shop.cart.total"])


def test_a_gate_is_read_by_a_function_of_ones_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    work = Work(tmp_path / "repo")
    work.commit("New", {"cart.py": 'def total():\n    return conf.get("new_total")\n'})
    given = ["changes", "--repo", str(work.path), "--service", "shop", "--dry-run", "--json"]
    assert run(given) == 0
    assert json.loads(capsys.readouterr().out)["gates"] == []
    assert run([*given, "--gate-reader", "conf.get"]) == 0
    assert json.loads(capsys.readouterr().out)["gates"] == ["new_total"]
    assert run([*given, "--gate-reader", "conf.get()"]) == 2
    assert "should be a name such as conf.get" in capsys.readouterr().err
