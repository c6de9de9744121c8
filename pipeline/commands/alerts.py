"""``smidgen alerts``: sends events of regressions and trials to people and their tools."""

from __future__ import annotations

import asyncio
import logging
import os
from contextlib import AsyncExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipeline.commands.options import configure_logging, settings_options
from pipeline.commands.request import option, takes
from pipeline.commands.terminal import print_lines
from pipeline.delivery.alerts import (
    AlertRules,
    AlertWorker,
    Desk,
    DryRun,
    Http,
    Record,
    load_rules,
    send_test,
)
from pipeline.kafka import Broker, read_topics
from pipeline.model.clock import system_clock
from pipeline.model.errors import InvalidMessage
from pipeline.processes import stop_event
from pipeline.settings.config import Settings
from pipeline.storage.connect import open_store
from pipeline.storage.interface import Store

if TYPE_CHECKING:
    from pipeline.worker.health import HealthServer

log = logging.getLogger(__name__)

_EXAMPLES = """\b
Examples:
  smidgen alerts test --rules alerts.yaml
  smidgen alerts run --rules alerts.yaml --dry-run --from-start --no-follow
  smidgen alerts run --rules alerts.yaml
"""

_rules = option(
    Path("alerts.yaml"), help="YAML file of targets, rules, and places of secrets (docs/alerts.md)."
)


@click.group(epilog=_EXAMPLES)
def alerts() -> None:
    """Send events of regressions and trials to chats, mailboxes, pagers, forges and trackers, each once."""


@alerts.command(epilog=_EXAMPLES)
@takes
def run(
    rules: Path = _rules,
    dry_run: bool = option(help="Print what would be sent, and send and store nothing."),
    from_start: bool = option(help="Begin with the oldest event at the first start."),
    follow: bool = option(
        True, flag="--follow/--no-follow", help="Wait for more events; a dry run may end with the newest."
    ),
    settings: Settings = settings_options("broker", "store", "topics", "group_prefix", "health", "log_level"),
) -> None:
    """Send alerts until Ctrl-C. Several processes share the work; a restart sends nothing twice."""
    if not (follow or dry_run):
        raise click.UsageError("--no-follow: only of a dry run")
    loaded = load_rules(rules, os.environ)  # secrets, which are no settings
    configure_logging(settings, loaded.secrets)
    if dry_run:
        asyncio.run(_dry_run(DryRun(loaded), settings, from_start=from_start, follow=follow))
        return
    with closing(open_store(settings.store)) as store:
        store.migrate()
        asyncio.run(_run(loaded, settings, store, from_start=from_start))


async def _run(rules: AlertRules, settings: Settings, store: Store, *, from_start: bool) -> None:
    stop = stop_event()
    http = Http()
    desk = Desk(rules, Record(store), http, system_clock)
    worker = AlertWorker(desk, Broker.of(settings), settings.read_topics(), from_start=from_start)
    async with AsyncExitStack() as running:
        running.push_async_callback(http.close)
        if settings.health:
            running.push_async_callback((await _watched(worker, settings, store)).stop)
        await worker.run(stop)


async def _watched(worker: AlertWorker, settings: Settings, store: Store) -> HealthServer:
    """Serve /live, /ready and /metrics as workers of stages do."""
    # Loaded here: Faust comes with it, which alerts themselves do not need.
    from pipeline.worker import BrokerCheck, Check, StoreCheck
    from pipeline.worker.health import Health, HealthServer, health_address

    checks: dict[str, Check] = {"broker": BrokerCheck(Broker.of(settings)), "store": StoreCheck(store)}
    health = Health([worker], checks, token=settings.token)
    server = HealthServer(health, *health_address(settings.health, settings.token))
    log.info("health: %s", await server.start())
    return server


async def _dry_run(dry: DryRun, settings: Settings, *, from_start: bool, follow: bool) -> None:
    all_topics = settings.read_topics()
    topics = [all_topics[source] for source in dry.sources]
    entries = read_topics(Broker.of(settings), topics, from_start=from_start or not follow, follow=follow)
    async for entry in entries:
        try:
            lines = list(dry.lines(entry, system_clock()))
        except (InvalidMessage, KeyError, TypeError, ValueError) as error:
            click.echo(f"partition {entry.partition} offset {entry.offset}: no event: {error!r}", err=True)
            continue
        print_lines(lines)


@alerts.command("test", epilog=_EXAMPLES)
@takes
def send_tests(
    rules: Path = _rules,
    names: tuple[str, ...] = option(
        flag="--target", metavar="NAME", help="Target to send to (default: all)."
    ),
    settings: Settings = settings_options("log_level"),
) -> int:
    """Send a test message to every target, and exit with 1 if one did not take it."""
    loaded = load_rules(rules, os.environ)
    configure_logging(settings, loaded.secrets)
    for name in names:
        if name not in loaded.targets:
            raise click.UsageError(f"--target: no {name!r}; there are {', '.join(sorted(loaded.targets))}")
    results = asyncio.run(send_test(loaded, names or tuple(loaded.targets), system_clock()))
    print_lines(f"{name}: {problem or 'took it'}" for name, problem in results.items())
    return int(any(results.values()))
