"""Verdicts as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.commands.tables import NONE, Column, print_table
from pipeline.commands.terminal import print_lines
from pipeline.experiments.trials.covariate import FEWEST_PAST, FEWEST_TRIALS, Use

Row = Mapping[str, Any]
"""Verdict on one metric, as ``pipeline.messages.trials.verdict_to_json`` returns it and events hold it."""


def show(verdicts: Sequence[Row]) -> None:
    """Print one row per metric, and remarks on the trials."""
    print_table(_COLUMNS, verdicts)
    print_lines(f"{verdict['metric']}: {'; '.join(_remarks(verdict))}" for verdict in verdicts)


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
    name, fell = covariate["covariate"], covariate["variance_fell"]
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
    return NONE if share is None else f"{share:+.2%}"


_COLUMNS: tuple[Column[Row], ...] = (
    Column("metric"),
    Column("verdict", "decision"),
    Column("A", "mean_a", ".5g"),
    Column("B", "mean_b", ".5g"),
    Column("difference", form="+.2%"),
    Column("interval", lambda row: f"{_percent(row['low'])} to {_percent(row['high'])}", str),
    Column("p", "p_value", ".2g"),
    Column("trials", lambda row: f"{row['trials']} of {row['trials_needed'] or 'more'}", str),
)
