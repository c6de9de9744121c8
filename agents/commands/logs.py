"""``smidgen agent logs``: requests by type and period from access logs."""

from __future__ import annotations

import csv
import io
import math
import socket
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from datetime import UTC, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, available_timezones

import click

from agents.commands.options import (
    agent_settings,
    host_option,
    metrics_option,
    release_option,
    service_option,
)
from agents.publishing.broker import check_broker, connect, publish_once, quiet_client
from agents.publishing.publisher import BackgroundPublisher
from pipeline.commands.request import FILE, argument, option, takes
from pipeline.commands.terminal import print_lines
from pipeline.files.outputs import check_outputs, write_output
from pipeline.files.values import duration_s_of, pairs
from pipeline.model import Outgoing
from pipeline.model.clock import system_clock
from pipeline.model.errors import ConfigError
from pipeline.model.units import DAY_S, counted, parse_duration_s
from pipeline.processes import until_stopped
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


def _zone(text: str) -> tzinfo:
    if text == "UTC":
        return UTC
    if text not in available_timezones():  # those that count leap seconds are not
        raise ValueError("should be a time zone such as Europe/Berlin")
    return ZoneInfo(text)


@click.command(epilog=_EXAMPLES)
@takes
def logs(
    files: tuple[Path, ...] = argument(required=True, metavar="FILE..."),
    service: str = service_option,
    host: str | None = host_option,
    release: str = release_option,
    format_: str = option(
        "auto",
        metavar="FORMAT",
        help="Format: auto, common, combined, json, logfmt, ltsv, w3c, alb, envoy, gin, haproxy, s3, squid, "
        "traefik, or the format that nginx, Apache, gunicorn, HAProxy, Envoy, morgan, Tomcat or Undertow is "
        "configured with.",
    ),
    keys: tuple[tuple[str, str], ...] = option(
        flag="--key",
        parse=pairs,
        metavar="WHAT=KEY",
        help="Key of time, request, method, target, status or duration in JSON, logfmt or LTSV.",
    ),
    duration_unit: str | None = option(
        choices=("s", "ms", "us", "ns"),
        help="Unit of durations that are numbers alone, whatever the format says; by default that of the "
        "server's field. Tomcat before 10, for one, writes %D in ms.",
    ),
    time_zone: tzinfo = option(
        "UTC",
        parse=_zone,
        metavar="ZONE",
        help="Time zone of times without an offset, such as Europe/Berlin. Times that its clocks showed "
        "twice or never are unreadable.",
    ),
    rules: tuple[tuple[str, str], ...] = option(
        flag="--rule",
        parse=pairs,
        metavar="GLOB=TYPE",
        help="Type of requests by method and path, such as 'GET /shop/*=shop'.",
    ),
    most: int = option(100, flag="--types", least=1, most=1000, help="Most types of requests."),
    period_s: float = option("30s", parse=duration_s_of, help="Length of a period."),
    lateness_s: float = option(
        "10s", parse=_lateness, help="With --follow: time after its end for which a period takes lines."
    ),
    latency: bool = option(help="Publish response times too, as metrics that are judged."),
    errors: bool = option(help="Publish the share of errors too, as metrics that are judged."),
    table: Path | None = option(
        kind=FILE,
        metavar="FILE.csv",
        help="Table to write the counts to, for `smidgen release requests`, instead of publishing them.",
    ),
    follow: bool = option(help="Wait for lines that are written from now on, through rotation."),
    state_file: Path | None = option(
        flag="--state",
        kind=FILE,
        help="File in which --follow keeps its position and open periods; without it a restart begins anew.",
    ),
    metrics: tuple[str, int] | None = metrics_option,
    settings: Settings = agent_settings,
) -> None:
    """Count the requests of access logs by type and period, and publish that.

    On the topic `requests` it is by release, for `smidgen worker releases`; as set-up metrics it explains
    regressions and is not judged. - is standard input; gzip is read.
    With --state, --follow goes on after a restart where it was, through rotation, and counts each line once.
    What could not be read is counted, and said at the end; if that is every line, the exit code is 2.
    """
    from agents.logs import RequestTypes, TallyOptions, line_format, typical_line
    from agents.logs.log_follower import Counting
    from agents.logs.state_file import StateFile

    if follow and (len(files) > 1 or str(files[0]) == "-"):
        raise click.UsageError("--follow: takes one file")
    if follow and table:
        raise click.UsageError("--follow and --table: choose one")
    for name, given in (("--state", state_file), ("--metrics", metrics)):
        if given and not follow:
            raise click.UsageError(f"{name} is for --follow")
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
        time_zone,
    )

    def format_of(head: Sequence[str]) -> LineFormat:
        return line_format(format_, typical_line(head), dict(keys), duration_unit or "")

    counting = Counting(options, RequestTypes(rules, most), format_of)
    if table:
        tally = _write_table(files, table, counting)
    elif follow:
        state = None
        if state_file:
            state = StateFile(state_file, service=service, log=files[0], period_s=period_s)
        tally = _follow(files[0], settings, counting, state, metrics)
    else:
        tally = _import(files, settings, counting)
    print_lines([tally.summary()])


def _check(tally: RequestTally, path: Path) -> None:
    """Refuse a log of which not a single line could be read."""
    if refusal := tally.refusal():
        raise ConfigError(f"{path}: {refusal}")


def _check_latency(tally: RequestTally, counting: Counting) -> None:
    """Refuse a log without a single response time if response times are asked for."""
    if counting.options.latency and not tally.omissions.timed:
        raise ConfigError(f"--latency: no response time could be read: {tally.summary()}")


def _read(files: Sequence[Path], counting: Counting) -> Iterator[RequestTally]:
    """Yield the tally of all files after each part of them."""
    from agents.logs.log_file import read_log

    tally: RequestTally | None = None
    for path in files:
        for lines in read_log(path):
            tally = tally or counting.begin(lines)
            tally.add(lines)
            yield tally
    if tally is None:
        raise ConfigError(f"{files[0]}: is empty")
    _check(tally, files[0])


def _import(files: Sequence[Path], settings: Settings, counting: Counting) -> RequestTally:
    """Publish the requests of all files together.

    Raises:
        ConfigError: response times are asked for, and there are none.
    """
    messages: list[Outgoing] = []
    for tally in _read(files, counting):
        messages += tally.close()
    messages += tally.finish()
    _check_latency(tally, counting)
    publish_once(messages, settings, settings.read_topics())
    return tally


def _write_table(files: Sequence[Path], path: Path, counting: Counting) -> RequestTally:
    """Write the counts of files by period and type as CSV."""
    *_, tally = _read(files, counting)
    columns = tally.table()
    _check_latency(tally, counting)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in zip(*columns.values(), strict=True):
        writer.writerow("" if math.isnan(value) else f"{value:.12g}" for value in row)
    write_output(path, text.getvalue().encode())
    return tally


def _follow(
    path: Path,
    settings: Settings,
    counting: Counting,
    state: StateFile | None,
    metrics: tuple[str, int] | None,
) -> RequestTally:
    """Publish the requests that are appended to a file, until SIGINT or SIGTERM."""
    from agents.logs.log_follower import LogFollower
    from agents.publishing.delivery_metrics import delivery_samples
    from agents.publishing.message_queue import MessageQueue, Overflow
    from agents.publishing.page import metrics_page

    check_broker(settings)
    topics = settings.read_topics()
    outbox = MessageQueue(max_bytes=OUTBOX_BYTES, overflow=Overflow.KEEP)
    publisher = BackgroundPublisher(lambda: connect(settings, topics), outbox)
    with until_stopped() as stop, state.locked() if state else nullcontext():
        follower = LogFollower(path, counting, state, outbox, publisher.offer)
        publisher.start()
        try:
            with metrics_page(
                lambda: [
                    *follower.samples(),
                    *delivery_samples(publisher.delivery),
                    *publisher.tasks.samples(),
                ],
                metrics,
                settings.token,
                problem=lambda: publisher.tasks.problem() or follower.problem(),
            ):
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
