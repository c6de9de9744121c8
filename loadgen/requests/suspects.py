"""``smidgen bench suspects``: how often the commit that made a request slower is its first suspect."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from loadgen.harness import Experiment, bench, measured, ratio_of, table
from loadgen.requests.source import SIZES, draw_release
from pipeline.commands.request import option, seed_option
from pipeline.commands.tables import Column

_FIRST = 3
"""A suggestion is right if the root cause is among the first three (FBDetect §5.5.3)."""


@dataclass(frozen=True, slots=True)
class Row:
    """Ranking of the commits of releases of one size.

    Args:
        size: Name of the size.
        depth: Number of calls from the handler to the slower function; 0 for all depths.
        cases: Number of cases.
        first: Share of cases in which the true commit stands first.
        among: Share in which it is among the first three.
        listed: Mean number of commits that modify code the request may run; the paper lists them unranked.
        by_chance: Share of cases in which the first of these would be the true one in random order.
        missed: Share of cases in which these do not hold the true one.
        event_first: Share of cases in which the true commit stands first of an event's suspects.
        event_among: Share in which it is among the first three.
        event_named: Share of cases in which the event is confident enough to name suspects.
        event_right: Of those, the share in which the true commit is named.
    """

    size: str
    depth: int
    cases: int
    first: float
    among: float
    listed: float
    by_chance: float
    missed: float
    event_first: float
    event_among: float
    event_named: float
    event_right: float


@dataclass(frozen=True, slots=True)
class _Ranked:
    depth: int
    rank: int | None  # from 0; None where it is not listed
    listed: int
    of_event: int  # rank among all that the event ranks
    named: bool  # whether the event names any suspects
    right: bool  # whether it names the true one


def measure(name: str, cases: int, seed: int) -> list[Row]:
    """Return a row for all depths together, and one for each depth."""
    ranked = [_rank(name, seed, number) for number in range(cases)]
    depths = sorted({case.depth for case in ranked})
    rows = [_row(name, 0, ranked)]
    return rows + [
        _row(name, depth, [at_depth for at_depth in ranked if at_depth.depth == depth]) for depth in depths
    ]


def _rank(name: str, seed: int, number: int) -> _Ranked:
    from agents.source.routes import RequestSuspects, read_application
    from loadgen.requests.event_suspects import suspects_of_event

    case = draw_release(SIZES[name], np.random.default_rng((seed, number)))
    application = read_application(case.sources)
    ranking = RequestSuspects(application, case.changes).find({case.request: 1.0})
    ids = [suspect.change.id for suspect in ranking.suspects]
    event = suspects_of_event(case, application)
    return _Ranked(
        depth=case.depth,
        rank=ids.index(case.slow) if case.slow in ids else None,
        listed=len(ids),
        of_event=event.ranked.index(case.slow),
        named=bool(event.named),
        right=case.slow in event.named,
    )


def _row(name: str, depth: int, ranked: Sequence[_Ranked]) -> Row:
    ranks = [case.rank for case in ranked if case.rank is not None]
    count, named = len(ranked), sum(case.named for case in ranked)
    return Row(
        size=name,
        depth=depth,
        cases=count,
        first=sum(rank == 0 for rank in ranks) / count,
        among=sum(rank < _FIRST for rank in ranks) / count,
        listed=sum(case.listed for case in ranked) / count,
        by_chance=sum(1.0 / case.listed for case in ranked if case.rank is not None) / count,
        missed=1.0 - len(ranks) / count,
        event_first=sum(case.of_event == 0 for case in ranked) / count,
        event_among=sum(case.of_event < _FIRST for case in ranked) / count,
        event_named=named / count,
        event_right=ratio_of(sum(case.right for case in ranked), named),
    )


COLUMNS: tuple[Column[Row], ...] = (
    Column("size"),
    Column("depth", lambda row: row.depth or "all", "d"),
    Column("cases", form="d"),
    Column("first", form=".1%"),
    Column("among three", "among", ".1%"),
    Column("listed", form=".1f"),
    Column("by chance", "by_chance", ".1%"),
    Column("missed", form=".1%"),
    Column("event: first", "event_first", ".1%"),
    Column("among three", "event_among", ".1%"),
    Column("names", "event_named", ".1%"),
    Column("right", "event_right", ".1%"),
)


@bench(json="one JSON object a row")
def suspects(
    cases: int = option(200, least=1, help="Cases of each size."),
    names: tuple[str, ...] = option(
        flag="--size", choices=SIZES, help="Size of the applications (default: all)."
    ),
    seed: int = seed_option(),
) -> Experiment[Row]:
    """Measure how often the commit that made a request slower is its first suspect.

    Applications are drawn with handlers, functions that call one another, and commits, of which one makes a
    function slower that lies one to four calls from a handler. "by chance" is how often the first of the
    commits that modify what the request may run would be the true one, in any order. "event" is of the event
    in the chain, which knows the routes of all commits and when they were deployed; it "names" suspects where
    it is confident enough, and is "right" if the true commit is among those.
    """
    sizes = names or tuple(SIZES)
    return Experiment(*measured(sizes, lambda name: measure(name, cases, seed)), table(COLUMNS))
