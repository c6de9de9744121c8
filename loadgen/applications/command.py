"""``smidgen bench applications``: are regressions in real web applications found from logs and CPU alone?"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np

from loadgen.applications.catalogue import APPLICATIONS, KINDS, Application, Position
from loadgen.applications.drive import Injection, Side, record
from loadgen.applications.environment import install
from loadgen.applications.load import NEW_DRIVERS, OLD_DRIVERS, Drivers
from loadgen.applications.table import Row, judge
from loadgen.requests.table import PAPER_R_SQUARED
from loadgen.terminal import print_rows, progress
from pipeline.commands.options import FiniteRange
from pipeline.settings.extras import require_forest


@dataclass(frozen=True, slots=True)
class _Plan:
    """What is run of each application."""

    periods: int
    rate: float
    milliseconds: float
    equal: int
    seed: int
    alpha: float
    forest: bool
    kinds: Sequence[str]
    keep: Path | None
    connections: int


@click.command()
@click.option(
    "--application", "names", type=click.Choice(tuple(APPLICATIONS)), multiple=True, help="Only these."
)
@click.option("--kind", "kinds", type=click.Choice(KINDS), multiple=True, help="Only these.")
@click.option(
    "--periods",
    type=click.IntRange(min=20, max=10_000),
    default=120,
    show_default=True,
    help="Of each release.",
)
@click.option(
    "--rate",
    type=FiniteRange(min=1, max=10_000),
    default=30.0,
    show_default=True,
    help="Requests in a period, in the mean.",
)
@click.option(
    "--extra",
    "milliseconds",
    type=FiniteRange(min=0, min_open=True, max=10_000),
    default=1.0,
    show_default=True,
    help="Milliseconds of CPU time that a regression adds to each call.",
)
@click.option(
    "--equal",
    type=click.IntRange(min=0, max=1000),
    default=8,
    show_default=True,
    help="New releases without a regression.",
)
@click.option(
    "--connections",
    type=click.IntRange(min=1, max=64),
    default=1,
    show_default=True,
    help="Requests of a release that are under way at a time.",
)
@click.option("--alpha", type=FiniteRange(min=0, min_open=True, max=0.5), default=0.05, show_default=True)
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True)
@click.option("--forest", is_flag=True, help="The paper's forests beside it.")
@click.option(
    "--environment",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the applications' packages; without it they are installed anew.",
)
@click.option(
    "--keep",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for all access logs and CPU times.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a release.")
def applications(
    names: tuple[str, ...],
    kinds: tuple[str, ...],
    periods: int,
    rate: float,
    milliseconds: float,
    equal: int,
    connections: int,
    alpha: float,
    seed: int,
    forest: bool,
    environment: Path | None,
    keep: Path | None,
    as_json: bool,
) -> None:
    """Find regressions of two real web applications from their access logs and CPU time.

    Datasette and Radicale are installed from the package registry, in an environment of their own. Each
    regression, four kinds in four functions, is a new release. The old release runs beside it, under four
    drivers with mixes of requests of their own, the new one under five, and users come and go, as in
    Liao et al., §6.
    Beside the costs model of `smidgen release requests` are the paper's forests and its baseline of response
    times.
    """
    if forest:
        require_forest()
    plan = _Plan(periods, rate, milliseconds, equal, seed, alpha, forest, kinds or KINDS, keep, connections)
    if keep:
        keep.mkdir(parents=True, exist_ok=True)
    chosen = [APPLICATIONS[name] for name in names or APPLICATIONS]
    rows: list[Row] = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="smidgen-applications-")))
        python = install((environment or folder / "environment").resolve())
        pairs = sum(equal + len(plan.kinds) * len(each.positions) for each in chosen)
        advance = stack.enter_context(progress("applications", 2 * pairs * periods))
        for application in chosen:
            rows += _measure(application, python, folder, plan, advance)
    print_rows(rows, _table, as_json=as_json)


def _measure(
    application: Application, python: Path, folder: Path, plan: _Plan, advance: Callable[[], None]
) -> Iterator[Row]:
    """Yield a row of each new release against the old one."""
    drivers = Drivers.drawn(tuple(application.requests), plan.rate, np.random.default_rng(plan.seed))
    injections: list[tuple[str, Position] | None] = [None] * plan.equal
    injections += [(kind, position) for kind in plan.kinds for position in application.positions]
    for index, injected in enumerate(injections):
        injection = Injection(injected[0], injected[1].function, plan.milliseconds) if injected else None
        name = f"{application.name}-{index}"
        old, new = record(
            application, python, _sides(drivers, plan, folder / name, index, injection), advance
        )
        if plan.keep:
            old.write(plan.keep, f"{name}-old")
            new.write(plan.keep, f"{name}-new")
        truth = (injected[1], injection) if injected and injection else None
        yield judge(application, old, new, truth, plan.alpha, forest=plan.forest)


def _sides(
    drivers: Drivers, plan: _Plan, folder: Path, index: int, injection: Injection | None
) -> tuple[Side, Side]:
    """Draw the load of both releases."""
    rng = np.random.default_rng((plan.seed, index))
    old, new = (drivers.periods(count, plan.periods, rng) for count in (OLD_DRIVERS, NEW_DRIVERS))
    folder.mkdir()
    many = plan.connections
    return Side(folder / "old", old, None, many), Side(folder / "new", new, injection, many)


def _table(rows: Sequence[Row]) -> Iterable[str]:
    yield "| application | regression | in | adds | found | p | rank | of | R² | rank | baseline |"
    yield "| --- | --- | --- | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    for row in rows:
        cells = (
            row.application,
            row.kind or "none",
            row.position or "–",
            f"{row.added:.1%}" if row.kind else "–",
            ("yes" if row.found else "no") if row.compared else "not compared",
            f"{row.p:.2g}" if row.compared else "–",
            str(row.rank or "–"),
            str(row.named or "–"),
            f"{row.r_squared:.2f}" if math.isfinite(row.r_squared) else "–",
            str(row.forest_rank or "–"),
            f"{row.baseline} types, {'with' if row.baseline_right else 'without'} it"
            if row.kind
            else f"{row.baseline} types",
        )
        yield f"| {' | '.join(cells)} |"
    yield ""
    yield from _summary(rows)


def _summary(rows: Sequence[Row]) -> Iterable[str]:
    """Say how often each method is right."""
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
                sum(row.r_squared >= PAPER_R_SQUARED for row in each) for each in (slower, equal)
            )
            yield (
                f"{name}: forests: R² ≥ {PAPER_R_SQUARED} in {above} of {len(slower)}, and in {alarms} of "
                f"{len(equal)} equal ones; the right request first in "
                f"{sum(row.forest_rank == 1 for row in slower)}"
            )
