"""``smidgen demo``: the whole pipeline on real profiles of a live service, embedded."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

import click
from rich.console import Console

from loadgen.demo.display import LiveDisplay, PlainDisplay, show_outcome
from loadgen.demo.run import Demo, DemoOutcome
from loadgen.demo.status import Status
from loadgen.demo.tasks import BackgroundTasks
from pipeline.commands.request import FOLDER, option, takes
from pipeline.model.clock import system_clock
from pipeline.model.errors import ConfigError, SmidgenError
from pipeline.model.units import counted
from pipeline.processes import until_signal

INTERRUPTED = 130
_PLAIN_WIDTH = 140
_MOST_LOAD = 2.0
"""Runnable processes per processor from which on a failure may be that of a busy machine."""


@dataclass(frozen=True, slots=True)
class _DemoRequest:
    out: Path = option(Path("out/demo"), kind=FOLDER, help="Folder for the report and the events.")
    keep: bool = option(help="Keep the shop's repository and all logs, in OUT/run.")
    stay: bool = option(help="Keep everything up at the end, the dashboard too, until Ctrl-C.")
    plain: bool = option(help="Lines instead of live panels; the default without a terminal.")
    seed: int = option(1, help="Seed of the traffic.")


@click.command()
@takes
def demo(request: _DemoRequest) -> int:
    """Watch the whole pipeline catch one slow commit of a live service; takes about three minutes.

    A small web service is profiled while commit after commit is deployed to it: harmless ones, a
    refactoring, and one that makes a subroutine slower. Exits with 0 only if that one was reported once,
    with the right subroutine and commit, and nothing else was. The address of the dashboard is shown as soon
    as it is there; with --stay it is there until Ctrl-C.
    """
    console = Console()
    if not console.is_terminal:
        console = Console(width=_PLAIN_WIDTH)
    folder = _run_folder(request.out, request.keep)
    code = 1
    try:
        code = asyncio.run(_run(console, folder, request))
    finally:
        if request.keep or code == 1:
            console.print(f"Logs: {folder / 'logs'}", markup=False, highlight=False, soft_wrap=True)
        else:
            shutil.rmtree(folder, ignore_errors=True)
    return code


async def _run(console: Console, folder: Path, request: _DemoRequest) -> int:
    status = Status(started=system_clock())
    plain = request.plain or not console.is_terminal
    display = (PlainDisplay if plain else LiveDisplay)(console, status, system_clock)
    codes: list[int] = []

    def show(outcome: DemoOutcome) -> None:
        elapsed_s = system_clock() - status.started
        show_outcome(console, status, outcome.comparison, outcome.reports, elapsed_s)
        if not outcome.comparison.passed:
            console.print(_advice(request.out), markup=False, highlight=False, soft_wrap=True)
        codes.append(0 if outcome.comparison.passed else 1)

    play = Demo(
        folder=folder,
        out=request.out,
        seed=request.seed,
        status=status,
        clock=system_clock,
        on_event=display.event,
        on_outcome=show,
        stay=request.stay,
    )
    try:
        await until_signal(_shown(display, play), lambda: console.print("Stopping everything ..."))
    except SmidgenError as error:
        console.print("[bold red]The demo broke off:[/]")
        console.print(str(error), markup=False, highlight=False, soft_wrap=True)
        return 1
    if not codes:
        console.print("Interrupted; everything is stopped.")
        return INTERRUPTED
    return codes[0]


async def _shown(display: LiveDisplay | PlainDisplay, play: Demo) -> DemoOutcome:
    background = BackgroundTasks()
    background.add(display.run())
    return await background.lead(play.run())


def _advice(out: Path) -> str:
    """Return what to do after a failure: a busy machine takes CPU from the service that is measured."""
    why = f"Why each candidate was dropped: smidgen why --ledger {out / 'ledger.jsonl'}"
    load, processors = os.getloadavg()[0], os.cpu_count() or 1
    if load <= _MOST_LOAD * processors:
        return why
    busy = (
        f"This machine is too busy for the demo: a load of {load:.1f} on {counted(processors, 'processor')}."
    )
    return f"{busy} Try again when it is not.\n{why}"


def _run_folder(out: Path, keep: bool) -> Path:
    try:
        out.mkdir(parents=True, exist_ok=True)
        if not keep:
            return Path(tempfile.mkdtemp(prefix="smidgen-demo-"))
        folder = (out / "run").resolve()
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    except OSError as error:
        raise ConfigError(f"--out: {error.filename}: {error.strerror}") from None
    return folder
