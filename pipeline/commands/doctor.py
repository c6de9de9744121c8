"""``smidgen doctor``: checks of everything that Smidgen depends on, with advice."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import click

from pipeline.commands.options import settings_options
from pipeline.commands.request import json_option, option, takes
from pipeline.commands.tables import Column, print_rows
from pipeline.kafka import (
    Broker,
    GroupFacts,
    TopicFacts,
    check_topics,
    cluster_id,
    group_facts,
    shard_lines,
    topic_facts,
)
from pipeline.model.clock import system_clock
from pipeline.model.errors import ConfigError, SmidgenError
from pipeline.model.units import counted, format_duration
from pipeline.settings.config import Settings, hidden
from pipeline.settings.topics import Topics
from pipeline.settings.workloads import load_workloads
from pipeline.storage.inspection import StoreFacts, inspect_store
from pipeline.views.report.unjudged import describe_unjudged

MAX_SKEW_S = 5.0
MAX_AHEAD_S = 60.0
QUIET_S = 900.0
MAX_LAG = 10_000
LITTLE_SPACE = 0.15
NO_SPACE = 0.05
WORKER_S = 10.0

_MOST_SHOWN = 5  # services in one line

Status = Literal["ok", "warn", "fail"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the table."""

    check: str
    status: Status
    detail: str
    advice: str = ""


_STYLES: dict[Status, str] = {"ok": "green", "warn": "yellow", "fail": "bold red"}
_COLUMNS: tuple[Column[Finding], ...] = (
    Column("check"),
    Column("", "status", style=lambda finding: _STYLES[finding.status]),
    Column("found", "detail"),
    Column("what to do", "advice"),
)


@click.command()
@takes
def doctor(
    max_lag: int = option(MAX_LAG, least=0, metavar="N", help="Messages that a stage may be behind."),
    worker: str | None = option(
        metavar="URL",
        help="Worker whose health endpoint is asked whether it is ready, instead of all checks.",
    ),
    as_json: bool = json_option("a check"),
    settings: Settings = settings_options("broker", "store", "topics", "group_prefix", "workloads"),
) -> int:
    """Check broker, topics, store, clocks, lag, dead letters and what agents need; exit 1 on a failure."""
    if worker is not None:
        findings = _without_secrets([ask_worker(worker, settings.token)], settings)
    else:
        load_workloads(settings.workloads)
        findings = [*diagnose(settings, max_lag), _py_spy()]
    print_rows(_COLUMNS, findings, as_json=as_json)
    return 1 if any(finding.status == "fail" for finding in findings) else 0


def diagnose(settings: Settings, max_lag: int = MAX_LAG) -> list[Finding]:
    """Check broker, topics, lag, dead letters, agents and store; findings hold no secret."""
    return _without_secrets([*_of_broker(settings, max_lag), *_of_store(settings)], settings)


def _without_secrets(findings: list[Finding], settings: Settings) -> list[Finding]:
    return [Finding(f.check, f.status, hidden(f.detail, settings.secrets()), f.advice) for f in findings]


def ask_worker(url: str, token: str | None) -> Finding:
    """Ask a worker's /ready.

    Raises:
        ConfigError: the URL is none.
    """
    address = url if "://" in url else f"http://{url}"
    if not address.startswith(("http://", "https://")):
        raise ConfigError(f"--worker: should be http://host:port, not {url!r}")
    request = urllib.request.Request(f"{address.rstrip('/')}/ready")
    if token is not None:
        # urllib writes headers in Latin-1, the worker reads tokens as UTF-8.
        request.add_header("Authorization", f"Bearer {token}".encode().decode("latin-1"))
    advice = "see its log"
    try:
        with urllib.request.urlopen(request, timeout=WORKER_S) as answer:
            return Finding("worker", "ok", f"{address} is ready ({answer.status})")
    except urllib.error.HTTPError as error:
        return Finding("worker", "fail", f"{address}: {_failing(error)}", advice)
    except (OSError, ValueError) as error:
        return Finding("worker", "fail", f"{address}: {getattr(error, 'reason', error)}", advice)


def _failing(error: urllib.error.HTTPError) -> str:
    try:
        checks = json.loads(error.read())["checks"]
        return "; ".join(f"{name}: {text}" for name, text in checks.items() if text != "ok")
    except (ValueError, KeyError, TypeError, AttributeError):
        return f"HTTP {error.code}"


def _of_broker(settings: Settings, max_lag: int) -> Iterator[Finding]:
    topics = settings.read_topics()
    broker = Broker.of(settings)
    try:
        name = asyncio.run(cluster_id(broker))
    except SmidgenError as error:
        yield Finding("broker", "fail", str(error), "start it, or correct broker and broker_security")
        return
    yield Finding("broker", "ok", f"{broker}, cluster {name}")
    yield from _checked("topics", lambda: _topics(broker, topics))
    yield from _checked("lag", lambda: _lag(broker, topics, max_lag))
    yield from _checked("dead letters", lambda: _dead_letters(broker, topics))
    yield from _checked("agents", lambda: _agents(broker, topics))


def _checked(check: str, ask: Callable[[], list[Finding]]) -> list[Finding]:
    """Turn a failed check into a finding, so that the next checks still run."""
    try:
        return ask()
    except ConfigError as error:  # it says what to do
        return [Finding(check, "fail", str(error))]
    except SmidgenError as error:
        return [Finding(check, "fail", str(error), "see the broker's log")]


def _topics(broker: Broker, topics: Topics) -> list[Finding]:
    differences = asyncio.run(check_topics(broker, topics))
    findings = [_difference(text) for text in differences] or [
        Finding("topics", "ok", f"{len(topics)} as in topics.yaml")
    ]
    return [*findings, *(Finding("shards", "ok", line) for line in shard_lines(topics))]


_PARTITIONS = re.compile(r": (\d+) partitions instead of (\d+)$")


def _difference(text: str) -> Finding:
    """Return the finding of one difference between a topic and topics.yaml."""
    if text.endswith(": missing"):
        return Finding("topics", "fail", text, "smidgen topics apply")
    if counts := _PARTITIONS.search(text):
        has, wanted = map(int, counts.groups())
        anew = "write what it has into topics.yaml, or make it anew if it is empty"
        return Finding("topics", "fail", text, "smidgen topics apply" if has < wanted else anew)
    return Finding("topics", "warn", text, "alter it on the broker, or topics.yaml")


def _lag(broker: Broker, topics: Topics, max_lag: int) -> list[Finding]:
    groups = {topics.group(stage): topics.inputs(stage) for stage in topics.stages}
    facts = asyncio.run(group_facts(broker, topics, groups))
    return [_behind(stage, facts[topics.group(stage)], max_lag) for stage in topics.stages]


def _behind(stage: str, facts: GroupFacts, max_lag: int) -> Finding:
    check, lag = f"lag of {stage}", sum(facts.lag.values())
    text = ", ".join(f"{name} {count}" for name, count in facts.lag.items())
    if facts.members == 0:
        return Finding(check, "warn", f"nobody works on it; {text}", f"smidgen worker {stage}")
    who = "1 process" if facts.members == 1 else f"{facts.members or 'unknown'} processes"
    if lag > max_lag:
        return Finding(check, "warn", f"{who}; {text}", f"start more of: smidgen worker {stage}")
    return Finding(check, "ok", f"{who}; {text}")


def _dead_letters(broker: Broker, topics: Topics) -> list[Finding]:
    count = asyncio.run(topic_facts(broker, topics, "dead-letters")).messages
    if count:
        text = f"{counted(count, 'message')} on the topic, receipts of replays included"
        return [Finding("dead letters", "warn", text, "smidgen dlq list")]
    return [Finding("dead letters", "ok", "none")]


def _agents(broker: Broker, topics: Topics) -> list[Finding]:
    facts: TopicFacts = asyncio.run(topic_facts(broker, topics, "profiles"))
    if facts.newest is None:
        return [Finding("agents", "warn", "no profiles are kept", "smidgen agent run")]
    age_s = system_clock() - facts.newest
    if age_s < -MAX_AHEAD_S:
        text = f"the newest profile is from {format_duration(round(-age_s))} ahead of this machine's clock"
        return [Finding("agents", "warn", text, "set the clocks by NTP, here and on the hosts")]
    text = f"newest profile {format_duration(max(0, round(age_s)))} ago"
    if age_s > QUIET_S:
        return [Finding("agents", "warn", text, "look whether agents run and reach the broker")]
    return [Finding("agents", "ok", text)]


def _of_store(settings: Settings) -> Iterator[Finding]:
    try:
        facts = inspect_store(settings.store, clock=system_clock)
    except SmidgenError as error:
        yield Finding("store", "fail", str(error), "start it, correct store, or: smidgen store migrate")
        return
    yield Finding("store", "ok", f"ClickHouse {facts.version}")
    yield _migrations(facts)
    yield _clock(facts)
    yield _names(facts)
    yield _scans(facts)
    if facts.free is None:
        yield Finding("disks", "warn", "the user may not see them", "GRANT SELECT ON system.disks")
    for name, share in (facts.free or {}).items():
        status: Status = "fail" if share < NO_SPACE else "warn" if share < LITTLE_SPACE else "ok"
        advice = "" if status == "ok" else "add space or shorten retention (docs/runbook.md)"
        yield Finding(f"disk {name}", status, f"{share:.0%} free", advice)


def _migrations(facts: StoreFacts) -> Finding:
    if facts.unknown:
        newest = f"{facts.unknown[-1]:04d}"
        return Finding("tables", "warn", f"newer than this version knows ({newest})", "upgrade Smidgen here")
    if facts.missing:
        return Finding("tables", "warn", f"not applied: {', '.join(facts.missing)}", "smidgen store migrate")
    return Finding("tables", "ok", "up to date")


def _clock(facts: StoreFacts) -> Finding:
    text = f"{facts.skew_s:+.1f} s against this machine, measured to {facts.round_trip_s / 2:.1f} s"
    if abs(facts.skew_s) > MAX_SKEW_S + facts.round_trip_s:
        return Finding("clock of the store", "warn", text, "set the clocks by NTP, here and there")
    return Finding("clock of the store", "ok", text)


def _names(facts: StoreFacts) -> Finding:
    if not facts.unstable:
        return Finding("names", "ok", "none is made anew by every process")
    shown = ", ".join(f"{service} {most}" for service, most in list(facts.unstable.items())[:_MOST_SHOWN])
    more = f" and {len(facts.unstable) - _MOST_SHOWN} more" if len(facts.unstable) > _MOST_SHOWN else ""
    text = f"made anew by every process: {shown}{more}"
    return Finding("names", "warn", text, "give patterns for them in a names file (docs/names.md)")


def _scans(facts: StoreFacts) -> Finding:
    if not facts.unjudged:
        return Finding("scans", "ok", "every service's last scan had data enough")
    shown = "; ".join(
        f"{row.service} by {row.workload}: {describe_unjudged(row.unjudged)} "
        f"({row.scans} of {row.made} scans of a day)"
        for row in facts.unjudged[:_MOST_SHOWN]
    )
    more = f"; {len(facts.unjudged) - _MOST_SHOWN} more" if len(facts.unjudged) > _MOST_SHOWN else ""
    text = f"could not judge: {shown}{more}"
    return Finding("scans", "warn", text, "wait, or see docs/runbook.md, scans that could not judge")


def _py_spy() -> Finding:
    path = shutil.which("py-spy", path=str(Path(sys.executable).parent)) or shutil.which("py-spy")
    if path is None:
        return Finding("py-spy", "warn", "not found", "pip install py-spy, where agents run")
    scope = Path("/proc/sys/kernel/yama/ptrace_scope")
    free = not scope.exists() or scope.read_text().strip() == "0"
    if os.geteuid() == 0 or free:
        return Finding("py-spy", "ok", "may sample any process of this user")
    advice = "root, CAP_SYS_PTRACE or kernel.yama.ptrace_scope=0 for agent run --pid (docs/agent.md)"
    return Finding("py-spy", "warn", "may sample only programs that the agent starts", advice)
