"""``smidgen worker``: runs stages of the pipeline."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Sequence

import click

from pipeline.clock import system_clock
from pipeline.commands.options import settings_options
from pipeline.config import Settings
from pipeline.errors import ConfigError
from pipeline.runtime.admin import require_topics
from pipeline.runtime.identity import cluster_id
from pipeline.runtime.service import Service
from pipeline.stages.base import Stage
from pipeline.stages.factory import STAGES, build_stage
from pipeline.storage.connect import open_store
from pipeline.storage.interface import Store
from pipeline.telemetry import RepeatFilter
from pipeline.topics import Topics, load_topics
from pipeline.units import format_duration
from pipeline.workloads import Workload, load_workloads


class StageName(click.ParamType):
    """A stage, or ``all``."""

    name = "stage"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Refuse what is not a stage."""
        if value != "all" and value not in STAGES:
            self.fail(f"unknown stage {value!r}; stages are {', '.join(STAGES)}, or all", param, ctx)
        return value


@click.command()
@click.argument("stages", metavar="STAGE...", nargs=-1, required=True, type=StageName())
@settings_options(
    "broker",
    "store",
    "topics",
    "workloads",
    "window",
    "stack_window",
    "batch_size",
    "batch_wait",
    "partition_idle",
    "idempotent_producer",
    "log_level",
)
def worker(stages: tuple[str, ...], settings: Settings) -> int:
    """Run stages (aggregate, detect, filter, dedup, rootcause, or all) until SIGTERM or Ctrl-C."""
    for handler in logging.getLogger().handlers:
        handler.addFilter(RepeatFilter("aiokafka", "faust", "mode"))
    names = STAGES if "all" in stages else tuple(name for name in STAGES if name in stages)
    topics = load_topics(settings.topics)
    workloads = load_workloads(settings.workloads)
    if "detect" in names:
        _check_windows(settings, workloads)
    cluster = asyncio.run(_check_broker(settings.broker, topics))
    stream = settings.stream or cluster
    stores: list[Store] = []
    try:
        for _ in names:  # one connection a stage: each works in a thread of its own
            stores.append(open_store(settings.store))
        stores[0].migrate()
        built = [
            build_stage(
                name, settings=settings, workloads=workloads, store=store, stream=stream, clock=system_clock
            )
            for name, store in zip(names, stores, strict=True)
        ]
        return asyncio.run(_run(settings, topics, built))
    finally:
        for store in stores:
            store.close()


def _check_windows(settings: Settings, workloads: Sequence[Workload]) -> None:
    """Check that the counted windows are fine enough for what looks at them.

    Raises:
        ConfigError: a workload would see gaps where there is data, or find no stacks after a change.
    """
    for workload in workloads:
        if workload.series != "gcpu":
            continue
        windows = workload.resolution_s / settings.window_s
        if windows < 1 or windows != round(windows):
            raise ConfigError(
                f"window: {format_duration(settings.window_s)} does not divide the resolution of workload "
                f"{workload.name}, {format_duration(workload.resolution_s)}"
            )
        least_s = 2 * workload.resolution_s + workload.extended_s
        if settings.stack_window_s > least_s:
            raise ConfigError(
                f"stack_window: {format_duration(settings.stack_window_s)} is longer than what workload "
                f"{workload.name} may see after a change, {format_duration(least_s)}"
            )


async def _check_broker(broker: str, topics: Topics) -> str:
    await require_topics(broker, topics)
    return await cluster_id(broker)


async def _run(settings: Settings, topics: Topics, stages: Sequence[Stage]) -> int:
    service = Service(settings, topics, stages, system_clock)
    code = await service.run()
    if service.hanging:  # a thread that waits for the store cannot be ended; its batch is unacknowledged
        logging.shutdown()
        os._exit(code)
    return code
