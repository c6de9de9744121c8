"""``smidgen bench requests``: how often a request that costs more is seen and named."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from loadgen.harness import Experiment, bench, measured, table
from loadgen.requests.looks import LooksRow, measure_looks
from loadgen.requests.outlook import OutlookRow, measure_outlook
from loadgen.requests.simulate import PRESETS, USUAL
from loadgen.requests.table import FOREST, MIXED, Row, measure
from pipeline.commands.request import option, seed_option
from pipeline.commands.tables import Column
from pipeline.settings.extras import require

_AFTER = (60, 240)
"""Periods of the next release."""

_BESIDE = (1.0, 0.3)
"""Shares of the requests that the new release gets."""

COLUMNS: tuple[Column[Row], ...] = (
    Column("preset"),
    Column("rise", "share", ".0%"),
    Column("method"),
    Column("found", form=".1%"),
    Column("first", form=".1%"),
    Column("named", form=".1%"),
    Column("types", form=".1f"),
    Column("R²", "r_squared", ".2f"),
    Column("compared", form=".0%"),
    Column("CPU s", "seconds", ".2g"),
)

LOOKS: tuple[Column[LooksRow], ...] = (
    Column("preset"),
    Column("rise", "share", ".0%"),
    Column("requests it gets", "beside", ".0%"),
    Column("found", form=".1%"),
    Column("named", form=".1%"),
    Column("periods until then", "periods", ".0f"),
    Column("looks that judge", "judged", ".0%"),
)

OUTLOOKS: tuple[Column[OutlookRow], ...] = (
    Column("preset"),
    Column("periods", form="d"),
    Column("rise of the type", "rise", ".1%"),
    Column("of the metric", "share", ".1%"),
    Column("found", form=".1%"),
    Column("half of it", "half", ".1%"),
    Column("foreseen", form=".1%"),
)


@dataclass(frozen=True, slots=True)
class _RequestsRequest:
    cases: int = option(200, least=1, help="Cases of each row.")
    names: tuple[str, ...] = option(flag="--preset", choices=PRESETS, help="Preset (default: all but large).")
    rises: tuple[float, ...] = option(
        (0.0, 0.01, 0.05),
        flag="--rise",
        least=0,
        most=1,
        help="Share that slower requests add to the metric; 0 for equal releases.",
    )
    alpha: float = option(0.05, above=0, most=0.5)
    seed: int = seed_option()
    forest: bool = option(help="Fit the paper's forests too; a second a case.")
    mixed: bool = option(help="Fit a mixed linear model too.")
    looks: bool = option(
        help="Measure what `smidgen worker releases` reports, alone and beside the old release."
    )
    detectable: bool = option(help="Measure what `smidgen detectable --requests` predicts.")


@bench(json="one JSON object a row")
def requests(request: _RequestsRequest) -> Experiment[Row] | Experiment[LooksRow] | Experiment[OutlookRow]:
    """Measure how often `smidgen release requests` sees a request that costs more, and names it.

    "found" of a rise of 0 is the share of false alarms. "first" and "named" are of what was found: the true
    type stands first, or is among the types named, of which there are "types" in the mean. "compared" is the
    share of cases whose load could be compared at all.

    With --looks, "found" is by any look at a release, "periods" how many of them the new release had until
    then. The level is that of the stage.

    With --detectable, "found" is how often a rise is found that is foreseen to be found in 90 of 100 cases,
    by one look after as many periods; and how often half of it.
    """
    if request.forest:
        require("sklearn")
    names = request.names or USUAL
    if request.detectable:
        return _outlooks(request, list(product(names, _AFTER)))
    if request.looks:
        return _looks(request, list(product(names, request.rises, _BESIDE)))
    methods = [method for method, wanted in ((FOREST, request.forest), (MIXED, request.mixed)) if wanted]

    def rows(case: tuple[str, float]) -> Iterator[Row]:
        return measure(*case, request.cases, request.alpha, request.seed, methods)

    return Experiment(*measured(list(product(names, request.rises)), rows), table(COLUMNS))


def _looks(request: _RequestsRequest, cases: list[tuple[str, float, float]]) -> Experiment[LooksRow]:
    def rows(case: tuple[str, float, float]) -> list[LooksRow]:
        return [measure_looks(*case, request.cases, request.seed)]

    return Experiment(*measured(cases, rows), table(LOOKS))


def _outlooks(request: _RequestsRequest, cases: list[tuple[str, int]]) -> Experiment[OutlookRow]:
    def rows(case: tuple[str, int]) -> list[OutlookRow]:
        return [measure_outlook(*case, request.cases, request.seed)]

    return Experiment(*measured(cases, rows), table(OUTLOOKS))
