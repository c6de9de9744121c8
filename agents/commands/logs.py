"""``smidgen agent logs``: requests by type and period from access logs."""

from __future__ import annotations

import csv
import io
import math
import socket
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from agents.commands.changes import until_stopped
from agents.commands.options import agent_settings, checked_by, host_option, release_option, service_option
from agents.publishing.broker import check_broker, connect, publish_once, quiet_client
from agents.publishing.publisher import BackgroundPublisher
from pipeline.commands.terminal import escape_controls
from pipeline.files.outputs import check_outputs, write_output
from pipeline.files.values import duration_s_of, pairs
from pipeline.model import Outgoing
from pipeline.model.clock import system_clock
from pipeline.model.errors import ConfigError
from pipeline.model.units import DAY_S, counted, parse_duration_s
from pipeline.settings.config import Settings

_EXAMPLES = """\b
Examples:
  smidgen agent logs access.log.2.gz access.log.1 access.log --service shop
  smidgen agent logs --follow /var/log/nginx/access.log --service shop --latency \\
    --format '$remote_addr [$time_local] "$request" $status $request_time'
  smidgen agent logs --follow /var/log/nginx/access.log --service shop --state shop-log.json
"""

POLL_S = 0.5
CLOSE_S = 10.0
OUTBOX_BYTES = 4 * 1024**2
"""Bytes of messages that may wait for the broker; beyond, lines stay in the log until the broker is back."""

if TYPE_CHECKING:
    from agents.logs import LineFormat, RequestTally
    from agents.logs.log_follower import Counting
    from agents.logs.state_file import StateFile


def _lateness(text: str) -> float:
    seconds = parse_duration_s(text)
    if seconds > DAY_S:
        raise ValueError("should be at most 1d")
    return seconds


@click.command(epilog=_EXAMPLES)
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path))
@service_option
@host_option
@release_option
@click.option(
    "--format",
    "format_",
    default="auto",
    show_default=True,
    metavar="FORMAT",
    help="auto, common, combined, json, w3c, or nginx' log_format or Apache's LogFormat as configured.",
)
@click.option(
    "--key",
    "keys",
    multiple=True,
    callback=checked_by(pairs),
    metavar="WHAT=KEY",
    help="Of JSON: where time, request, method, target, status or duration stands. May be repeated.",
)
@click.option(
    "--rule",
    "rules",
    multiple=True,
    callback=checked_by(pairs),
    metavar="GLOB=TYPE",
    help="Type of requests by method and path, such as 'GET /shop/*=shop'. May be repeated.",
)
@click.option("--types", "most", type=click.IntRange(1, 1000), default=100, show_default=True)
@click.option("--period", "period_s", default="30s", show_default=True, callback=checked_by(duration_s_of))
@click.option(
    "--lateness",
    "lateness_s",
    default="10s",
    show_default=True,
    callback=checked_by(_lateness),
    help="With --follow: how long after its end a period takes lines.",
)
@click.option("--latency", is_flag=True, help="Publish response times too, as metrics that are judged.")
@click.option("--errors", is_flag=True, help="Publish the share of errors too, as metrics that are judged.")
@click.option(
    "--table",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE.csv",
    help="Write the counts to a table instead, for `smidgen release requests`. No broker is asked.",
)
@click.option("--follow", is_flag=True, help="Wait for what is written from now on, through rotation.")
@click.option(
    "--state",
    "state_file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="File in which --follow keeps its position and open periods; without it a restart begins anew.",
)
@agent_settings
def logs(
    settings: Settings,
    files: tuple[Path, ...],
    service: str,
    host: str | None,
    release: str,
    format_: str,
    keys: tuple[tuple[str, str], ...],
    rules: tuple[tuple[str, str], ...],
    most: int,
    period_s: float,
    lateness_s: float,
    latency: bool,
    errors: bool,
    table: Path | None,
    follow: bool,
    state_file: Path | None,
) -> None:
    """Count the requests of access logs by type and period, and publish that.

    On the topic `requests` it is by release, for `smidgen worker releases`; as set-up metrics it explains
    regressions and is not judged. - is standard input; gzip is read.
    With --state, --follow goes on after a restart where it was, through rotation, and counts each line once.
    What could not be read is counted, and said at the end; if that is every line, the exit code is 2.
    """
    from agents.logs import RequestTypes, TallyOptions, line_format
    from agents.logs.log_file import first_line
    from agents.logs.log_follower import Counting
    from agents.logs.state_file import StateFile

    if follow and (len(files) > 1 or str(files[0]) == "-"):
        raise click.UsageError("--follow: takes one file")
    if follow and table:
        raise click.UsageError("--follow and --table: choose one")
    if state_file and not follow:
        raise click.UsageError("--state is for --follow")
    if state_file:
        check_outputs({"--state": state_file}, files)
    if table:
        check_outputs({"--table": table}, files)
    else:
        quiet_client(settings)
    options = TallyOptions(
        service,
        host or socket.gethostname(),
        release,
        period_s,
        lateness_s if follow else None,
        latency,
        errors,
    )

    def format_of(head: Sequence[str]) -> LineFormat:
        return line_format(format_, first_line(head), dict(keys))

    counting = Counting(options, RequestTypes(rules, most), format_of)
    if table:
        tally = _write_table(files, table, counting)
    elif follow:
        state = None
        if state_file:
            state = StateFile(state_file, service=service, log=files[0], period_s=period_s)
        tally = _follow(files[0], settings, counting, state)
    else:
        tally = _import(files, settings, counting)
    click.echo(escape_controls(tally.summary()))


def _check(tally: RequestTally, path: Path) -> None:
    """Refuse a log of which not a single line could be read."""
    if tally.invalid and not tally.requests + tally.late:
        raise ConfigError(f"{path}: no line could be read ({tally.invalid:,}): is --format right?")


def _import(files: Sequence[Path], settings: Settings, counting: Counting) -> RequestTally:
    """Publish the requests of all files together."""
    from agents.logs.log_file import read_log

    tally: RequestTally | None = None
    messages: list[Outgoing] = []
    for path in files:
        for lines in read_log(path):
            tally = tally or counting.begin(lines)
            tally.add(lines)
            messages += tally.close()
    if tally is None:
        raise ConfigError(f"{files[0]}: is empty")
    _check(tally, files[0])
    publish_once([*messages, *tally.finish()], settings, settings.read_topics())
    return tally


def _write_table(files: Sequence[Path], path: Path, counting: Counting) -> RequestTally:
    """Write the counts of files by period and type as CSV."""
    from agents.logs.log_file import read_log

    tally: RequestTally | None = None
    for file in files:
        for lines in read_log(file):
            tally = tally or counting.begin(lines)
            tally.add(lines)
    if tally is None:
        raise ConfigError(f"{files[0]}: is empty")
    _check(tally, files[0])
    columns = tally.table()
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in zip(*columns.values(), strict=True):
        writer.writerow("" if math.isnan(value) else f"{value:.12g}" for value in row)
    write_output(path, text.getvalue().encode())
    return tally


def _follow(path: Path, settings: Settings, counting: Counting, state: StateFile | None) -> RequestTally:
    """Publish the requests that are appended to a file, until SIGINT or SIGTERM."""
    from agents.logs.log_follower import LogFollower
    from agents.publishing.message_queue import MessageQueue, Overflow

    check_broker(settings)
    topics = settings.read_topics()
    outbox = MessageQueue(max_bytes=OUTBOX_BYTES, overflow=Overflow.KEEP)
    publisher = BackgroundPublisher(lambda: connect(settings, topics), outbox)
    with until_stopped() as stop, state.locked() if state else nullcontext():
        follower = LogFollower(path, counting, state, outbox, publisher.offer)
        publisher.start()
        try:
            while not stop.is_set():
                if not follower.step(system_clock()):
                    stop.wait(POLL_S)
            follower.step(system_clock())  # what was written before the end
        finally:
            delivery = publisher.close(CLOSE_S)
            follower.close(system_clock())
    if waiting := len(outbox.unconfirmed):
        outcome = "are kept for the next start" if state else "were not published"
        click.echo(f"{counted(waiting, 'message')} {outcome}", err=True)
    if delivery.dropped.messages:
        click.echo(f"{counted(delivery.dropped.messages, 'message')} were refused", err=True)
    _check(follower.tally, path)
    return follower.tally
