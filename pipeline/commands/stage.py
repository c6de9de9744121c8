"""``smidgen stage``: the positions of a stage in its topics, and moving them while no worker runs it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, closing, contextmanager
from dataclasses import asdict, dataclass

import click

from pipeline.commands.options import settings_options
from pipeline.commands.request import Moment, argument, json_option, option, takes
from pipeline.commands.tables import Column, print_rows
from pipeline.kafka import Broker, Publisher, cluster_id, require_topic_ids
from pipeline.model.clock import system_clock, to_iso
from pipeline.model.errors import ConfigError
from pipeline.model.units import counted
from pipeline.settings.config import Settings
from pipeline.settings.topics import Topics
from pipeline.stages.factory import STAGES
from pipeline.stages.gather.streams import (
    LOGGED_TOPICS,
    TopicIdentity,
    position_columns,
    stored_up_to,
    streams_of,
)
from pipeline.storage.connect import open_store
from pipeline.storage.interface import Store
from pipeline.worker.dlq import printable
from pipeline.worker.standing import Batch, Standing, batches, move_past, offsets_since, seat, standings

MOST_NAMED = 20
"""Most messages of a batch that are named one by one."""

_STAGE = argument(click.Choice(STAGES), metavar="STAGE")


@click.group()
def stage() -> None:
    """Show where a stage stands, have it skip messages, or go back.

    STAGE is aggregate, detect, releases, filter, dedup, rootcause or judge. Before it skips or goes back,
    stop the workers that run it: while one does, nothing is changed.
    """


@dataclass(frozen=True, slots=True)
class _Ledger:
    """Offsets that the store keeps for its topics; see Positioned.stored_up_to."""

    store: Store | None
    streams: Mapping[str, str]  # by topic (logical name); other topics use Kafka's commits

    def stored_up_to(self, topic: str, partitions: Sequence[int]) -> dict[int, int]:
        """Return the next offset, by partition."""
        if self.store is None or topic not in self.streams:
            return {}
        return stored_up_to(self.store, self.streams[topic], topic, partitions)

    def note(self, topic: str, partition: int, last: int) -> None:
        """Note the last finished offset."""
        if self.store is not None and topic in self.streams:
            columns = position_columns(self.streams[topic], topic, {partition: last}, system_clock())
            self.store.insert("positions", columns)


@stage.command()
@takes
def show(
    stage: str = _STAGE,
    as_json: bool = json_option("a partition"),
    settings: Settings = settings_options("broker", "store", "topics", "group_prefix"),
) -> None:
    """Show, of each partition that STAGE reads, what comes next and what is committed, stored and there.

    Offsets are of the message that comes next. Where the store has a say (aggregate), it decides.
    """
    broker, topics = Broker.of(settings), settings.read_topics()
    with _ledger(settings, broker, topics, stage) as ledger:
        positions = asyncio.run(standings(broker, topics, stage, ledger.stored_up_to))
    print_rows(_COLUMNS, positions, as_json=as_json, encode=_as_json)


@dataclass(frozen=True, slots=True)
class _SkipRequest:
    stage: str = _STAGE
    topic: str | None = option(
        metavar="TOPIC", help="Topic, by its name in topics.yaml, if the stage reads several."
    )
    partition: int = option(least=0, help="Partition of the messages.")
    messages: int = option(1, least=1, help="Number of messages.")
    reason: str = option("", metavar="TEXT", help="Reason that the dead letters give.")
    dry_run: bool = option(help="Name what would be skipped, and skip nothing.")


@stage.command()
@takes
def skip(
    request: _SkipRequest,
    settings: Settings = settings_options(
        *("broker", "store", "topics", "group_prefix", "idempotent_producer", "log_level", "log_format")
    ),
) -> None:
    """Make the next messages of a partition dead letters, and have STAGE go on after them.

    For messages at which its worker fails each time. Once that is mended, `smidgen dlq replay` sends them
    again. Of a scan in parts all go together.
    """
    broker, topics = Broker.of(settings), settings.read_topics()
    position = _topic_of(topics, request.stage, request.topic), request.partition
    with _ledger(settings, broker, topics, request.stage) as ledger:
        asyncio.run(_skip(settings, topics, ledger, position, request))


async def _skip(
    settings: Settings, topics: Topics, ledger: _Ledger, position: tuple[str, int], request: _SkipRequest
) -> None:
    broker, stage, total = Broker.of(settings), request.stage, 0
    reason = "skipped by hand" + (f": {request.reason}" if request.reason else "")
    publisher = Publisher(broker, topics, idempotent=settings.idempotent_producer)
    async with AsyncExitStack() as opened:
        held = None if request.dry_run else await opened.enter_async_context(seat(broker, topics, stage))
        start = await _start(broker, topics, stage, ledger, position)
        if held:
            await publisher.start()
            opened.push_async_callback(publisher.stop)
        async for batch in batches(broker, topics, position, start, request.messages):
            if held:
                await move_past(held, position, batch, reason, publisher, ledger.note, system_clock)
            total += _named(batch)
    if not total:
        raise ConfigError(f"{position[0]} partition {position[1]}: nothing to skip, {stage} is at its end")
    skipped = counted(total, "message")
    click.echo(f"skipped {skipped}: dead letters now" if held else f"would skip {skipped}")


async def _start(
    broker: Broker, topics: Topics, stage: str, ledger: _Ledger, position: tuple[str, int]
) -> int:
    for standing in await standings(broker, topics, stage, ledger.stored_up_to):
        if (standing.topic, standing.partition) == position:
            return standing.next
    raise ConfigError(f"{position[0]} has no partition {position[1]}")


@stage.command()
@takes
def rewind(
    stage: str = _STAGE,
    since: float = option(kind=Moment(), help="Time to go back to: 2d, 30m, or an ISO 8601 time."),
    partition: int | None = option(least=0, help="Partition to go back in (default: all; not of detect)."),
    service: str | None = option(metavar="S", help="Service whose scans are made again (of detect)."),
    workload: str | None = option(metavar="W", help="Workload whose scans are made again (of detect)."),
    dry_run: bool = option(help="Say how far the stage would go back, and change nothing."),
    settings: Settings = settings_options(
        "broker", "store", "topics", "group_prefix", "log_level", "log_format"
    ),
) -> None:
    """Have STAGE do again what it has done since a time; events have the ids that they had.

    filter, dedup and rootcause read again what came since then, and publish again what they published; judge
    and releases read again, and publish what they have not. detect
    makes the scans again that end since then, as the services' next samples come, and all stages judge them
    anew. aggregate counts each message once, so it cannot go back.
    """
    if stage == "aggregate":
        raise ConfigError(
            "aggregate counts each message once, so it cannot go back; to count again, see "
            "docs/operations.md, 'Backup, restore and counting again'"
        )
    if stage != "detect" and (service or workload):
        raise click.UsageError(f"--service and --workload are for detect; {stage} goes back by partition")
    if stage == "detect" and partition is not None:
        raise click.UsageError("--partition is not for detect: choose by --service and --workload")
    broker, topics = Broker.of(settings), settings.read_topics()
    if stage == "detect":
        asyncio.run(_rewind_scans(settings, topics, since, service, workload, dry_run=dry_run))
    else:
        asyncio.run(_rewind(broker, topics, stage, since, partition, dry_run=dry_run))


async def _rewind_scans(
    settings: Settings,
    topics: Topics,
    since: float,
    service: str | None,
    workload: str | None,
    *,
    dry_run: bool,
) -> None:
    broker = Broker.of(settings)
    with closing(open_store(settings.store, existing=True)) as store:
        count = store.count_scans(since, service, workload)
        if not dry_run and count:
            async with seat(broker, topics, "detect"):
                await asyncio.to_thread(store.forget_scans, since, service, workload)
    made = f"{'would make' if dry_run else 'makes'} {counted(count, 'scan')}"
    click.echo(f"detect {made} again, of those since {to_iso(since)}")


async def _rewind(
    broker: Broker, topics: Topics, stage: str, since: float, partition: int | None, *, dry_run: bool
) -> None:
    positions = [
        part
        for part in await standings(broker, topics, stage, lambda topic, partitions: {})
        if partition in (None, part.partition)
    ]
    if not positions:
        raise ConfigError(f"{stage} reads no partition {partition}")
    offsets = await offsets_since(broker, topics, positions, since)
    back = {
        (part.topic, part.partition): min(at, part.next) for part, at in zip(positions, offsets, strict=True)
    }
    if not dry_run:
        async with seat(broker, topics, stage) as held:
            await held.commit(back)
    for part in positions:
        to = back[part.topic, part.partition]
        oldest = ", the oldest that is kept" if to == part.first and to < part.next else ""
        click.echo(
            f"{part.topic} partition {part.partition}: {part.next - to} messages back, to {to}{oldest}"
        )
    total = sum(part.next - back[part.topic, part.partition] for part in positions)
    click.echo(f"{stage} {'would read' if dry_run else 'reads'} {counted(total, 'message')} again")


@contextmanager
def _ledger(settings: Settings, broker: Broker, topics: Topics, stage: str) -> Iterator[_Ledger]:
    """Open the offsets that the store keeps of a stage's topics: of aggregate's alone."""
    if stage != "aggregate":
        yield _Ledger(None, {})
        return
    cluster, ids = asyncio.run(_identities(broker, topics))
    with closing(open_store(settings.store, existing=True)) as store:
        yield _Ledger(store, streams_of(store, settings.stream or cluster, ids, None))


async def _identities(broker: Broker, topics: Topics) -> tuple[str, dict[str, TopicIdentity]]:
    names = {logical: topics[logical].name for logical in LOGGED_TOPICS}
    ids = await require_topic_ids(broker, names.values())
    return await cluster_id(broker), {
        logical: TopicIdentity(name, ids[name]) for logical, name in names.items()
    }


def _topic_of(topics: Topics, stage: str, topic: str | None) -> str:
    """Return the chosen topic of those that a stage reads."""
    names = topics.inputs(stage)
    if topic is None and len(names) == 1:
        return names[0]
    if topic not in names:
        raise click.UsageError(f"--topic: {stage} reads {', '.join(names)}: say which")
    return topic


def _named(batch: Batch) -> int:
    """Name the messages of a batch, and return their number."""
    entries = (*batch.messages, *batch.rest)
    for entry in entries[:MOST_NAMED]:
        key = printable((entry.key or b"").decode(errors="replace"))[:100]
        size = len(entry.value or b"")
        at = f"partition {entry.partition} offset {entry.offset}"
        click.echo(f"{at}  {to_iso(entry.timestamp)}  {key}  {size} bytes")
    if len(entries) > MOST_NAMED:
        click.echo(f"… and {len(entries) - MOST_NAMED} more, up to offset {entries[-1].offset}")
    return len(entries)


def _as_json(standing: Standing) -> dict[str, object]:
    return {**asdict(standing), "next": standing.next, "lag": standing.lag}


_COLUMNS: tuple[Column[Standing], ...] = (
    Column("topic"),
    Column("partition", form="d"),
    Column("next", form="d"),
    Column("committed", form="d"),
    Column("stored", form="d"),
    Column("oldest", "first", "d"),
    Column("end", form="d"),
    Column("lag", form="d"),
)
