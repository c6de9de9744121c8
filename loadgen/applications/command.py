"""``smidgen bench applications``: are regressions in real web applications found from logs and CPU alone?"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from loadgen.applications.catalogue import APPLICATIONS, KINDS, Application, Position
from loadgen.applications.drive import Injection, Side, record
from loadgen.applications.environment import install
from loadgen.applications.load import NEW_DRIVERS, OLD_DRIVERS, Drivers
from loadgen.applications.table import Row, judge
from loadgen.harness import Advance, Experiment, bench, table
from loadgen.requests.table import PAPER_R_SQUARED
from pipeline.commands.request import FOLDER, option, seed_option
from pipeline.commands.tables import Column
from pipeline.settings.extras import require


def _types_slower(row: Row) -> str:
    named = f"{row.baseline} types"
    return f"{named}, {'with' if row.baseline_right else 'without'} it" if row.kind else named


COLUMNS: tuple[Column[Row], ...] = (
    Column("application"),
    Column("regression", lambda row: row.kind or "none"),
    Column("in", lambda row: row.position or None),
    Column("adds", lambda row: row.added if row.kind else None, ".1%"),
    Column("found", lambda row: ("yes" if row.found else "no") if row.compared else "not compared"),
    Column("p", lambda row: row.p if row.compared else None, ".2g"),
    Column("rank", lambda row: row.rank or None, "d"),
    Column("of", lambda row: row.named or None, "d"),
    Column("R²", "r_squared", ".2f"),
    Column("rank", lambda row: row.forest_rank or None, "d"),
    Column("baseline", _types_slower, str),
)


@dataclass(frozen=True, slots=True)
class _ApplicationsRequest:
    names: tuple[str, ...] = option(flag="--application", choices=APPLICATIONS, help="Only these.")
    kinds: tuple[str, ...] = option(flag="--kind", choices=KINDS, help="Only these.")
    periods: int = option(120, least=20, most=10_000, help="Periods of each release.")
    rate: float = option(30.0, least=1, most=10_000, help="Mean number of requests in a period.")
    milliseconds: float = option(
        1.0,
        flag="--extra",
        above=0,
        most=10_000,
        help="Milliseconds of CPU time that a regression adds to each call.",
    )
    equal: int = option(8, least=0, most=1000, help="Number of new releases without a regression.")
    connections: int = option(1, least=1, most=64, help="Concurrent requests of a release.")
    alpha: float = option(0.05, above=0, most=0.5)
    seed: int = seed_option()
    forest: bool = option(help="Fit the paper's forests too.")
    environment: Path | None = option(
        kind=FOLDER, help="Folder that keeps the applications' packages; without it they are installed anew."
    )
    keep: Path | None = option(kind=FOLDER, help="Folder for all access logs and CPU times.")


@bench(json="one JSON object a release")
def applications(request: _ApplicationsRequest) -> Experiment[Row]:
    """Find regressions of two real web applications from their access logs and CPU time.

    Datasette and Radicale are installed from the package registry, in an environment of their own. Each
    regression, four kinds in four functions, is a new release. The old release runs beside it, under four
    drivers with mixes of requests of their own, the new one under five, and users come and go, as in
    Liao et al., §6.
    Beside the costs model of `smidgen release requests` are the paper's forests and its baseline of response
    times.
    """
    if request.forest:
        require("sklearn")
    chosen = [APPLICATIONS[name] for name in request.names or APPLICATIONS]
    kinds = request.kinds or KINDS

    def rows(advance: Advance) -> Iterator[Row]:
        if request.keep:
            request.keep.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="smidgen-applications-")))
            python = install((request.environment or folder / "environment").resolve())
            for application in chosen:
                yield from _measure(application, python, folder, request, advance)

    pairs = sum(request.equal + len(kinds) * len(application.positions) for application in chosen)
    return Experiment(rows, 2 * pairs * request.periods, table(COLUMNS, _summary))


def _measure(
    application: Application, python: Path, folder: Path, request: _ApplicationsRequest, advance: Advance
) -> Iterator[Row]:
    """Yield a row of each new release against the old one."""
    drivers = Drivers.drawn(tuple(application.requests), request.rate, np.random.default_rng(request.seed))
    injections: list[tuple[str, Position] | None] = [None] * request.equal
    injections += [(kind, position) for kind in request.kinds or KINDS for position in application.positions]
    for index, injected in enumerate(injections):
        injection = Injection(injected[0], injected[1].function, request.milliseconds) if injected else None
        name = f"{application.name}-{index}"
        old, new = record(
            application, python, _sides(drivers, request, folder / name, index, injection), advance
        )
        if request.keep:
            old.write(request.keep, f"{name}-old")
            new.write(request.keep, f"{name}-new")
        truth = (injected[1], injection) if injected and injection else None
        yield judge(application, old, new, truth, request.alpha, forest=request.forest)


def _sides(
    drivers: Drivers, request: _ApplicationsRequest, folder: Path, index: int, injection: Injection | None
) -> tuple[Side, Side]:
    """Draw the requests of both releases."""
    rng = np.random.default_rng((request.seed, index))
    old, new = (drivers.periods(count, request.periods, rng) for count in (OLD_DRIVERS, NEW_DRIVERS))
    folder.mkdir()
    many = request.connections
    return Side(folder / "old", old, None, many), Side(folder / "new", new, injection, many)


def _summary(rows: Sequence[Row]) -> Iterable[str]:
    """Say how often each method is right."""
    yield ""
    for name in dict.fromkeys(row.application for row in rows):
        slower = [row for row in rows if row.application == name and row.kind]
        equal = [row for row in rows if row.application == name and not row.kind]
        if slower:
            precision = np.mean(
                [row.baseline_right / row.baseline if row.baseline else 0.0 for row in slower]
            )
            yield (
                f"{name}: {sum(row.found for row in slower)} of {len(slower)} found, "
                f"{sum(row.rank == 1 for row in slower)} with the right request first; "
                f"baseline: precision {precision:.2f}"
            )
        if equal:
            yield (
                f"{name}: {sum(row.found for row in equal)} of {len(equal)} equal releases found slower; "
                f"baseline: {sum(row.baseline > 0 for row in equal)}"
            )
        if any(math.isfinite(row.r_squared) for row in slower):
            above, alarms = (
                sum(row.r_squared >= PAPER_R_SQUARED for row in group) for group in (slower, equal)
            )
            yield (
                f"{name}: forests: R² ≥ {PAPER_R_SQUARED} in {above} of {len(slower)}, and in {alarms} of "
                f"{len(equal)} equal ones; the right request first in "
                f"{sum(row.forest_rank == 1 for row in slower)}"
            )
