"""``smidgen worker``: runs stages of the pipeline."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from functools import partial

import click

from pipeline.analysis.detect.idleness import Readings
from pipeline.commands.options import settings_options
from pipeline.commands.request import argument, takes
from pipeline.kafka import (
    Broker,
    cluster_id,
    require_described,
    require_groups,
    require_topic_ids,
    require_topics,
)
from pipeline.model.clock import system_clock
from pipeline.model.units import DAY_S, format_duration
from pipeline.processes.allocation import keep_freed_memory
from pipeline.settings.config import Settings
from pipeline.settings.names import read_namings
from pipeline.settings.topics import Topics
from pipeline.settings.windows import check_windows, fitted_windows
from pipeline.settings.workloads import Workload, load_workloads
from pipeline.stages.factory import STAGES, StageNeeds, build_stage
from pipeline.stages.gather.streams import LOGGED_TOPICS, TopicIdentity, streams_of
from pipeline.storage.connect import open_store
from pipeline.storage.interface import RowQuery, Store
from pipeline.telemetry.metrics import RepeatFilter
from pipeline.worker import BrokerCheck, Check, Service, StoreCheck, health_address

log = logging.getLogger(__name__)

KNOWN_S = 2 * DAY_S
"""Age of a service's last scan up to which the service is known."""

_ASKING = frozenset({"detect", "releases"})
"""Stages that ask for the progress of aggregate."""


class StageName(click.ParamType):
    """A stage, or ``all``."""

    name = "stage"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Refuse names that are no stage."""
        if value != "all" and value not in STAGES:
            self.fail(f"unknown stage {value!r}; stages are {', '.join(STAGES)}, or all", param, ctx)
        return value


@click.command()
@takes
def worker(
    stages: tuple[str, ...] = argument(StageName(), required=True, metavar="STAGE..."),
    settings: Settings = settings_options(
        "broker",
        "store",
        "topics",
        "group_prefix",
        "instance",
        "workloads",
        "names",
        "window",
        "stack_window",
        "batch_size",
        "batch_wait",
        "partition_idle",
        "idempotent_producer",
        "dead_letter_limit",
        "drain",
        "health",
        "log_level",
        "log_format",
    ),
) -> int:
    """Run stages until SIGTERM or Ctrl-C.

    They are aggregate, detect, releases, filter, dedup, rootcause and judge; all is every one of them.
    """
    keep_freed_memory()
    for handler in logging.getLogger().handlers:
        handler.addFilter(RepeatFilter("aiokafka", "faust", "mode"))
    if settings.health:  # a mistake in it is reported before any waiting
        health_address(settings.health, settings.token)
    names = STAGES if "all" in stages else tuple(name for name in STAGES if name in stages)
    topics = settings.read_topics()
    workloads = load_workloads(settings.workloads)
    read_namings(settings.names)
    settings = _with_windows(settings, workloads, checked="detect" in names)
    broker = Broker.of(settings)
    cluster, ids = asyncio.run(_check_broker(broker, topics, names))
    with ExitStack() as opened:
        # One connection for each stage, which works in a thread of its own, and one for the checks.
        connections = len(names) + bool(settings.health)
        stores = [opened.enter_context(closing(open_store(settings.store))) for _ in range(connections)]
        stores[0].migrate()
        streams = streams_of(stores[0], settings.stream or cluster, ids, system_clock())
        readings = Readings() if _ASKING.intersection(names) else None
        built = [
            build_stage(
                name,
                StageNeeds(
                    settings=settings,
                    workloads=workloads,
                    store=store,
                    streams=streams,
                    clock=system_clock,
                    readings=readings,
                ),
            )
            for name, store in zip(names, stores, strict=False)
        ]
        checks: dict[str, Check] = {"broker": BrokerCheck(broker), "store": StoreCheck(stores[-1])}
        expected = _known_services(stores[0]) if "aggregate" in names else frozenset()
        keeps_offsets = not _ASKING.union({"aggregate"}).isdisjoint(names)
        known_ids = {found.name: found.id for found in ids.values()} if keeps_offsets else {}
        make = partial(
            Service,
            settings,
            topics,
            built,
            system_clock,
            checks=checks,
            expected=expected,
            topic_ids=known_ids,
            readings=readings,
        )
        return asyncio.run(_run(make))


def _with_windows(settings: Settings, workloads: Sequence[Workload], *, checked: bool) -> Settings:
    """Return the settings with the windows that the workloads need, and report other than default ones."""
    fitted = fitted_windows(settings, workloads)
    if checked:
        check_windows(fitted, workloads)
    if (fitted.window_s, fitted.stack_window_s) != (settings.window_s, settings.stack_window_s):
        widths = map(format_duration, (fitted.window_s, fitted.stack_window_s))
        log.info("window %s and stack_window %s, as the workloads need; see docs/configuration.md", *widths)
    return fitted


async def _check_broker(
    broker: Broker, topics: Topics, stages: Sequence[str]
) -> tuple[str, dict[str, TopicIdentity]]:
    """Return the cluster's id, and the topics whose messages are counted."""
    await require_topics(broker, topics, {*topics.touched_by(stages), *LOGGED_TOPICS})
    await require_groups(broker, [topics.group(stage) for stage in stages])
    if _ASKING.intersection(stages):
        await require_described(broker, [topics.group("aggregate")])
    names = {logical: topics[logical].name for logical in LOGGED_TOPICS}
    ids = await require_topic_ids(broker, names.values())
    identities = {logical: TopicIdentity(name, ids[name]) for logical, name in names.items()}
    return await cluster_id(broker), identities


def _known_services(store: Store) -> frozenset[str]:
    """Return the services that were scanned lately, whose messages were usable."""
    now = system_clock()
    return frozenset(str(row["service"]) for row in store.rows(RowQuery("scans", None, now - KNOWN_S, now)))


async def _run(make: Callable[[], Service]) -> int:
    service = make()
    code = await service.run()
    if service.hanging:  # a thread that waits for the store cannot be ended; its batch is unacknowledged
        logging.shutdown()
        os._exit(code)
    return code
