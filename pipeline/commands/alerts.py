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
from pipeline.commands.terminal import escape_controls
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

_rules = click.option(
    "--rules",
    type=click.Path(path_type=Path),
    default=Path("alerts.yaml"),
    show_default=True,
    help="YAML file: targets, rules, and where secrets are (docs/alerts.md).",
)


@click.group(epilog=_EXAMPLES)
def alerts() -> None:
    """Send events of regressions and trials to chats, mailboxes, pagers, forges and trackers, each once."""


@alerts.command(epilog=_EXAMPLES)
@_rules
@click.option("--dry-run", is_flag=True, help="Print what would be sent; send and keep nothing.")
@click.option("--from-start", is_flag=True, help="Begin with the oldest event, if it is the first start.")
@click.option("--follow/--no-follow", default=True, help="Wait for more (a dry run may end with the newest).")
@settings_options("broker", "store", "topics", "group_prefix", "health", "log_level")
def run(settings: Settings, rules: Path, dry_run: bool, from_start: bool, follow: bool) -> None:
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
        for line in lines:
            click.echo(escape_controls(line))


@alerts.command(epilog=_EXAMPLES)
@_rules
@click.option("--target", "names", multiple=True, metavar="NAME", help="Only this target; may be repeated.")
@settings_options("log_level")
def test(settings: Settings, rules: Path, names: tuple[str, ...]) -> int:
    """Send a test message to every target, and exit with 1 if one did not take it."""
    loaded = load_rules(rules, os.environ)
    configure_logging(settings, loaded.secrets)
    for name in names:
        if name not in loaded.targets:
            raise click.UsageError(f"--target: no {name!r}; there are {', '.join(sorted(loaded.targets))}")
    results = asyncio.run(send_test(loaded, names or tuple(loaded.targets), system_clock()))
    for name, problem in results.items():
        click.echo(escape_controls(f"{name}: {problem or 'took it'}"))
    return int(any(results.values()))
