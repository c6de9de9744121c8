"""Tables of the accuracy suite in the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from loadgen.evaluation.model import Funnel, FunnelStep
from loadgen.evaluation.rates import Rate
from loadgen.evaluation.suite.ablation import SHOWN
from loadgen.evaluation.suite.against import POOLED, Comparison, Moved
from loadgen.evaluation.suite.goals import goals_table
from loadgen.evaluation.suite.runs import FIGURES, Figure, Run, pooled, scenario_means
from loadgen.evaluation.table import counts_table, funnel_table, kinds_table, rates_table
from loadgen.evaluation.words import NONE, hours, share
from loadgen.harness import Mean
from pipeline.commands.tables import Column, TextTable, print_table
from pipeline.commands.terminal import print_lines

_MEANS = (
    ("Detection", FIGURES[:4]),
    ("False events, delay, and cost shifts", FIGURES[4:7]),
    ("Root cause and grouping", FIGURES[7:]),
)
"""One table of every figure would not fit a terminal."""

_BRIEF = tuple(figure for figure in FIGURES if figure.name in ("precision", "recall", "delay"))
"""Figures of a scenario that its goals do not show."""


def print_suite(runs: Sequence[Run]) -> None:
    """Print one line a scenario, then all runs together: rates, sizes, kinds and the funnel."""
    for title, figures in _MEANS:
        _means(f"{title}: mean over seeds (95 % interval)", runs, figures).show()
    for table in (goals_table(runs), *pooled_tables(runs)):
        table.show()


def scenario_table(runs: Sequence[Run]) -> TextTable:
    """Return the means over seeds of the figures that are not goals, without intervals."""
    rows = [
        (scenario, *(NONE if (m := means[f.name]) is None else _value(f, m.value) for f in _BRIEF))
        for scenario, means in scenario_means(runs).items()
    ]
    names = ("scenario", *(figure.name for figure in _BRIEF))
    return TextTable("By scenario: mean over seeds", names, rows)


def pooled_tables(runs: Sequence[Run]) -> Iterator[TextTable]:
    """Yield the tables of all runs together: rates, sizes, kinds and the funnel."""
    figures = pooled(runs)
    names = (*POOLED, "detectable", "cost_shifts", "false_suggestions", "group_precision", "group_recall")
    yield rates_table("All runs together", [(name.replace("_", " "), _rate(figures[name])) for name in names])
    for title in ("Recall by size", "Precision by size"):
        rows = figures[title.lower().replace(" ", "_")]
        yield rates_table(title, [(row["size"], _rate(row)) for row in rows], "size")
    yield kinds_table((row["kind"], row["expected"], _rate(row["reported"])) for row in figures["kinds"])
    if forms := figures["cost_shifts_by_form"]:
        title = "Cost shifts that were reported, by form"
        yield rates_table(title, [(row["form"], _rate(row)) for row in forms], "form")
    yield counts_table(figures["false_positive_kinds"].items())
    funnel = figures["funnel"]
    steps = tuple(FunnelStep(step["step"], step["remaining"]) for step in funnel["steps"])
    yield funnel_table(Funnel(funnel["scans"], funnel["series"], steps))


def print_against(comparison: Comparison) -> None:
    """Print the figures that changed against an earlier result."""
    rows = [
        (name.replace("_", " "), *(share(side[name]["value"]) for side in (comparison.old, comparison.new)))
        for name in POOLED
    ]
    title = f"Against the earlier result, {comparison.common} common runs"
    TextTable(title, ("", "before", "now"), rows).show()
    if comparison.moved:
        print_table(_MOVED, comparison.moved, title="What moved (mean of paired differences)")
    else:
        print_lines(["No figure moved."])


def _by_how_much(change: Moved) -> str:
    return ("better " if change.better else "worse ") + _mean(change.figure, change.difference)


def _style(change: Moved) -> str:
    return ("green" if change.better else "red") if change.sure else ""


_MOVED: tuple[Column[Moved], ...] = (
    Column("scenario"),
    Column("figure", lambda change: change.figure.name, str),
    Column("before", lambda change: _value(change.figure, change.old), str),
    Column("now", lambda change: _value(change.figure, change.new), str),
    Column("by", _by_how_much, str, _style),
)


def worth_table(whole: Mapping[str, Any], worth: Sequence[Mapping[str, Any]]) -> TextTable:
    """Return the pooled figures of all runs without each step, with the means of the paired differences.

    Args:
        whole: all runs with every step, as ``pooled`` returns them.
        worth: as ``Worth.to_json`` writes each step.
    """
    # A record of a former version has fewer figures.
    shown = [figure for figure in SHOWN if all(figure.name in step["difference"] for step in worth)]
    rows = [("nothing", *(share(whole[_key(figure)]["value"]) for figure in shown))]
    for step in worth:
        cells = []
        for figure in shown:
            value = share(step["all"][_key(figure)]["value"])
            difference = step["difference"][figure.name]
            cells.append(f"{value}\n{_change(figure, Mean(**difference) if difference else None)}")
        rows.append((step["without"], *cells))
    names = ("without", *(figure.name for figure in shown))
    return TextTable("Without a step (difference to all steps)", names, rows)


_KEYS = {"false per series": "false_positive_rate", "cost shifts told": "cost_shifts"}


def _key(figure: Figure) -> str:
    return _KEYS.get(figure.name, figure.name.replace(" ", "_"))


def _change(figure: Figure, mean: Mean | None) -> str:
    if mean is None:
        return NONE
    if mean.value == 0:
        return "as before"
    return ("+" if mean.value > 0 else "") + _mean(figure, mean)


def _means(title: str, runs: Sequence[Run], figures: Sequence[Figure]) -> TextTable:
    rows = []
    for scenario, means in scenario_means(runs).items():
        seeds = sum(run["scenario"] == scenario for run in runs)
        cells = [NONE if (mean := means[f.name]) is None else _mean(f, mean, "\n") for f in figures]
        rows.append((scenario, str(seeds), *cells))
    return TextTable(title, ("scenario", "seeds", *(figure.name for figure in figures)), rows)


def _mean(figure: Figure, mean: Mean, between: str = " ") -> str:
    value = _value(figure, mean.value)
    if mean.low is None or mean.high is None:
        return value
    low, high = (_bare(figure, bound) for bound in (mean.low, mean.high))
    return f"{value}{between}({low}–{high})"


def _value(figure: Figure, value: float) -> str:
    if figure.unit == "time":
        return hours(value)
    return share(value) if value >= 0 else f"-{share(-value)}"


def _bare(figure: Figure, value: float) -> str:
    """Write an interval's bound in short form, without the unit, which the figure has."""
    if figure.unit == "time":
        return f"{value / 3600:.1f}"
    return f"{value * 100:.2g}" if abs(value) < 0.995 else f"{value * 100:.0f}"


def _rate(rate: Mapping[str, Any]) -> Rate:
    return Rate(rate["hits"], rate["of"])
