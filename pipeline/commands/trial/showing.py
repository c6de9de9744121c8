"""Verdicts as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from pipeline.commands.terminal import escape_controls
from pipeline.experiments.trials.covariate import FEWEST_PAST, FEWEST_TRIALS, Use

_FIGURES = ("A", "B", "difference", "interval", "p", "trials")

Row = Mapping[str, Any]
"""Verdict on one metric, as ``pipeline.messages.trials.verdict_to_json`` returns it and events hold it."""


def show(console: Console, verdicts: Sequence[Row]) -> None:
    """Print one row per metric, and remarks on the trials."""
    table = Table("metric", "verdict", *(Column(name, justify="right") for name in _FIGURES), box=SIMPLE)
    for verdict in verdicts:
        table.add_row(
            Text(escape_controls(verdict["metric"])),
            verdict["decision"],
            _figure(verdict["mean_a"], ".5g"),
            _figure(verdict["mean_b"], ".5g"),
            _percent(verdict["difference"]),
            f"{_percent(verdict['low'])} to {_percent(verdict['high'])}",
            _figure(verdict["p_value"], ".2g"),
            f"{verdict['trials']} of {verdict['trials_needed'] or 'more'}",
        )
    console.print(table)
    for verdict in verdicts:
        console.print(
            f"{escape_controls(verdict['metric'])}: {'; '.join(_remarks(verdict))}",
            soft_wrap=True,
            markup=False,
        )


def _remarks(verdict: Row) -> list[str]:
    model, unsteady = verdict["model"], verdict["unsteady"]
    remarks = [f"by {model}"]
    if not verdict["trials"] and len(unsteady) < len(verdict["warm_up"]):
        remarks.append("side A is 0 when its warm-up is over, and nothing is a share of that")
    lost = (count for index, count in enumerate(verdict["warm_up"]) if index not in unsteady)
    if most := max(lost, default=0):
        remarks.append(f"the first points of trials are warm-up and discarded, {most} at most")
    if unsteady:
        remarks.append(f"{len(unsteady)} trials never became steady and are left out")
    remarks += _about_requests(verdict) + _about_covariate(verdict)
    scores = verdict["scores"]
    if best := next((score for score in scores if score["model"] == model), None):
        remarks.append(
            f"{model} calls {best['false_positives']:.1%} of A/A experiments different and misses "
            f"{best['false_negatives']:.1%} of regressions of the threshold"
        )
    if scores and not any(score["holds"] for score in scores):
        remarks.append("no model holds the bound on false positives in A/A experiments")
    return remarks


def _about_requests(verdict: Row) -> list[str]:
    counts = verdict.get("requests")
    if not counts:
        return []
    pairs = f"{counts['pairs']:,}" if counts["pairs"] else "no"
    alone = f"{counts['only_a']:,} requests of side A alone, {counts['only_b']:,} of side B alone"
    return [f"{pairs} pairs of the same request, {alone}"]


def _about_covariate(verdict: Row) -> list[str]:
    covariate = verdict.get("covariate")
    if not covariate:
        return []
    name, fell = escape_controls(covariate["covariate"]), covariate["variance_fell"]
    changed = f"{name} itself differs by {_percent(covariate['difference'])} (p {covariate['p_value']:.2g})"
    texts = {
        Use.HISTORY: f"adjusted by {name}: the variance of A/A trials' differences fell by {fell:.0%}",
        Use.TRIALS: f"adjusted by {name}: the variance of trials' differences fell by {fell:.0%}",
        Use.CHANGED: f"not adjusted, as side B changes the covariate: {changed}",
        Use.CONSTANT: f"not adjusted, as {name} explains nothing: it does not differ",
        Use.FEW: f"not adjusted by {name}: that takes {FEWEST_PAST} A/A trials, or {FEWEST_TRIALS} trials "
        "and no model or sequential test",
    }
    return [texts[Use(covariate["use"])]]


def _percent(share: float | None) -> str:
    return _figure(share, "+.2%")


def _figure(value: float | None, form: str) -> str:
    return "?" if value is None else format(value, form)
