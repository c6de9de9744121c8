"""``smidgen bench sampling``: what adaptive rates and pruned stacks cost and miss (Atys §6)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import click
from pydantic import TypeAdapter, ValidationError

from loadgen.bench.sampling.figures import draw_sampling, save_figure
from loadgen.bench.sampling.rates import CORRECTED, POLICIES, PUBLISHED, Point, measure_rates, saved
from loadgen.bench.sampling.services import KINDS, WINDOW_S
from loadgen.bench.sampling.stacks import PruningResult, measure_pruning
from loadgen.terminal import progress, read_file
from pipeline.commands.options import Duration
from pipeline.commands.tables import print_json
from pipeline.files.outputs import check_outputs
from pipeline.model.errors import ConfigError
from pipeline.model.units import DAY_S

FIRST_SEED = 2001
"""Of services and hosts; settings were chosen on seeds from 101 and 1001 on."""


@dataclass(frozen=True, slots=True)
class SamplingResult:
    """All that was measured."""

    points: list[Point]
    pruning: list[PruningResult]


@click.command()
@click.option("--services", type=click.IntRange(1, 100), default=2, show_default=True, help="Of each kind.")
@click.option("--duration", type=Duration(), default=DAY_S, show_default="1d", help="Of each service.")
@click.option(
    "--hosts", type=click.IntRange(1, 100), default=8, show_default=True, help="Whose stacks are pruned."
)
@click.option(
    "--from",
    "recorded",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Show what --json wrote instead of measuring.",
)
@click.option("--figure", type=click.Path(path_type=Path), help="Draw both as an SVG.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def sampling(
    services: int, duration: float, hosts: int, recorded: Path | None, figure: Path | None, as_json: bool
) -> None:
    """Measure cost against error of sampling policies, and time against error of pruning.

    Services are simulated whose profiles stay, change with deployments, by the hour, in bursts or all the
    time. A policy sees the samples that it asks for and says what the profile of each window of 10 s is; its
    error is the mean over the ten largest functions. "saved" is the share of the samples that it needs less
    than the fixed rate of the same error. "whole run" is the error of the profile of the whole time, each
    sample weighed by 1 / rate, and "unweighed" the one without. Pruning is set up on one host and measured
    on others, by Smidgen's own aggregation.
    """
    if figure:
        check_outputs({"--figure": figure}, [recorded] if recorded else [])
    result = _read(recorded) if recorded else _measure(services, duration, hosts)
    if figure:
        save_figure(draw_sampling(result.points, result.pruning), figure)
    if as_json:
        print_json(asdict(result))
        return
    for line in (*_rate_lines(result.points), "", *_pruning_lines(result.pruning)):
        click.echo(line)


def _measure(services: int, duration_s: float, hosts: int) -> SamplingResult:
    windows = max(math.floor(duration_s / WINDOW_S), 1)
    seeds = range(FIRST_SEED, FIRST_SEED + services)
    with progress("services", len(KINDS) * services) as advance:
        points = measure_rates(tuple(KINDS), seeds, windows, advance)
    with progress("hosts", 2 * hosts + 1) as advance:
        return SamplingResult(points, measure_pruning(FIRST_SEED, hosts, advance))


def _read(path: Path) -> SamplingResult:
    try:
        return TypeAdapter(SamplingResult).validate_json(read_file(path))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise ConfigError(f"--from {path}: is not what --json writes: {where} {first['msg']}") from None


def _rate_lines(points: Sequence[Point]) -> Iterator[str]:
    numbers = ("setting", "Hz", "error", "saved", "whole run", "unweighed")
    yield f"{'service':<12}{'policy':<22}" + "".join(f"{name:>11}" for name in numbers)
    for point in points:
        if point.policy in POLICIES[1:]:
            yield (
                f"{point.kind:<12}{point.policy:<22}{point.setting:>11g}{point.mean_hz:>11.1f}"
                f"{point.error * 100:>10.3f}%{saved(points, point) * 100:>10.1f}%"
                f"{point.whole_error * 100:>10.3f}%{point.plain_error * 100:>10.3f}%"
            )
    for policy in (PUBLISHED, CORRECTED):
        best = [saved(points, point) for point in points if point.policy == policy]
        span = f"{min(best) * 100:.1f} to {max(best) * 100:.1f} %"
        yield f"{policy}: saves {span} of the samples at equal error"


def _pruning_lines(pruning: Sequence[PruningResult]) -> Iterator[str]:
    yield f"{'pruning':<26}{'share':>8}{'time saved':>12}{'MAPE a host':>13}{'of all hosts':>14}"
    for one in pruning:
        yield (
            f"{one.method:<26}{one.plan.share * 100:>7.2f}%{one.saved * 100:>11.1f}%"
            f"{one.error * 100:>12.3f}%{one.fleet_error * 100:>13.3f}%"
        )
