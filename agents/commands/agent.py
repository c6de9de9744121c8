"""``smidgen agent run`` and ``smidgen agent import``."""

from __future__ import annotations

import socket
from pathlib import Path

import click

from agents.commands.options import (
    agent_settings,
    checked_by,
    host_option,
    labels_option,
    release_option,
    roots_option,
    sampling_interval_s,
    service_option,
)
from agents.profiles.formats import format_names
from agents.profiles.formats.writers import WRITERS, writer_for
from agents.profiles.message import Source
from agents.profiles.profile_conversion import Conversion, convert_profile
from agents.profiles.profile_files import Import, read_files
from agents.profiles.profile_source import STDIN, named, opened_profile
from agents.publishing.broker import publish_once, quiet_client
from agents.sampling.agent import DEFAULT_HZ, Plan, run_agent, with_change
from agents.sampling.kernels import AUTO, CALL_GRAPHS, CallGraph, kernel_names
from agents.source.changes import Repository, read_change
from pipeline.commands.lazy_group import LazyGroup
from pipeline.commands.options import FiniteRange, Moment
from pipeline.commands.terminal import escape_controls
from pipeline.files.outputs import check_outputs, replacing
from pipeline.files.values import duration_s_of
from pipeline.kafka import bootstrap_servers
from pipeline.messages.inputs import FUTURE_S
from pipeline.model.clock import system_clock
from pipeline.model.units import parse_size_bytes
from pipeline.settings.config import Settings

_RUN_EXAMPLES = """\b
Examples:
  smidgen agent run --service shop --pid 4711
  smidgen agent run --service shop --changes . -- python -m shop
  smidgen agent run --service shop --native --interval 10s --pid 4711
"""
_IMPORT_EXAMPLES = """\b
Examples:
  smidgen agent import profile.txt --service shop
  smidgen agent import a.txt b.txt --service shop --start 2026-03-01T12:00:00Z --duration 10s
"""
_CONVERT_EXAMPLES = """\b
Examples:
  smidgen agent convert cpu.pb.gz
  smidgen agent convert recording.jfr recording.pb.gz --value wall
  smidgen agent convert stacks.txt stacks.speedscope.json
"""

INTERVAL_S = 2.0
LOCAL_INTERVAL_S = 1.0
"""As fine as the windows that ``smidgen up`` counts: its scans then see twice as much in the same time."""

_value_option = click.option(
    "--value",
    default="",
    metavar="NAME",
    help="What to count where a file has several: cpu, wall, alloc_space, … (default: samples or CPU time).",
)
_period_option = click.option(
    "--period",
    type=FiniteRange(1e-9, 1e18),
    metavar="NUMBER",
    default=None,
    callback=lambda _context, _parameter, value: value or 0.0,
    help="Weight of one sample in the file's unit, where the file does not say it.",
)


@click.group(cls=LazyGroup)
def agent() -> None:
    """Sample a live process, import stack samples, or receive webhooks, and publish them."""


@agent.command(context_settings={"allow_interspersed_args": False}, epilog=_RUN_EXAMPLES)
@service_option
@click.option("--pid", type=click.IntRange(min=1), help="Process to sample; or give a command after --.")
@click.option(
    "--kernel",
    type=click.Choice(kernel_names()),
    default=AUTO,
    show_default=True,
    help="What samples; auto looks at what the process runs.",
)
@click.option(
    "--hz",
    type=click.IntRange(1, 1000),
    default=DEFAULT_HZ,
    show_default=True,
    help="Samples a second and thread.",
)
@click.option(
    "--interval",
    "interval_s",
    metavar="DURATION",
    callback=checked_by(sampling_interval_s),
    help="One message is published per interval; intervals begin at its multiples. "
    "[default: 2s; 1s where smidgen up runs]",
)
@click.option("--native", is_flag=True, help="Frames of C, C++, Rust and Cython extensions too.")
@click.option("--subprocesses", is_flag=True, help="Sample the processes that the process starts, too.")
@click.option("--idle", is_flag=True, help="Count threads that wait, too: wall-clock time instead of CPU.")
@click.option("--nonblocking", is_flag=True, help="Never pause the process; some stacks are torn.")
@click.option(
    "--call-graph",
    type=click.Choice(CALL_GRAPHS),
    default=CALL_GRAPHS[0],
    show_default=True,
    help="How perf finds the stacks of compiled code: frame pointers, or debug information at a higher cost.",
)
@host_option
@release_option
@labels_option
@click.option(
    "--changes",
    "repository",
    type=click.Path(path_type=Path),
    metavar="REPO",
    help="Publish the commit that is checked out in this git repository as deployed now.",
)
@roots_option
@click.option(
    "--buffer",
    "buffer_bytes",
    default="64MiB",
    show_default=True,
    metavar="SIZE",
    callback=checked_by(parse_size_bytes),
    help="Most that waits for the broker during an outage; then the oldest messages are dropped.",
)
@agent_settings
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def run(
    settings: Settings,
    service: str,
    host: str | None,
    release: str,
    labels: dict[str, str],
    pid: int | None,
    command: tuple[str, ...],
    hz: int,
    interval_s: float | None,
    buffer_bytes: int,
    repository: Path | None,
    source_roots: tuple[str, ...],
    kernel: str,
    native: bool,
    subprocesses: bool,
    idle: bool,
    nonblocking: bool,
    call_graph: CallGraph,
) -> int:
    """Sample a process until it ends (or Ctrl-C), publishing its stacks interval by interval.

    Sampling another user's process needs root or CAP_SYS_PTRACE. If the broker is away, sampling goes on
    and messages wait. Exit code: 0 when the process ended or the agent was asked to end, 1 when a command
    that it started failed, 2 when the process cannot be sampled.
    """
    if (pid is None) == (not command):
        raise click.UsageError("give either --pid N or a command after --")
    if native and nonblocking:
        raise click.UsageError("--native has to pause the process: leave out --nonblocking")
    quiet_client(settings)
    bootstrap_servers(settings.broker)
    topics = settings.read_topics()
    plan = Plan(
        source=Source(service, host or socket.gethostname(), release, labels, float(hz)),
        pid=pid,
        command=command,
        rate_hz=hz,
        interval_s=interval_s or (LOCAL_INTERVAL_S if settings.local else INTERVAL_S),
        native=native,
        subprocesses=subprocesses,
        idle=idle,
        buffer_bytes=buffer_bytes,
        kernel=kernel,
        nonblocking=nonblocking,
        call_graph=call_graph,
    )
    if repository:
        repo = Repository(repository)
        head = read_change(
            repo, repo.commit("HEAD"), service=service, time=system_clock(), source_roots=source_roots
        )
        plan = with_change(plan, head)
    return run_agent(plan, settings, topics, clock=system_clock)


@agent.command("import", epilog=_IMPORT_EXAMPLES)
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path))
@service_option
@host_option
@release_option
@labels_option
@click.option(
    "--start",
    metavar="TIME",
    type=Moment(duration=None),
    help="When sampling began, ISO 8601 or epoch seconds; several files follow one another from there "
    "(default: each ended when it was last written).",
)
@click.option(
    "--duration",
    "duration_s",
    default="60s",
    show_default=True,
    metavar="DURATION",
    callback=checked_by(duration_s_of),
    help="How long each file was sampled.",
)
@click.option("--format", "format_", type=click.Choice(format_names()), default=AUTO)
@_value_option
@_period_option
@agent_settings
def import_files(
    settings: Settings,
    files: tuple[Path, ...],
    service: str,
    host: str | None,
    release: str,
    labels: dict[str, str],
    start: float | None,
    duration_s: float,
    format_: str,
    value: str,
    period: float,
) -> None:
    """Publish profile files of any format that is known, recognised by content."""
    quiet_client(settings)
    topics = settings.read_topics()
    source = Source(service, host or socket.gethostname(), release, labels)
    now = system_clock()
    request = Import(
        source, start, duration_s, topics["profiles"].max_message_bytes, format_,
        latest=now + FUTURE_S, now=now, value=value, period=period,
    )  # fmt: skip
    imported = read_files(files, request)
    publish_once([message for file in imported for message in file.messages], settings, topics)
    for file in imported:
        click.echo(escape_controls(file.summary()))


@agent.command(epilog=_CONVERT_EXAMPLES)
@click.argument("file", metavar="IN", type=click.Path(path_type=Path))
@click.argument("out", metavar="[OUT]", default=STDIN, type=click.Path(path_type=Path))
@click.option("--from", "format_", type=click.Choice(format_names()), default=AUTO, show_default=True)
@click.option(
    "--to",
    "target",
    type=click.Choice(tuple(WRITERS)),
    help="Format to write (default: by how OUT ends, else collapsed).",
)
@_value_option
@_period_option
def convert(file: Path, out: Path, format_: str, target: str | None, value: str, period: float) -> None:
    """Write a profile file in another format; - is standard input or output.

    Stacks, weights with their unit and period, files and lines are kept as far as both formats have them.
    What was left out is said on stderr.
    """
    written = Path("/dev/stdout") if str(out) == STDIN else out
    check_outputs({"OUT": written}, [file])
    request = Conversion(writer_for(target or "", str(out)), format_, value, period)
    with opened_profile(file) as source, named(file), replacing(written) as output:
        converted = convert_profile(source, output, request)
    click.echo(escape_controls(converted.summary(file)), err=True)
