"""``smidgen up``: the whole pipeline on this machine until Ctrl-C; other commands find it."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import click

from pipeline.commands.options import settings_options
from pipeline.commands.request import FOLDER, option, takes
from pipeline.embedded.pipeline import Addresses, PipelineOptions, start_dashboard, start_pipeline
from pipeline.model.errors import ConfigError
from pipeline.processes import ChildFailed, Group, until_signal
from pipeline.settings.config import Settings, local_pipeline, local_state_file
from pipeline.settings.local import LocalPipeline, forget, remember, started_at
from pipeline.settings.windows import check_windows, fitted_windows
from pipeline.settings.workloads import load_workloads
from pipeline.stages.factory import STAGES

WORKLOADS = ("live",)
"""Workloads for live services unless the settings choose: windows of seconds."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run: its settings with fitted windows, the folder of its tables, and the port of its pages."""

    settings: Settings
    data: Path | None
    port: int


@click.command()
@takes
def up(
    data: Path | None = option(
        kind=FOLDER, help="Folder that keeps the store's tables; without it they go with the process."
    ),
    port: int = option(
        0,
        show_default=False,
        least=0,
        most=65535,
        metavar="PORT",
        help="Port of the dashboard; 0 takes a free one.",
    ),
    settings: Settings = settings_options("workloads", "window", "stack_window", "names"),
) -> int:
    """Run broker, store and all stages on this machine until Ctrl-C, with settings for live services.

    Every other command finds them without a flag for as long as this one runs. The broker keeps everything
    in memory: what it holds is gone at the end.
    """
    if running := local_pipeline():
        raise ConfigError(
            f"smidgen up runs already (process {running.pid}): broker {running.broker}, store {running.store}"
        )
    chosen = settings.workloads if "workloads" in settings.model_fields_set else WORKLOADS
    workloads = load_workloads(chosen)
    fitted = fitted_windows(settings.model_copy(update={"workloads": _absolute(chosen)}), workloads)
    check_windows(fitted, workloads)
    folder = Path(tempfile.mkdtemp(prefix="smidgen-up-"))
    try:
        asyncio.run(_run(Run(fitted, data, port), folder))
    except ChildFailed as error:
        click.echo(f"smidgen up: {error}\nLogs: {folder / 'logs'}", err=True)
        return 1
    shutil.rmtree(folder, ignore_errors=True)
    return 0


def _absolute(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return workloads for use in any folder: with the full path of the file."""
    return tuple(str(Path(name).resolve()) if Path(name).is_file() else name for name in names)


async def _run(run: Run, folder: Path) -> None:
    processes = Group(folder)
    path = local_state_file()
    try:
        await until_signal(
            _until_one_ends(run, processes, path), lambda: click.echo("Stopping everything ...", err=True)
        )
    finally:
        forget(path, os.getpid())
        await processes.stop_all()


async def _until_one_ends(run: Run, processes: Group, path: Path) -> NoReturn:
    settings = run.settings
    widths = ("--window", f"{settings.window_s:g}s", "--stack-window", f"{settings.stack_window_s:g}s")
    names = ("--names", str(settings.names.resolve())) if settings.names else ()
    options = PipelineOptions(
        Settings().read_topics(), settings.workloads, (STAGES,), run.data, (*widths, *names)
    )
    addresses = await start_pipeline(
        processes, options, on_step=lambda text: click.echo(f"{text} ...", err=True)
    )
    dashboard = await start_dashboard(processes, addresses, settings.workloads, port=run.port)
    pid = os.getpid()
    remember(
        path,
        LocalPipeline(
            pid=pid,
            started=started_at(pid),
            broker=addresses.broker,
            store=addresses.store,
            workloads=settings.workloads,
            window_s=settings.window_s,
            stack_window_s=settings.stack_window_s,
            dashboard=dashboard,
        ),
    )
    _show(addresses, dashboard)
    await processes.watch()


def _show(addresses: Addresses, dashboard: str) -> None:
    click.echo(f"broker     {addresses.broker}")
    click.echo(f"store      {addresses.store}")
    click.echo(f"dashboard  {dashboard}")
    click.echo(
        "\nReady. In a second terminal, for a Python program of yours:\n"
        "  smidgen agent run --service mine -- python3 app.py\n"
        "in a third:\n"
        "  smidgen events tail\n"
        "Ctrl-C here ends it all."
    )
