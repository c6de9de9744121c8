"""``smidgen bench requests``: how often a request that costs more is seen and named."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import click

from loadgen.requests.looks import LooksRow, measure_looks
from loadgen.requests.outlook import OutlookRow, measure_outlook
from loadgen.requests.simulate import PRESETS, USUAL
from loadgen.requests.table import FOREST, MIXED, Row, measure
from loadgen.terminal import print_rows, progress
from pipeline.commands.options import FiniteRange
from pipeline.settings.extras import require_forest

_AFTER = (60, 240)
"""Periods of the next release."""


@click.command()
@click.option("--cases", type=click.IntRange(min=1), default=200, show_default=True, help="Of each row.")
@click.option(
    "--preset", "names", type=click.Choice(tuple(PRESETS)), multiple=True, help="Only these; all but large."
)
@click.option(
    "--rise",
    "rises",
    type=FiniteRange(min=0, max=1),
    multiple=True,
    default=(0.0, 0.01, 0.05),
    show_default=True,
    help="What the slower requests add to the metric; 0 of equal releases.",
)
@click.option("--alpha", type=FiniteRange(min=0, min_open=True, max=0.5), default=0.05, show_default=True)
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True)
@click.option("--forest", is_flag=True, help="The paper's forests beside it; a second a case.")
@click.option("--mixed", is_flag=True, help="A mixed linear model beside it.")
@click.option(
    "--looks", is_flag=True, help="What `smidgen worker releases` reports, alone and beside the old release."
)
@click.option("--detectable", is_flag=True, help="What `smidgen detectable --requests` foresees.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a row.")
def requests(
    cases: int,
    names: tuple[str, ...],
    rises: tuple[float, ...],
    alpha: float,
    seed: int,
    forest: bool,
    mixed: bool,
    looks: bool,
    detectable: bool,
    as_json: bool,
) -> None:
    """Measure how often `smidgen release requests` sees a request that costs more, and names it.

    "found" of a rise of 0 is the share of false alarms. "first" and "named" are of what was found: the true
    type stands first, or is among the types named, of which there are "types" in the mean. "compared" is the
    share of cases whose load could be compared at all.

    With --looks, "found" is by any look at a release, "periods" how many of them the new release had until
    then. The level is that of the stage.

    With --detectable, "found" is how often a rise is found that is foreseen to be found in 90 of 100 cases,
    by one look after as many periods; and how often half of it.
    """
    if forest:
        require_forest()
    chosen = [(name, rise) for name in names or USUAL for rise in rises]
    if detectable:
        _show_outlooks(names or USUAL, cases, seed, as_json=as_json)
        return
    if looks:
        _show_looks(chosen, cases, seed, as_json=as_json)
        return
    others = [method for method, asked in ((FOREST, forest), (MIXED, mixed)) if asked]
    rows: list[Row] = []
    with progress("requests", len(chosen)) as advance:
        for name, rise in chosen:
            rows += measure(name, rise, cases, alpha, seed, others)
            advance()
    print_rows(rows, _table, as_json=as_json)


def _show_looks(chosen: Sequence[tuple[str, float]], cases: int, seed: int, *, as_json: bool) -> None:
    found = []
    with progress("looks", 2 * len(chosen)) as advance:
        for name, rise in chosen:
            for beside in (1.0, 0.3):
                found.append(measure_looks(name, rise, beside, cases, seed))
                advance()
    print_rows(found, _looks_table, as_json=as_json)


def _looks_table(rows: Iterable[LooksRow]) -> Iterable[str]:
    yield "| preset | rise | requests it gets | found | named | periods until then | looks that judge |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    for row in rows:
        periods = f"{row.periods:.0f}" if math.isfinite(row.periods) else "–"
        cells = [row.preset, f"{row.share:.0%}", f"{row.beside:.0%}", _share(row.found), _share(row.named)]
        yield f"| {' | '.join([*cells, periods, f'{row.judged:.0%}'])} |"


def _show_outlooks(names: Sequence[str], cases: int, seed: int, *, as_json: bool) -> None:
    found = []
    with progress("outlooks", len(names) * len(_AFTER)) as advance:
        for name in names:
            for periods in _AFTER:
                found.append(measure_outlook(name, periods, cases, seed))
                advance()
    print_rows(found, _outlooks_table, as_json=as_json)


def _outlooks_table(rows: Iterable[OutlookRow]) -> Iterable[str]:
    yield "| preset | periods | rise of the type | of the metric | found | half of it | foreseen |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    for row in rows:
        shares = (row.rise, row.share, row.found, row.half, row.foreseen)
        yield f"| {row.preset} | {row.periods} | {' | '.join(_share(share) for share in shares)} |"


def _table(rows: Iterable[Row]) -> Iterable[str]:
    yield "| preset | rise | method | found | first | named | types | R² | compared | CPU s |"
    yield "| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    for row in rows:
        shares = [_share(value) for value in (row.found, row.first, row.named)]
        numbers = [f"{value:.1f}" if math.isfinite(value) else "–" for value in (row.types,)]
        r_squared = f"{row.r_squared:.2f}" if math.isfinite(row.r_squared) else "–"
        cells = [
            row.preset,
            f"{row.share:.0%}",
            row.method,
            *shares,
            *numbers,
            r_squared,
            f"{row.compared:.0%}",
            f"{row.seconds:.2g}",
        ]
        yield f"| {' | '.join(cells)} |"


def _share(value: float) -> str:
    return f"{value:.1%}" if math.isfinite(value) else "–"
