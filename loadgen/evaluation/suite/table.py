"""Tables of the accuracy suite in the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from loadgen.evaluation.model import Funnel, FunnelStep
from loadgen.evaluation.rates import Rate
from loadgen.evaluation.suite.ablation import SHOWN
from loadgen.evaluation.suite.against import POOLED, Comparison
from loadgen.evaluation.suite.goals import goals_table
from loadgen.evaluation.suite.runs import FIGURES, Figure, Run, pooled, scenario_means
from loadgen.evaluation.table import funnel_table, rate_cells, titled_table
from loadgen.evaluation.words import NONE, hours, share
from loadgen.harness import Mean

_MEANS = (
    ("Detection", FIGURES[:4]),
    ("False events, delay, and cost shifts", FIGURES[4:7]),
    ("Root cause and grouping", FIGURES[7:]),
)
"""One table of every figure would not fit a terminal."""

_BRIEF = tuple(figure for figure in FIGURES if figure.name in ("precision", "recall", "delay"))
"""Figures of a scenario that its goals do not show."""


def print_suite(console: Console, runs: Sequence[Run]) -> None:
    """Print one line a scenario, then all runs together: rates, sizes, kinds and the funnel."""
    for table in suite_tables(runs):
        console.print(table)
        console.print()


def suite_tables(runs: Sequence[Run]) -> Iterator[Table]:
    """Yield the tables of a suite, most important first."""
    for title, figures in _MEANS:
        yield _means(f"{title}: mean over seeds (95 % interval)", runs, figures)
    yield goals_table(runs)
    yield from pooled_tables(runs)


def scenario_table(runs: Sequence[Run]) -> Table:
    """Return the means over seeds of the figures that are not goals, without intervals."""
    table = _table("By scenario: mean over seeds", "scenario", *(figure.name for figure in _BRIEF))
    for scenario, means in scenario_means(runs).items():
        shown = ((figure, means[figure.name]) for figure in _BRIEF)
        table.add_row(scenario, *(NONE if mean is None else _value(f, mean.value) for f, mean in shown))
    return table


def pooled_tables(runs: Sequence[Run]) -> Iterator[Table]:
    """Yield the tables of all runs together: rates, sizes, kinds and the funnel."""
    figures = pooled(runs)
    table = _table("All runs together", "", "cases", "share", "95 % interval")
    for name in (
        *POOLED,
        "detectable",
        "cost_shifts",
        "false_suggestions",
        "group_precision",
        "group_recall",
    ):
        table.add_row(name.replace("_", " "), *_cells(figures[name]))
    yield table
    yield _by("Recall by size", "size", figures["recall_by_size"])
    yield _by("Precision by size", "size", figures["precision_by_size"])
    table = _table("By kind of truth", "kind", "wanted", "reported", "share", "95 % interval")
    for row in figures["kinds"]:
        table.add_row(row["kind"], "yes" if row["expected"] else "no", *_cells(row["reported"]))
    yield table
    if figures["cost_shifts_by_form"]:
        yield _by("Cost shifts that were reported, by form", "form", figures["cost_shifts_by_form"])
    table = _table("False positives: what happened instead", "kind", "events")
    for name, count in figures["false_positive_kinds"].items():
        table.add_row(name, f"{count:,}")
    yield table
    funnel = figures["funnel"]
    steps = tuple(FunnelStep(step["step"], step["remaining"]) for step in funnel["steps"])
    yield funnel_table(Funnel(funnel["scans"], funnel["series"], steps))


def print_against(console: Console, comparison: Comparison) -> None:
    """Print the figures that changed against an earlier result."""
    console.print()
    table = _table(f"Against the earlier result, {comparison.common} common runs", "", "before", "now")
    for name in POOLED:
        old, new = comparison.old[name], comparison.new[name]
        table.add_row(name.replace("_", " "), share(old["value"]), share(new["value"]))
    console.print(table)
    if not comparison.moved:
        console.print("No figure moved.")
        return
    console.print()
    table = _table("What moved (mean of paired differences)", "scenario", "figure", "before", "now", "by")
    for change in comparison.moved:
        style = ("green" if change.better else "red") if change.sure else ""
        mean = change.difference
        table.add_row(
            change.scenario,
            change.figure.name,
            _value(change.figure, change.old),
            _value(change.figure, change.new),
            Text(("better " if change.better else "worse ") + _mean(change.figure, mean), style=style),
        )
    console.print(table)


def worth_table(whole: Mapping[str, Any], worth: Sequence[Mapping[str, Any]]) -> Table:
    """Return the pooled figures of all runs without each step, with the means of the paired differences.

    Args:
        whole: all runs with every step, as ``pooled`` returns them.
        worth: as ``Worth.to_json`` writes each step.
    """
    # A record of a former version has fewer figures.
    shown = [figure for figure in SHOWN if all(figure.name in step["difference"] for step in worth)]
    table = _table("Without a step (difference to all steps)", "without", *(f.name for f in shown))
    table.add_row("nothing", *(share(whole[_key(figure)]["value"]) for figure in shown))
    for step in worth:
        cells = []
        for figure in shown:
            value = share(step["all"][_key(figure)]["value"])
            difference = step["difference"][figure.name]
            cells.append(f"{value}\n{_change(figure, Mean(**difference) if difference else None)}")
        table.add_row(step["without"], *cells)
    return table


_KEYS = {"false per series": "false_positive_rate", "cost shifts told": "cost_shifts"}


def _key(figure: Figure) -> str:
    return _KEYS.get(figure.name, figure.name.replace(" ", "_"))


def _change(figure: Figure, mean: Mean | None) -> str:
    if mean is None:
        return NONE
    if mean.value == 0:
        return "as before"
    return ("+" if mean.value > 0 else "") + _mean(figure, mean)


def _means(title: str, runs: Sequence[Run], figures: Sequence[Figure]) -> Table:
    table = _table(title, "scenario", "seeds", *(figure.name for figure in figures))
    for scenario, means in scenario_means(runs).items():
        seeds = sum(run["scenario"] == scenario for run in runs)
        cells = [NONE if (mean := means[f.name]) is None else _mean(f, mean, "\n") for f in figures]
        table.add_row(scenario, str(seeds), *cells)
    return table


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


def _by(title: str, key: str, rows: Sequence[Mapping[str, Any]]) -> Table:
    table = _table(title, key, "cases", "share", "95 % interval")
    for row in rows:
        table.add_row(row[key], *_cells(row))
    return table


def _cells(rate: Mapping[str, Any]) -> tuple[str, str, str]:
    return rate_cells(Rate(rate["hits"], rate["of"]))


def _table(title: str, first: str, *columns: str) -> Table:
    table = titled_table(title)
    table.add_column(first, no_wrap=True)
    for column in columns:
        table.add_column(column, justify="right", overflow="fold")
    return table
