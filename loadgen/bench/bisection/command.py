"""``smidgen bench bisect``: bisections of simulated ranges of commits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadgen.harness import Experiment, bench, measured, table
from pipeline.commands.request import option, seed_option
from pipeline.commands.tables import Column

if TYPE_CHECKING:  # scipy takes a second to load
    from loadgen.bench.bisection.simulate import Row

NOISE_NAMES = ("normal", "heavy tails", "outliers")

COLUMNS: tuple[Column[Row], ...] = (
    Column("commits", form="d"),
    Column("noise"),
    Column("step", form="g"),
    Column("search"),
    Column("found", form=".0%"),
    Column("builds", form=".1f"),
    Column("runs", form=".1f"),
)


@bench(json="one JSON object a row")
def bisect(
    searches: int = option(20, least=1, help="Searches of each case."),
    commits: tuple[int, ...] = option((16, 64), least=1, most=4096),
    steps: tuple[float, ...] = option(
        (0.0, 2.0, 5.0),
        flag="--step",
        least=0,
        most=1000,
        help="Size of the step, in standard deviations of one run; 0 is no step.",
    ),
    noises: tuple[str, ...] = option(flag="--noise", choices=NOISE_NAMES, help="Only these."),
    seed: int = seed_option(),
) -> Experiment[Row]:
    """Measure how often `smidgen trial bisect` names the commit that made a step, and what that takes.

    One commit of each range makes it, any as likely as another. Beside it: binary search as by `git bisect
    run`, in which a t-test compares as many runs of each version with those of the first, and all versions in
    order. A build costs as much as ten runs, and steps of half of the true one count.
    """
    from loadgen.bench.bisection.simulate import measure

    cases = [(count, noise, step) for count in commits for noise in noises or NOISE_NAMES for step in steps]
    return Experiment(*measured(cases, lambda case: measure(*case, searches, seed)), table(COLUMNS))
