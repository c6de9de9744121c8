"""``smidgen agent run`` and ``smidgen agent import``."""

from __future__ import annotations

import socket
from pathlib import Path

import click

from agents.commands.options import (
    agent_settings,
    host_option,
    labels_option,
    release_option,
    roots_option,
    sampling_interval_s,
    service_option,
)
from agents.profiles.formats import format_names
from agents.profiles.formats.writers import WRITERS, writer_for
from agents.profiles.message import ProfileOrigin
from agents.profiles.profile_conversion import Conversion, convert_profile
from agents.profiles.profile_files import Import, read_files
from agents.profiles.profile_source import STDIN, named, opened_profile
from agents.publishing.broker import publish_once, quiet_client
from agents.sampling.agent import DEFAULT_HZ, SamplingPlan, run_agent, with_change
from agents.sampling.kernels import AUTO, CALL_GRAPHS, CallGraph, kernel_names
from agents.source.changes import Repository, read_change
from pipeline.commands.lazy_group import LazyGroup
from pipeline.commands.request import Moment, argument, option, takes
from pipeline.commands.terminal import print_lines
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

_value_option = option(
    "",
    metavar="NAME",
    help="Measure to count where a file has several: cpu, wall, alloc_space, … (default: samples or CPU "
    "time). Of collapsed stacks and DTrace the unit of their counts, such as microseconds.",
)
_period_option = option(
    least=1e-9,
    most=1e18,
    metavar="NUMBER",
    help="Weight of one sample in the file's unit, where the file does not say it.",
)


@click.group(cls=LazyGroup)
def agent() -> None:
    """Sample a live process, import stack samples, or receive webhooks, and publish them."""


@agent.command(context_settings={"allow_interspersed_args": False}, epilog=_RUN_EXAMPLES)
@takes
def run(
    service: str = service_option,
    pid: int | None = option(least=1, help="Process to sample; or give a command after --."),
    kernel: str = option(
        AUTO, choices=kernel_names(), help="Kernel that samples; auto chooses by what the process runs."
    ),
    hz: int = option(DEFAULT_HZ, least=1, most=1000, help="Samples a second and thread."),
    interval_s: float | None = option(
        parse=sampling_interval_s,
        metavar="DURATION",
        help="Time between two messages; intervals begin at its multiples. "
        "[default: 2s; 1s where smidgen up runs]",
    ),
    native: bool = option(help="Sample frames of C, C++, Rust and Cython extensions too."),
    subprocesses: bool = option(help="Sample the processes that the process starts too."),
    idle: bool = option(help="Count waiting threads too: wall-clock time instead of CPU time."),
    nonblocking: bool = option(help="Never pause the process; some stacks are torn."),
    call_graph: CallGraph = option(
        CALL_GRAPHS[0],
        choices=CALL_GRAPHS,
        help="Unwinding of compiled code by perf: frame pointers, or debug information at a higher cost.",
    ),
    host: str | None = host_option,
    release: str = release_option,
    labels: dict[str, str] = labels_option,
    repository: Path | None = option(
        flag="--changes",
        metavar="REPO",
        help="Publish the commit that is checked out in this git repository as deployed now.",
    ),
    source_roots: tuple[str, ...] = roots_option,
    buffer_bytes: int = option(
        "64MiB",
        parse=parse_size_bytes,
        metavar="SIZE",
        help="Memory for messages during an outage of the broker; when it is full, the oldest are dropped.",
    ),
    command: tuple[str, ...] = argument(click.UNPROCESSED),
    settings: Settings = agent_settings,
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
    plan = SamplingPlan(
        source=_source(service, host, release, labels, float(hz)),
        rate_hz=hz,
        interval_s=interval_s or (LOCAL_INTERVAL_S if settings.local else INTERVAL_S),
        pid=pid,
        command=command,
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
        head = repo.commit("HEAD")
        plan = with_change(
            plan, read_change(repo, head, service=service, time=system_clock(), source_roots=source_roots)
        )
    return run_agent(plan, settings, topics, clock=system_clock)


@agent.command("import", epilog=_IMPORT_EXAMPLES)
@takes
def import_files(
    files: tuple[Path, ...] = argument(required=True, metavar="FILE..."),
    service: str = service_option,
    host: str | None = host_option,
    release: str = release_option,
    labels: dict[str, str] = labels_option,
    start: float | None = option(
        kind=Moment(duration=None),
        help="Time at which sampling began, ISO 8601 or epoch seconds; several files follow one another. "
        "By default each file ended when it was last written.",
    ),
    duration_s: float = option(
        "60s", parse=duration_s_of, metavar="DURATION", help="Time that each file covers."
    ),
    format_: str = option(
        AUTO, choices=format_names(), help="Format of the files; auto recognises it by content."
    ),
    value: str = _value_option,
    period: float | None = _period_option,
    settings: Settings = agent_settings,
) -> None:
    """Publish profile files of any format that is known, recognised by content."""
    quiet_client(settings)
    topics = settings.read_topics()
    source = _source(service, host, release, labels)
    now = system_clock()
    imported = read_files(
        files,
        Import(
            source,
            start,
            duration_s,
            topics["profiles"].max_message_bytes,
            format_,
            latest=now + FUTURE_S,
            now=now,
            value=value,
            period=period or 0.0,
        ),
    )
    publish_once([message for file in imported for message in file.messages], settings, topics)
    print_lines(file.summary() for file in imported)


def _source(
    service: str, host: str | None, release: str, labels: dict[str, str], rate_hz: float = 0.0
) -> ProfileOrigin:
    return ProfileOrigin(service, host or socket.gethostname(), release, labels, rate_hz)


@agent.command(epilog=_CONVERT_EXAMPLES)
@takes
def convert(
    file: Path = argument(metavar="IN"),
    out: Path = argument(default=STDIN, metavar="[OUT]"),
    format_: str = option(
        AUTO, flag="--from", choices=format_names(), help="Format of IN; auto recognises it by content."
    ),
    target: str | None = option(
        flag="--to",
        choices=tuple(WRITERS),
        help="Format to write (default: by the ending of OUT, else collapsed).",
    ),
    value: str = _value_option,
    period: float | None = _period_option,
) -> None:
    """Write a profile file in another format; - is standard input or output.

    Stacks, weights with their unit and period, files and lines are kept as far as both formats have them.
    What was left out is said on stderr.
    """
    written = Path("/dev/stdout") if str(out) == STDIN else out
    check_outputs({"OUT": written}, [file])
    request = Conversion(writer_for(target or "", str(out)), format_, value, period or 0.0)
    with opened_profile(file) as source, named(file), replacing(written) as output:
        converted = convert_profile(source, output, request)
    print_lines([converted.summary(file)], err=True)
