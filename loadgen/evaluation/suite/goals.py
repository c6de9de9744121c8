"""Goals of each scenario: rates of its runs against bounds that Smidgen wants to reach on every fleet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from loadgen.evaluation.rates import Rate
from loadgen.evaluation.suite.runs import Run
from loadgen.evaluation.words import NONE
from pipeline.commands.tables import TextTable

ALL = "all"


@dataclass(frozen=True, slots=True)
class Goal:
    """A rate over all seeds of a scenario, and its bound."""

    name: str
    path: tuple[str, ...]  # path in a score, or the kind of truth whose recall it is
    bound: float
    at_least: bool = True

    def rate(self, runs: Iterable[Run]) -> Rate:
        """Return hits and cases of all runs together; none if no run has the rate."""
        total = Rate(0, 0)
        for run in runs:
            part = self._found(run["score"])
            if part:
                total += Rate(part["hits"], part["of"])
        return total

    def met(self, rate: Rate) -> bool | None:
        """Return whether a rate reaches the bound; None without cases."""
        if not rate.of:
            return None
        value = rate.hits / rate.of
        return value >= self.bound if self.at_least else value <= self.bound

    def _found(self, score: Mapping[str, Any]) -> Mapping[str, Any] | None:
        if self.path[0] == "kinds":
            rows = (row["reported"] for row in score["kinds"] if row["kind"] == self.path[1])
            return next(rows, None)
        value: Any = score
        for key in self.path:
            value = None if value is None else value.get(key)
        return value if isinstance(value, Mapping) else None


GOALS = (
    Goal("detectable", ("rates", "detectable"), 0.99),
    Goal("slow rises", ("kinds", "gradual"), 0.90),
    Goal("repeated", ("rates", "repeated"), 0.01, at_least=False),
    Goal("false", ("rates", "false_positive_rate"), 1e-5, at_least=False),
    Goal("cause first", ("root_cause", "top_1"), 0.90),
    Goal("falsely named", ("root_cause", "false_suggestions"), 0.03, at_least=False),
    Goal("group precision", ("grouping", "precision"), 0.98),
    Goal("group recall", ("grouping", "recall"), 0.98),
)

ROLLOUT_GOALS = (
    Goal("rollouts", ("rates", "rollouts"), 0.97),
    Goal("first stage", ("rates", "first_stage"), 0.90),
)
"""Goals of fleets with rollouts; of others nothing is said of them."""


def goals_of(runs: Sequence[Run]) -> tuple[Goal, ...]:
    """Return the goals for some runs."""
    return (*GOALS, *(goal for goal in ROLLOUT_GOALS if goal.rate(runs).of))


def goals_json(runs: Sequence[Run]) -> dict[str, dict[str, Any]]:
    """Return scenario → goal → hits, cases, bound, and whether it is met; last, all runs together."""
    scenarios = sorted({run["scenario"] for run in runs})
    chosen = {name: [run for run in runs if run["scenario"] == name] for name in scenarios}
    chosen[ALL] = list(runs)
    goals: dict[str, dict[str, Any]] = {}
    for name, some in chosen.items():
        goals[name] = {}
        for goal in goals_of(runs):
            rate = goal.rate(some)
            goals[name][goal.name] = {
                "hits": rate.hits,
                "of": rate.of,
                "bound": goal.bound,
                "met": goal.met(rate),
            }
    return goals


def goals_table(runs: Sequence[Run]) -> TextTable:
    """Return one line a scenario: hits of cases, and a mark at each missed goal."""
    names = (f"{g.name}\n{'≥' if g.at_least else '≤'} {_bound(g.bound)}" for g in goals_of(runs))
    rows = [(scenario, *map(_cell, goals.values())) for scenario, goals in goals_json(runs).items()]
    return TextTable("Goals, all seeds together (✗: not met)", ("scenario", *names), rows)


def _bound(value: float) -> str:
    return f"{value:.0%}" if value >= 0.01 else f"{round(1e5 * value)} in 100,000"


def _cell(goal: Mapping[str, Any]) -> str:
    if goal["met"] is None:
        return NONE
    text = f"{goal['hits']:,}/{goal['of']:,}"
    return text if goal["met"] else f"{text} ✗"
