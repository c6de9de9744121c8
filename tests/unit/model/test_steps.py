"""The registry of judging steps: complete, in order, and the only place that has their words."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.model import Candidate, Decision, Dropped, divide, steps
from pipeline.model.steps import BY_KEY, STEPS, TEXT, Code, sentence
from tests.support.builders import build_candidate
from tests.support.paths import ROOT

CODE = sorted((ROOT / "pipeline").rglob("*.py"))


def decisions(path: Path) -> Iterator[ast.Call]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Decision":
            yield node


def literals(path: Path) -> set[str]:
    tree = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return {node.value for node in tree if isinstance(node, ast.Constant) and isinstance(node.value, str)}


@pytest.fixture(scope="module")
def named() -> set[str]:
    """Every text in the code beside the registry."""
    return set().union(*(literals(path) for path in CODE if path.name not in ("steps.py", "step_codes.py")))


def test_keys_are_unique_and_questions_end_as_such() -> None:
    assert len(BY_KEY) == len(STEPS)
    assert all(step.asks.endswith("?") for step in STEPS)
    own = (*steps.FACTORS, *steps.CAUSE_PARTS)
    every = (*steps.FUNNEL, *steps.CONSTRAINTS, *steps.DETECTOR_PARTS, *own)
    assert every == steps.ABLATABLE


def test_a_step_that_a_module_names_is_registered() -> None:
    calls = [(path, call) for path in CODE for call in decisions(path)]
    assert len(calls) > 10
    for path, call in calls:
        step = call.args[0] if call.args else next(k.value for k in call.keywords if k.arg == "step")
        if isinstance(step, ast.Constant):
            assert step.value in {"", *BY_KEY}, f"{path}:{call.lineno}"


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.key)
def test_every_code_is_used_somewhere(step: steps.Step, named: set[str]) -> None:
    assert set(step.codes) <= named


@pytest.mark.parametrize(
    ("decision", "text"),
    [
        pytest.param(
            Decision("threshold", False, code="absolute"), "absolute change below the threshold", id="plain"
        ),
        pytest.param(Decision("threshold", True, 2.0, 1.0), "", id="passed"),
        pytest.param(
            Decision("pairwise_dedup", False, 0.9, 0.7, "caller", ("cart.pay",)),
            "rises in a caller shared with cart.pay",
            id="subject",
        ),
        pytest.param(
            Decision("pairwise_dedup", False, 0.9, 0.7, "caller", ("cart.pay", "c0ffee")),
            "rises in a caller shared with cart.pay, reported before",
            id="event",
        ),
        pytest.param(
            Decision("pairwise_dedup", True, 0.4, 0.7, "caller", ("{1}",)),
            "most similar in its caller: {1}",
            id="braces in a name",
        ),
        pytest.param(
            Decision("astrology", False, code=TEXT, subjects=("Mercury",)), "Mercury", id="former version"
        ),
        pytest.param(Decision("threshold", False, code="later"), "", id="later version"),
    ],
)
def test_a_decision_as_a_sentence(decision: Decision, text: str) -> None:
    assert sentence(decision) == text


def test_a_code_has_words_for_one_side_at_least() -> None:
    assert all(code.dropped or code.passed for step in STEPS for code in step.codes.values())
    assert (
        sentence(Decision("som_dedup", False, code="cause"))
        == "rises through the same subroutine or change as another series"
    )
    assert Code() == Code("", "", "")


def test_divide_keeps_the_order_and_what_was_decided_before() -> None:
    first, second = build_candidate("first"), build_candidate("second")
    passed, dropped = divide([(first, Decision("a", True)), (second, Decision("a", False))])
    (again,), none = divide([(passed[0], Decision("b", True))])
    assert isinstance(again, Candidate)
    assert ([d.step for d in again.passed], none) == (["a", "b"], ())
    assert dropped == (Dropped(second, Decision("a", False)),)


def test_divide_writes_the_ledger() -> None:
    before, stays, gone = (
        Decision("before", True),
        Decision("step", True, 1, 2),
        Decision("step", False, 3, 4),
    )
    kept, lost = replace(build_candidate("kept"), passed=(before,)), build_candidate("lost")
    passed, dropped = divide([(kept, stays), (lost, gone)])
    assert passed == (replace(kept, passed=(before, stays)),)
    assert dropped == (Dropped(lost, gone),)


def test_nothing_to_divide() -> None:
    assert divide([]) == ((), ())
