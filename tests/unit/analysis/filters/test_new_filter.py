"""A filter is added with an entry of the registry, a module and its test; nothing else knows it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from types import ModuleType

import pytest

from pipeline.analysis.filters import FilterCase, decide_filters
from pipeline.backtest.funnel import count_funnel
from pipeline.model import Candidate, Decision, Dropped, steps
from pipeline.model.steps import Code, Step
from tests.unit.analysis.filters.test_decision import CONFIG, STEP, evidence

# The entry:
NOT_ON_SUNDAYS = Step(
    "sunday",
    "filter",
    "Did it begin on a Sunday?",
    measures="day of the week, Monday is 0",
    codes={"sunday": Code("it began on a Sunday")},
)


# The module:
def decide(candidates: Sequence[Candidate], _case: FilterCase) -> list[Decision]:
    days = [(candidate.change_time // 86_400 + 3) % 7 for candidate in candidates]
    return [Decision("sunday", day != 6, day, 6.0, "sunday" if day == 6 else "") for day in days]


@pytest.fixture
def added(monkeypatch: pytest.MonkeyPatch) -> Sequence[Step]:
    module = ModuleType("pipeline.analysis.filters.sunday")
    module.decide = decide  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pipeline.analysis.filters.sunday", module)
    every = (*steps.FILTERS, NOT_ON_SUNDAYS)
    monkeypatch.setattr(steps, "BY_KEY", {**steps.BY_KEY, "sunday": NOT_ON_SUNDAYS})
    return every


@pytest.mark.parametrize(("day", "passed"), [(5, True), (6, False), (7, True)])
def test_the_new_filter_decides(day: int, passed: bool) -> None:
    monday = 4 * 86_400.0
    (decision,) = decide([replace(STEP, change_time=monday + day * 86_400.0)], None)  # type: ignore[arg-type]
    assert decision.passed is passed


def test_stage_ledger_and_funnel_know_it_by_the_registry_alone(added: Sequence[Step]) -> None:
    asked = evidence(STEP)  # on the sixth of January 1970, a Tuesday
    (passed,) = decide_filters(asked, CONFIG, steps=added).passed
    assert passed.passed[-1] == Decision("sunday", True, 1.0, 6.0)
    dropped = Dropped(STEP, Decision("sunday", False, 6.0, 6.0, "sunday"))
    assert steps.sentence(dropped.decision) == "it began on a Sunday"
    funnel = count_funnel([replace(asked.scan, candidates=(), dropped=(dropped,))])
    assert ("sunday", 0) in funnel.remaining
