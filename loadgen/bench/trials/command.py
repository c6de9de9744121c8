"""``smidgen bench trials``: the models of trials on simulated experiments."""

from __future__ import annotations

from collections.abc import Iterator

from loadgen.bench.trials.simulate import DISTRIBUTIONS
from loadgen.bench.trials.table import SERVICES, Row, measure
from loadgen.harness import Experiment, bench, measured, table
from pipeline.commands.request import option, seed_option
from pipeline.commands.tables import Column

COLUMNS: tuple[Column[Row], ...] = (
    Column("distribution"),
    Column("trials", form="d"),
    Column("regression", form=".2%"),
    Column("model"),
    Column("false positives", "false_positives", ".1%"),
    Column("false negatives", "false_negatives", ".1%"),
    Column("detectable", "detectability", ".2%"),
)


@bench(json="one JSON object a row")
def trials(
    experiments: int = option(
        1000,
        least=SERVICES,
        help=f"Experiments with equal sides, and as many with a regression; of {SERVICES} services.",
    ),
    trials: tuple[int, ...] = option((1, 6, 20), least=1),
    names: tuple[str, ...] = option(flag="--distribution", choices=DISTRIBUTIONS, help="Only these."),
    alpha: float = option(0.05, above=0, most=0.5),
    seed: int = seed_option(),
) -> Experiment[Row]:
    """Measure how often each model of `smidgen trial verdict` errs on experiments whose truth is known.

    Side B of half of the experiments costs more by three standard errors of the mean difference of trials: a
    test that knew these would miss 15 %. False positives are equal sides that differ significantly, false
    negatives regressions that are not found, and detectability is the median half-width of the interval.
    """

    def rows(case: tuple[str, int]) -> Iterator[Row]:
        name, number = case
        return measure(DISTRIBUTIONS[name], number, experiments, alpha, seed)

    cases = [(name, number) for name in names or DISTRIBUTIONS for number in trials]
    return Experiment(*measured(cases, rows), table(COLUMNS))
