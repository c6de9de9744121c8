"""``smidgen lab``: commits of the demo's shop, judged by replayed traffic; what ``make lab`` runs."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from loadgen.bench.lab.request import LabRequest
from pipeline.commands.request import takes
from pipeline.commands.tables import print_table, text_columns
from pipeline.model.errors import ConfigError

if TYPE_CHECKING:
    from loadgen.bench.lab.experiments import Judged


@click.command()
@takes
def lab(request: LabRequest) -> int:
    """Judge three commits of the demo's shop before their release, again and again.

    One is 1 % slower in one endpoint, one is harmless, one calls downstream more often. Traffic is recorded
    at the base, A/A trials say how noisy this machine is, and the judge's own code decides on each
    experiment. With --bisect a commit that makes one endpoint 5 % slower is looked for among 16, another one
    in each repeat. Exit code: 0 if every verdict, or every commit that is found, is right, 1 if one is not.
    """
    keep = request.keep
    if keep and keep.exists():
        raise ConfigError(f"--keep: {keep} is there already")
    folder = keep.resolve() if keep else Path(tempfile.mkdtemp(prefix="smidgen-lab-"))
    folder.mkdir(parents=True, exist_ok=True)
    try:
        if request.bisect:
            return _bisect(folder, request)
        verdicts = asyncio.run(_run(folder, request))
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)
    _show(verdicts)
    return 0 if all(judged.right for row in verdicts for judged in row) else 1


def _bisect(folder: Path, config: LabRequest) -> int:
    """Bisect a range of commits in each repeat, and print what is found; 0 if all of it is right."""
    import random

    from loadgen.bench.lab.bisection import bisect_drawn, summary

    rng = random.Random(config.seed)
    done = []
    for repeat in range(1, config.repeats + 1):
        bisected = bisect_drawn(folder / f"range-{repeat}", rng)
        click.echo(f"repeat {repeat} of {config.repeats}: {bisected}")
        done.append(bisected)
    click.echo(summary(done))
    return 0 if all(bisected.right for bisected in done) else 1


async def _run(folder: Path, config: LabRequest) -> list[list[Judged]]:
    from loadgen.bench.lab.experiments import Lab, noise
    from pipeline.commands.terminal import print_note

    run = Lab(folder, config, print_note)
    try:
        await run.record()
        history = await run.history()
        for verdict in noise(history, config):
            delta = verdict.measured
            click.echo(
                f"A/A: {verdict.metric}: {delta.difference:+.2%} ({delta.low:+.2%} to {delta.high:+.2%}) "
                f"in {verdict.trials} trials: {verdict.decision.value}"
            )
        return await run.judge()
    finally:
        await run.processes.stop_all()


_COUNTED = ("pass", "fail", "not enough")


def _show(rows: list[list[Judged]]) -> None:
    """Print a row a commit: how many verdicts are right, and what they were."""
    names = ("commit", "metric", "expected", "right", *_COUNTED, "differences")
    print_table(text_columns(names, numbers=range(3, len(names))), map(_cells, zip(*rows, strict=True)))


def _cells(judged: tuple[Judged, ...]) -> tuple[str, ...]:
    commit, about = judged[0].commit, [verdict.about for verdict in judged if verdict.about]
    counts = Counter(verdict.decision.value for verdict in about)
    differences = sorted(verdict.measured.difference for verdict in about)
    return (
        *(commit.name, commit.judged, commit.expected),
        f"{sum(verdict.right for verdict in judged)} of {len(judged)}",
        *(str(counts[name]) for name in _COUNTED),
        f"{differences[0]:+.2%} to {differences[-1]:+.2%}" if differences else "none",
    )
