"""``smidgen bench bisect``: bisections of simulated ranges of commits."""

from __future__ import annotations

from dataclasses import asdict

import click

from loadgen.terminal import print_json, progress
from pipeline.commands.options import FiniteRange

NOISE_NAMES = ("normal", "heavy tails", "outliers")


@click.command()
@click.option("--searches", type=click.IntRange(min=1), default=20, show_default=True, help="Of each case.")
@click.option(
    "--commits", type=click.IntRange(min=1, max=4096), multiple=True, default=(16, 64), show_default=True
)
@click.option(
    "--step",
    "steps",
    type=FiniteRange(min=0, max=1000),
    multiple=True,
    default=(0.0, 2.0, 5.0),
    show_default=True,
    help="In standard deviations of one run; 0 is none.",
)
@click.option("--noise", "noises", type=click.Choice(NOISE_NAMES), multiple=True, help="Only these.")
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a row.")
def bisect(
    searches: int,
    commits: tuple[int, ...],
    steps: tuple[float, ...],
    noises: tuple[str, ...],
    seed: int,
    as_json: bool,
) -> None:
    """Measure how often `smidgen trial bisect` names the commit that made a step, and what that takes.

    One commit of each range makes it, any as likely as another. Beside it: binary search as by `git bisect
    run`, in which a t-test compares as many runs of each version with those of the first, and all versions in
    order. A build costs as much as ten runs, and steps of half of the true one count.
    """
    from loadgen.bench.bisection.simulate import measure

    cases = [(count, noise, step) for count in commits for noise in noises or NOISE_NAMES for step in steps]
    rows = []
    with progress("bisect", len(cases)) as advance:
        for count, noise, step in cases:
            rows += measure(count, noise, step, searches, seed)
            advance()
    if as_json:
        for row in rows:
            print_json(asdict(row))
        return
    click.echo("| commits | noise | step | search | found | builds | runs |")
    click.echo("| ---: | --- | ---: | --- | ---: | ---: | ---: |")
    for row in rows:
        click.echo(
            f"| {row.commits} | {row.noise} | {row.step:g} | {row.search} | {row.found:.0%} | "
            f"{row.builds:.1f} | {row.runs:.1f} |"
        )
