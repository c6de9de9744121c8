"""Tables of a score in the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from loadgen.evaluation.funnel import funnel_lines, ratio, short_count
from loadgen.evaluation.model import Funnel, TruthRow
from loadgen.evaluation.rates import Rate
from loadgen.evaluation.scoring import Score
from loadgen.evaluation.words import NONE, cause_rates, counts, group_rates, hours, interval, share
from pipeline.commands.tables import TextTable
from pipeline.commands.terminal import print_lines

_SHOWN = 10
"""Missed rows that are named."""

RATE = ("cases", "share", "95 % interval")
"""Columns of a rate."""


def print_score(score: Score) -> None:
    """Print every figure, most important first."""
    for table in _tables(score):
        table.show()
    if score.matching.missed:
        print_lines(_missed(score.matching.missed))


def funnel_table(funnel: Funnel) -> TextTable:
    """Return the funnel in the form of FBDetect's Table 5."""
    title = f"Funnel: {funnel.scans:,} scans of {funnel.series:,} series in all"
    rows = [(line.title, short_count(line.remaining), ratio(line)) for line in funnel_lines(funnel)]
    return TextTable(title, ("step", "left", "ratio"), rows)


def counts_table(events: Iterable[tuple[str, int]]) -> TextTable:
    """Return the number of false positives of each kind."""
    rows = [(name, f"{count:,}") for name, count in events]
    return TextTable("False positives: what happened instead", ("kind", "events"), rows)


def kinds_table(kinds: Iterable[tuple[str, bool, Rate]]) -> TextTable:
    """Return the rate of each kind of truth: its name, and whether its rows should be reported."""
    rows = [(name, "yes" if wanted else "no", *rate_cells(rate)) for name, wanted, rate in kinds]
    return TextTable("By kind of truth", ("kind", "wanted", "reported", *RATE[1:]), rows)


def rate_cells(rate: Rate) -> tuple[str, str, str]:
    """Return a rate as counts, share and interval."""
    return counts(rate), share(rate.value), interval(rate)


def rates_table(title: str, rates: Iterable[tuple[str, Rate]], first: str = "") -> TextTable:
    """Return one row a rate."""
    return TextTable(title, (first, *RATE), [(name, *rate_cells(rate)) for name, rate in rates])


def _tables(score: Score) -> Iterator[TextTable]:
    yield rates_table(
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
    yield kinds_table((kind.name, kind.expected, kind.rows) for kind in score.kinds)
    if score.cost_shifts:
        yield rates_table("Cost shifts that were reported", score.cost_shifts)
    if score.false_kinds:
        yield counts_table(score.false_kinds.items())
    yield rates_table("Recall by size of the regression", score.sizes)
    yield rates_table("Precision by size of the event", score.event_sizes)
    yield rates_table("Precision by kind of event", score.event_kinds)
    yield _times(score)
    dated = [("steps whose interval holds the onset", score.coverage)]
    if score.first_stage.of:
        dated.append(("rollouts dated within the first stage", score.first_stage))
    yield rates_table("Change time", dated)
    yield rates_table("Root cause and grouping", [*cause_rates(score), *group_rates(score)])
    if score.funnel:
        yield funnel_table(score.funnel)


def _missed(rows: Sequence[TruthRow]) -> list[str]:
    largest = sorted(rows, key=lambda row: (-abs(row.delta), row.id))[:_SHOWN]
    lines = [f"  {row.id}  {row.kind}  {row.delta * 100:.4g} %  {row.series[0]}" for row in largest]
    more = [f"  and {len(rows) - _SHOWN} more"] if len(rows) > _SHOWN else []
    return ["Missed, largest first", *lines, *more]


def _times(score: Score) -> TextTable:
    rows = [
        (name, *map(hours, (times.median, times.mean, times.p90, times.largest)))
        if times
        else (name, *[NONE] * 4)
        for name, times in (
            ("delay from change to event", score.delay),
            ("error of the change time", score.shift),
            ("width of its interval", score.interval_width),
        )
    ]
    return TextTable("Times of true positives", ("", "median", "mean", "90 % below", "largest"), rows)
