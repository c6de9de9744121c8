"""``smidgen agent logs``: requests by type and period from access logs."""

from __future__ import annotations

import csv
import io
import math
import signal
import socket
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from agents.broker import check_broker, connect, publish_once, quiet_client
from agents.buffer import Buffer
from agents.options import (
    agent_settings,
    checked_by,
    duration_s_of,
    host_option,
    pairs,
    release_option,
    service_option,
)
from agents.publisher import Publisher
from pipeline.clock import system_clock
from pipeline.config import Settings
from pipeline.errors import ConfigError
from pipeline.model import Outgoing
from pipeline.outputs import check_outputs, write_output
from pipeline.terminal import escape_controls
from pipeline.units import DAY_S, parse_duration_s

_EXAMPLES = """\b
Examples:
  smidgen agent logs access.log.2.gz access.log.1 access.log --service shop
  smidgen agent logs --follow /var/log/nginx/access.log --service shop --latency \\
    --format '$remote_addr [$time_local] "$request" $status $request_time'
"""

POLL_S = 0.5
CLOSE_S = 10.0
BUFFER_MESSAGES = 100_000
BUFFER_BYTES = 16 * 1024**2
LEARNT = 20_000
"""Requests of the beginning that are seen before the first is counted."""

if TYPE_CHECKING:
    from agents.logs import RequestTally

Begin = Callable[[Sequence[str]], "RequestTally"]


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
) -> None:
    """Count the requests of access logs by type and period, and publish that.

    On the topic `requests` it is by release, for `smidgen worker releases`; as set-up metrics it explains
    regressions and is not judged. - is standard input; gzip is read.
    What could not be read is counted, and said at the end; if that is every line, the exit code is 2.
    """
    from agents.logs import RequestTally, RequestTypes, TallyOptions, line_format
    from agents.logs.log_file import first_line

    if follow and (len(files) > 1 or str(files[0]) == "-"):
        raise click.UsageError("--follow: takes one file")
    if follow and table:
        raise click.UsageError("--follow and --table: choose one")
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
    types = RequestTypes(rules, most)

    def begin(head: Sequence[str]) -> RequestTally:
        """Return the tally of a log that begins with these lines."""
        format_of_lines = line_format(format_, first_line(head), dict(keys))
        types.learn([fields[1] for line in head[:LEARNT] if (fields := format_of_lines.parse(line))])
        return RequestTally(options, format_of_lines, types)

    if table:
        tally = _write_table(files, table, begin)
    else:
        tally = _follow(files[0], settings, begin) if follow else _import(files, settings, begin)
    click.echo(escape_controls(tally.summary()))


def _check(tally: RequestTally, path: Path) -> None:
    """Refuse a log of which not a single line could be read."""
    if tally.invalid and not tally.requests + tally.late:
        raise ConfigError(f"{path}: no line could be read ({tally.invalid:,}): is --format right?")


def _import(files: Sequence[Path], settings: Settings, begin: Begin) -> RequestTally:
    """Publish what files hold, together."""
    from agents.logs.log_file import read_log

    tally: RequestTally | None = None
    messages: list[Outgoing] = []
    for path in files:
        for lines in read_log(path):
            tally = tally or begin(lines)
            tally.add(lines)
            messages += tally.close()
    if tally is None:
        raise ConfigError(f"{files[0]}: is empty")
    _check(tally, files[0])
    publish_once([*messages, *tally.finish()], settings, settings.read_topics())
    return tally


def _write_table(files: Sequence[Path], path: Path, begin: Begin) -> RequestTally:
    """Write the counts of files by period and type as CSV."""
    from agents.logs.log_file import read_log

    tally: RequestTally | None = None
    for file in files:
        for lines in read_log(file):
            tally = tally or begin(lines)
            tally.add(lines)
    if tally is None:
        raise ConfigError(f"{files[0]}: is empty")
    columns = tally.table()
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in zip(*columns.values(), strict=True):
        writer.writerow("" if math.isnan(value) else f"{value:.12g}" for value in row)
    write_output(path, text.getvalue().encode())
    return tally


def _follow(path: Path, settings: Settings, begin: Begin) -> RequestTally:
    """Publish what is written to a file until SIGINT or SIGTERM."""
    from agents.logs.log_file import FollowedLog

    check_broker(settings)
    topics = settings.read_topics()
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    publisher = Publisher(
        lambda: connect(settings, topics), Buffer(max_messages=BUFFER_MESSAGES, max_bytes=BUFFER_BYTES)
    )
    log = FollowedLog(path)
    head = log.head()
    tally = begin(head)
    publisher.start()
    try:
        while not stop.is_set():
            lines = log.read()
            if lines and not head:  # it was not there or empty, and now says what it is like
                head = log.head() or lines
                tally = begin(head)
            now = system_clock()
            tally.add(lines, now)
            for message in tally.close(now):
                publisher.offer(message)
            if not lines:
                stop.wait(POLL_S)
    finally:
        log.close()
        delivery = publisher.close(CLOSE_S)
    if lost := delivery.dropped.messages + delivery.unsent.messages:
        click.echo(f"{lost} messages were not published", err=True)
    _check(tally, path)
    return tally
