"""Tables of a score in the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from loadgen.evaluation.funnel import funnel_lines, ratio, short_count
from loadgen.evaluation.model import Funnel, TruthRow
from loadgen.evaluation.rates import Rate
from loadgen.evaluation.scoring import Score
from loadgen.evaluation.words import cause_rates, counts, group_rates, hours, interval, share
from pipeline.commands.terminal import escape_controls

_SHOWN = 10
"""Missed rows that are named."""


def print_score(console: Console, score: Score) -> None:
    """Print every figure, most important first."""
    for part in _parts(score):
        console.print(part)
        console.print()


def funnel_table(funnel: Funnel) -> Table:
    """Return the funnel in the form of FBDetect's Table 5."""
    table = _table(
        f"Funnel: {funnel.scans:,} scans of {funnel.series:,} series in all", "step", "left", "ratio"
    )
    for line in funnel_lines(funnel):
        table.add_row(line.title, short_count(line.remaining), ratio(line))
    return table


def _parts(score: Score) -> Iterator[RenderableType]:
    yield _rates(
        "Events against truth",
        [
            ("precision", score.precision),
            ("recall", score.recall),
            ("recall of detectable steps", score.detectable),
            ("false positives per scanned series", score.false_positive_rate or Rate(0, 0)),
            ("repeated, of events", score.repeated),
            *([("recall of rollouts", score.rollouts)] if score.rollouts.of else []),
        ],
    )
    table = _table("By kind of truth", "kind", "wanted", "reported", "share", "95 % interval")
    for kind in score.kinds:
        wanted = "yes" if kind.expected else Text("no", style="dim")
        table.add_row(escape_controls(kind.name), wanted, *rate_cells(kind.rows))
    yield table
    if score.cost_shifts:
        yield _rates("Cost shifts that were reported", score.cost_shifts)
    if score.false_kinds:
        table = _table("False positives: what happened instead", "kind", "events")
        for name, count in score.false_kinds.items():
            table.add_row(escape_controls(name), f"{count:,}")
        yield table
    yield _rates("Recall by size of the regression", score.sizes)
    yield _rates("Precision by size of the event", score.event_sizes)
    yield _rates("Precision by kind of event", score.event_kinds)
    yield _times(score)
    dated = [("steps whose interval holds the onset", score.coverage)]
    if score.first_stage.of:
        dated.append(("rollouts dated within the first stage", score.first_stage))
    yield _rates("Change time", dated)
    yield _rates("Root cause and grouping", [*cause_rates(score), *group_rates(score)])
    if score.funnel:
        yield funnel_table(score.funnel)
    if score.matching.missed:
        yield _missed(score.matching.missed)


def _missed(rows: Sequence[TruthRow]) -> RenderableType:
    largest = sorted(rows, key=lambda row: (-abs(row.delta), row.id))[:_SHOWN]
    lines = [f"  {row.id}  {row.kind}  {row.delta * 100:.4g} %  {row.series[0]}" for row in largest]
    more = [f"  and {len(rows) - _SHOWN} more"] if len(rows) > _SHOWN else []
    return Group(
        Text("Missed, largest first", style="bold"),
        *(Text(escape_controls(line)) for line in (*lines, *more)),
    )


def _times(score: Score) -> Table:
    table = _table("Times of true positives", "", "median", "mean", "90 % below", "largest")
    for name, times in (
        ("delay from change to event", score.delay),
        ("error of the change time", score.shift),
        ("width of its interval", score.interval_width),
    ):
        if times:
            cells = (times.median, times.mean, times.p90, times.largest)
            table.add_row(name, *(hours(cell) for cell in cells))
        else:
            table.add_row(name, *("–" for _ in range(4)))
    return table


def _rates(title: str, rates: Iterable[tuple[str, Rate]]) -> Table:
    table = _table(title, "", "cases", "share", "95 % interval")
    for name, rate in rates:
        table.add_row(name, *rate_cells(rate))
    return table


def rate_cells(rate: Rate) -> tuple[str, str, str]:
    """Return a rate as counts, share and interval."""
    return counts(rate), share(rate.value), interval(rate)


def titled_table(title: str) -> Table:
    """Return a table without columns, in the common form of tables of scores."""
    return Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=None,
        pad_edge=False,
        min_width=min(len(title), 78),  # otherwise a narrow table's title is broken into lines
    )


def _table(title: str, first: str, *columns: str) -> Table:
    table = titled_table(title)
    table.add_column(first, style="", overflow="fold")
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    return table
