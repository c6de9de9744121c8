"""``smidgen bench trials``: the models of trials on simulated experiments."""

from __future__ import annotations

import math
from collections.abc import Iterable

import click

from loadgen.bench.trials.simulate import DISTRIBUTIONS
from loadgen.bench.trials.table import SERVICES, Row, measure
from loadgen.terminal import print_rows, progress
from pipeline.commands.options import FiniteRange


@click.command()
@click.option(
    "--experiments",
    type=click.IntRange(min=SERVICES),
    default=1000,
    show_default=True,
    help=f"With equal sides, and as many with a regression; of {SERVICES} services.",
)
@click.option("--trials", type=click.IntRange(min=1), multiple=True, default=(1, 6, 20), show_default=True)
@click.option(
    "--distribution", "names", type=click.Choice(tuple(DISTRIBUTIONS)), multiple=True, help="Only these."
)
@click.option("--alpha", type=FiniteRange(min=0, min_open=True, max=0.5), default=0.05, show_default=True)
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a row.")
def trials(
    experiments: int, trials: tuple[int, ...], names: tuple[str, ...], alpha: float, seed: int, as_json: bool
) -> None:
    """Measure how often each model of `smidgen trial verdict` errs on experiments whose truth is known.

    Side B of half of the experiments costs more by three standard errors of the mean difference of trials: a
    test that knew these would miss 15 %. False positives are equal sides that differ significantly, false
    negatives regressions that are not found, and detectability is the median half-width of the interval.
    """
    cases = [(DISTRIBUTIONS[name], number) for name in names or DISTRIBUTIONS for number in trials]
    rows: list[Row] = []
    with progress("trials", len(cases)) as advance:
        for distribution, number in cases:
            rows += measure(distribution, number, experiments, alpha, seed)
            advance()
    print_rows(rows, _table, as_json=as_json)


def _table(rows: Iterable[Row]) -> Iterable[str]:
    yield "| distribution | trials | regression | model | false positives | false negatives | detectable |"
    yield "| --- | ---: | ---: | --- | ---: | ---: | ---: |"
    for row in rows:
        half = f"{row.detectability:.2%}" if math.isfinite(row.detectability) else "–"
        yield (
            f"| {row.distribution} | {row.trials} | {row.regression:.2%} | {row.model} | "
            f"{row.false_positives:.1%} | {row.false_negatives:.1%} | {half} |"
        )
