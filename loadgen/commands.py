"""``smidgen loadgen``: simulated fleets, and the figures that show why simulation is needed."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console

from loadgen.terminal import progress
from pipeline.commands.options import settings_options
from pipeline.commands.request import FOLDER, option, seed_option, takes
from pipeline.model.errors import ConfigError
from pipeline.settings.config import Settings

if TYPE_CHECKING:
    from loadgen.fleet.scenario import Scenario


@click.group()
def loadgen() -> None:
    """Simulate fleets whose truth is known."""


@loadgen.command()
@takes
def fleet(
    scenario: str = option(metavar="FILE|PRESET", help="Scenario to simulate."),
    seed: int = seed_option(help="Seed of every draw."),
    out: Path | None = option(kind=FOLDER, help="Folder for the data set."),
    publish: bool = option(help="Send the same data through Kafka as agents would."),
    settings: Settings = settings_options("broker", "topics", "idempotent_producer", "log_level"),
) -> None:
    """Simulate services and write their data sets, or publish them.

    Presets: tiny, small, medium, large; steps, gradual, cost-shift, transients, cascade, seasonal, quiet,
    low-sampling, figure-9; own-cycles, no-endpoints, mass-rename, wrapper, runtime-upgrade, restless,
    templates, elsewhere, gaps, clock-change, sale-days, holiday, part-time, sparse, weekly-cron;
    rollout-staged, rollout-canary, rollout-blue-green, rollout-rolling, rollout-aborted, drained,
    traffic-shift, autoscaling, instance-type, sampler-rate, late-hosts, clocks-off, flags, experiments;
    shared-library, whose services have a folder each. Published profiles are one per host and window: set
    the worker's --window and --stack-window to those of the scenario.
    """
    from loadgen.fleet.scenario import load_scenario

    if out is None and not publish:
        raise ConfigError("nothing to do: give --out, --publish or both")
    services = load_scenario(scenario).of_each_service()
    for chosen in services:
        folder = out / chosen.service if out and len(services) > 1 else out
        _simulate_service(settings, chosen, seed, folder, publish=publish)


def _simulate_service(
    settings: Settings, scenario: Scenario, seed: int, out: Path | None, *, publish: bool
) -> None:
    from loadgen.fleet.simulate import simulate
    from pipeline.backtest.dataset import write_dataset

    began = time.perf_counter()
    simulated = simulate(scenario, seed)
    data = simulated.dataset
    if out is not None:
        write_dataset(data, out)
    name = f"{scenario.name}, {scenario.service}" if scenario.siblings else scenario.name
    console = Console(stderr=True)
    console.print(
        f"{name}: {len(data.names):,} series and {len(data.stacks):,} stacks in {len(data.totals):,} "
        f"windows, {data.totals.sum():,.0f} samples, {len(data.changes):,} changes, {len(data.truth):,} rows "
        f"of truth, {time.perf_counter() - began:.1f} s" + (f": {out}" if out else ""),
        markup=False,
        highlight=False,
        soft_wrap=True,
    )
    if publish:
        from loadgen.fleet.publish import messages
        from loadgen.fleet.publish import publish as send

        topics = settings.read_topics()
        with progress("publishing", len(data.totals)) as advance:
            sent = send(messages(simulated, scenario, seed), settings, topics, advance)
        console.print(f"{sent:,} messages published", markup=False, highlight=False)


@loadgen.command()
@takes
def figures(
    out: Path = option(kind=FOLDER, help="Folder for the PNG files."),
    seed: int = seed_option(help="Seed of the noise."),
) -> None:
    """Draw Figures 1, 8 and 9 of FBDetect's paper from its own parameters."""
    from loadgen.fleet.figures import draw_figures

    for path in draw_figures(out, seed):
        click.echo(path)
