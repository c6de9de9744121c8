"""The accuracy suite's tables in the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from loadgen.bench.ablation import SHOWN, Worth
from loadgen.bench.against import POOLED, Comparison
from loadgen.bench.suite import FIGURES, Figure, Mean, Run, pooled, scenario_means
from loadgen.score.model import Funnel, FunnelStep
from loadgen.score.rates import Rate
from loadgen.score.table import funnel_table
from loadgen.score.words import NONE, counts, hours, interval, share


def print_suite(console: Console, runs: Sequence[Run]) -> None:
    """Print one line a scenario, then all runs together: rates, sizes, kinds and the funnel."""
    # One table of every figure would not fit a terminal: detection first, then what explains it.
    for title, figures in (("Detection", FIGURES[:5]), ("Cost shifts, root cause and grouping", FIGURES[5:])):
        console.print(_means(f"{title}: mean over seeds (95 % interval)", runs, figures))
        console.print()
    found = pooled(runs)
    table = _table("All runs together", "", "cases", "share", "95 % interval")
    for name in (
        *POOLED,
        "detectable",
        "cost_shifts",
        "false_suggestions",
        "group_precision",
        "group_recall",
    ):
        table.add_row(name.replace("_", " "), *_cells(found[name]))
    console.print(table)
    console.print()
    for title, key in (("Recall by size", "recall_by_size"), ("Precision by size", "precision_by_size")):
        table = _table(title, "", "cases", "share", "95 % interval")
        for row in found[key]:
            table.add_row(row["size"], *_cells(row))
        console.print(table)
        console.print()
    table = _table("By kind of truth", "kind", "wanted", "reported", "share", "95 % interval")
    for row in found["kinds"]:
        table.add_row(row["kind"], "yes" if row["expected"] else "no", *_cells(row["reported"]))
    console.print(table)
    console.print()
    if found["cost_shifts_by_form"]:
        table = _table("Cost shifts that were told, by form", "", "cases", "share", "95 % interval")
        for row in found["cost_shifts_by_form"]:
            table.add_row(row["form"], *_cells(row))
        console.print(table)
        console.print()
    table = _table("False positives: what happened instead", "kind", "events")
    for name, count in found["false_positive_kinds"].items():
        table.add_row(name, f"{count:,}")
    console.print(table)
    console.print()
    funnel = found["funnel"]
    steps = tuple(FunnelStep(step["step"], step["remaining"]) for step in funnel["steps"])
    console.print(funnel_table(Funnel(funnel["scans"], funnel["series"], steps)))


def print_against(console: Console, comparison: Comparison) -> None:
    """Print what moved against an earlier result."""
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
    for one in comparison.moved:
        style = ("green" if one.better else "red") if one.sure else ""
        mean = one.difference
        table.add_row(
            one.scenario,
            one.figure.name,
            _value(one.figure, one.old),
            _value(one.figure, one.new),
            Text(("better " if one.better else "worse ") + _mean(one.figure, mean), style=style),
        )
    console.print(table)


def print_worth(console: Console, whole: Mapping[str, Any], worth: Sequence[Worth]) -> None:
    """Print what all runs come to without each step: the figure, and the mean of the paired differences."""
    console.print()
    table = _table("Without a step (difference to all steps)", "without", *(f.name for f in SHOWN))
    table.add_row("nothing", *(share(whole[_key(figure)]["value"]) for figure in SHOWN))
    for one in worth:
        cells = []
        for figure, mean in zip(SHOWN, one.differences, strict=True):
            value = share(one.without[_key(figure)]["value"])
            cells.append(f"{value}\n{_change(figure, mean)}")
        table.add_row(one.step, *cells)
    console.print(table)


def _key(figure: Figure) -> str:
    return (
        "false_positive_rate"
        if figure.name == "false per series"
        else figure.name.removesuffix(" told").replace(" ", "_")
    )


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
    """Write an interval's bound as short as its place in a narrow table demands; the figure has the unit."""
    if figure.unit == "time":
        return f"{value / 3600:.1f}"
    return f"{value * 100:.2g}" if abs(value) < 0.995 else f"{value * 100:.0f}"


def _cells(rate: Mapping[str, Any]) -> tuple[str, str, str]:
    found = Rate(rate["hits"], rate["of"])
    return counts(found), share(found.value), interval(found)


def _table(title: str, first: str, *columns: str) -> Table:
    table = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=None,
        pad_edge=False,
        min_width=min(len(title), 78),  # or a narrow table's title is broken into lines
    )
    table.add_column(first, no_wrap=True)
    for column in columns:
        table.add_column(column, justify="right", overflow="fold")
    return table
