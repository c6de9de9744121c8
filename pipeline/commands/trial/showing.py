"""Verdicts as a table, and as JSON."""

from __future__ import annotations

import math
from typing import Any

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from pipeline.terminal import escape_controls
from pipeline.trials.verdict import Verdict

_FIGURES = ("A", "B", "difference", "interval", "p", "trials")


def show(console: Console, verdicts: list[Verdict]) -> None:
    """Print a row a metric, and what an engineer should know of the trials."""
    table = Table("metric", "verdict", *(Column(name, justify="right") for name in _FIGURES), box=SIMPLE)
    for each in verdicts:
        table.add_row(
            Text(escape_controls(each.metric)),
            each.decision.value,
            f"{each.measured.mean_a:.5g}",
            f"{each.measured.mean_b:.5g}",
            _percent(each.measured.difference),
            f"{_percent(each.measured.low)} to {_percent(each.measured.high)}",
            f"{each.measured.p_value:.2g}",
            f"{each.trials} of {each.trials_needed or 'more'}",
        )
    console.print(table)
    for each in verdicts:
        console.print(
            f"{escape_controls(each.metric)}: {'; '.join(_remarks(each))}", soft_wrap=True, markup=False
        )


def to_json(verdict: Verdict) -> dict[str, Any]:
    """Return a verdict as one object; a bound that is not known is null."""
    bounds = {name: getattr(verdict.bounds, name) for name in ("threshold", "alpha", "direction")}
    figures = ("mean_a", "mean_b", "difference", "low", "high", "p_value")
    plain = ("model", "trials", "trials_needed", "warm_up", "unsteady")
    return {
        "metric": verdict.metric,
        "decision": verdict.decision.value,
        **bounds,
        **{name: _known(getattr(verdict.measured, name)) for name in figures},
        **{name: getattr(verdict, name) for name in plain},
        "scores": [
            {
                "model": score.model,
                "false_positives": score.false_positives,
                "false_negatives": score.false_negatives,
                "detectability": _known(score.detectability),
                "holds": score.holds,
            }
            for score in (verdict.choice.scores if verdict.choice else ())
        ],
    }


def _remarks(verdict: Verdict) -> list[str]:
    remarks = [f"by {verdict.model}"]
    if not verdict.trials and len(verdict.unsteady) < len(verdict.warm_up):
        remarks.append("side A is 0 when its warm-up is over, and nothing is a share of that")
    most = max(
        (lost for index, lost in enumerate(verdict.warm_up) if index not in verdict.unsteady), default=0
    )
    if most:
        remarks.append(f"the first points of trials are warm-up and discarded, {most} at most")
    if verdict.unsteady:
        remarks.append(f"{len(verdict.unsteady)} trials never became steady and are left out")
    if verdict.choice:
        best = next((score for score in verdict.choice.scores if score.model == verdict.model), None)
        if best:
            remarks.append(
                f"{verdict.model} calls {best.false_positives:.1%} of A/A experiments different and misses "
                f"{best.false_negatives:.1%} of regressions of the threshold"
            )
        if not verdict.choice.model:
            remarks.append("no model holds the bound on false positives in A/A experiments")
    return remarks


def _percent(share: float) -> str:
    return f"{share:+.2%}" if math.isfinite(share) else "?"


def _known(figure: float) -> float | None:
    return figure if math.isfinite(figure) else None
