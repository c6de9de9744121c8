"""The whole pipeline on this machine: broker, store, topics, tables and stages, as processes of one group."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pipeline.kafka import apply_topics, as_broker
from pipeline.processes import Group, smidgen_command
from pipeline.settings.topics import Topics

START_S = 60.0
"""How long a process may take until it says that it is ready."""

_HURRY = ("--batch-wait", "300ms", "--partition-idle", "10s")
"""For windows of seconds: batches that do not wait for more, partitions that are soon let go of."""


@dataclass(frozen=True, slots=True)
class PipelineOptions:
    """What runs: ``workers`` are the stages of each process, ``arguments`` what each worker gets besides."""

    topics: Topics
    workloads: tuple[str, ...]
    workers: tuple[tuple[str, ...], ...]
    data: Path | None = None
    arguments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where broker and store are."""

    broker: str
    store: str


def _ignored(_: object) -> None:
    return


async def start_pipeline(
    processes: Group,
    options: PipelineOptions,
    *,
    on_step: Callable[[str], object] = _ignored,
    on_ready: Callable[[Sequence[str]], object] = _ignored,
) -> Addresses:
    """Start everything, and return when every stage has its partitions.

    Args:
        processes: the group that watches and stops what is started.
        options: what runs.
        on_step: called with what is being done.
        on_ready: called with the stages of each worker that is ready.

    Raises:
        ChildFailed: a process was not ready within START_S.
        BrokerUnavailable: the broker did not take the topics.
    """
    on_step("starting the broker and the store")
    data = ("--data", str(options.data.resolve())) if options.data else ()
    embedded = await processes.start("embedded", smidgen_command("embedded", *data))
    found = json.loads(await embedded.line("{", START_S))
    addresses = Addresses(found["broker"], found["store"])
    on_step("making topics")
    await apply_topics(as_broker(addresses.broker), options.topics)
    on_step("starting the stages")
    chosen = [word for name in options.workloads for word in ("--workloads", name)]
    where = ("--broker", addresses.broker, "--store", addresses.store, *chosen, *_HURRY)
    workers = [
        await processes.start(
            "-".join(stages), smidgen_command("worker", *stages, *where, *options.arguments)
        )
        for stages in options.workers
    ]
    for stages, worker in zip(options.workers, workers, strict=True):
        await worker.line("ready: ", START_S)
        on_ready(stages)
    return addresses


async def start_dashboard(
    processes: Group, addresses: Addresses, workloads: Sequence[str], *, port: int = 0
) -> str:
    """Start the dashboard of a pipeline, on which everybody on this machine may answer; return its address.

    Raises:
        ChildFailed: it did not listen within START_S.
    """
    where = ("--broker", addresses.broker, "--store", addresses.store, "--port", str(port), "--triage", "*")
    chosen = [word for name in workloads for word in ("--workloads", name)]
    dashboard = await processes.start("dashboard", smidgen_command("dashboard", *where, *chosen))
    return (await dashboard.line("http://", START_S)).split()[0]
