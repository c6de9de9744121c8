"""``smidgen bench suspects``: how often the commit that made a request slower is its first suspect."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import click
import numpy as np

from loadgen.requests.source import SIZES, draw_release
from loadgen.terminal import print_rows, progress

_FIRST = 3
"""A suggestion is right if the root cause is among the first three (FBDetect §5.5.3)."""


@dataclass(frozen=True, slots=True)
class Row:
    """How well the commits of releases of one size are ranked.

    Args:
        size: Its name.
        depth: Calls from the handler to what became slower; 0 of all depths.
        cases: How many there are.
        first: Share of cases in which the true commit stands first.
        among: Share in which it is among the first three.
        listed: Commits that modify what the request may run, in the mean; the paper lists them unranked.
        by_chance: Share in which the first of these in any order would be the true one.
        missed: Share in which it is none of them.
    """

    size: str
    depth: int
    cases: int
    first: float
    among: float
    listed: float
    by_chance: float
    missed: float


@dataclass(frozen=True, slots=True)
class _Ranked:
    depth: int
    rank: int | None  # from 0; None where it is not listed
    listed: int


def measure(name: str, cases: int, seed: int) -> list[Row]:
    """Return a row of all depths and one of each."""
    ranked = [_rank(name, seed, number) for number in range(cases)]
    depths = sorted({each.depth for each in ranked})
    rows = [_row(name, 0, ranked)]
    return rows + [_row(name, depth, [one for one in ranked if one.depth == depth]) for depth in depths]


def _rank(name: str, seed: int, number: int) -> _Ranked:
    from agents.routes import RequestSuspects, read_application

    case = draw_release(SIZES[name], np.random.default_rng((seed, number)))
    found = RequestSuspects(read_application(case.sources), case.changes).find({case.request: 1.0})
    ids = [suspect.change.id for suspect in found.suspects]
    return _Ranked(case.depth, ids.index(case.slow) if case.slow in ids else None, len(ids))


def _row(name: str, depth: int, ranked: Sequence[_Ranked]) -> Row:
    found = [each.rank for each in ranked if each.rank is not None]
    count = len(ranked)
    return Row(
        size=name,
        depth=depth,
        cases=count,
        first=sum(rank == 0 for rank in found) / count,
        among=sum(rank < _FIRST for rank in found) / count,
        listed=sum(each.listed for each in ranked) / count,
        by_chance=sum(1.0 / each.listed for each in ranked if each.rank is not None) / count,
        missed=1.0 - len(found) / count,
    )


@click.command()
@click.option("--cases", type=click.IntRange(min=1), default=200, show_default=True, help="Of each size.")
@click.option("--size", "names", type=click.Choice(tuple(SIZES)), multiple=True, help="Only these.")
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a row.")
def suspects(cases: int, names: tuple[str, ...], seed: int, as_json: bool) -> None:
    """Measure how often the commit that made a request slower is its first suspect.

    Applications are drawn with handlers, functions that call one another, and commits, of which one makes a
    function slower that lies one to four calls from a handler. "by chance" is how often the first of the
    commits that modify what the request may run would be the true one, in any order.
    """
    chosen = names or tuple(SIZES)
    rows: list[Row] = []
    with progress("suspects", len(chosen)) as advance:
        for name in chosen:
            rows += measure(name, cases, seed)
            advance()
    print_rows(rows, _table, as_json=as_json)


def _table(rows: Iterable[Row]) -> Iterable[str]:
    yield "| size | depth | cases | first | among three | listed | by chance | missed |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    for row in rows:
        shares = [f"{value:.1%}" for value in (row.first, row.among)]
        cells = [row.size, str(row.depth or "all"), str(row.cases), *shares, f"{row.listed:.1f}"]
        yield f"| {' | '.join([*cells, f'{row.by_chance:.1%}', f'{row.missed:.1%}'])} |"
