"""``smidgen dlq``: what could not be used, why, and sending it once more."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import click
import orjson
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pipeline.clock import system_clock, to_iso
from pipeline.commands.events import DurationType
from pipeline.commands.options import settings_options
from pipeline.config import Settings
from pipeline.kafka import Broker
from pipeline.runtime.dlq import DeadLetter, Replay, Status, Survey, alone, survey
from pipeline.topics import Topic, Topics, load_topics

_DIGITS = re.compile(r"\d+(\.\d+)?")
_QUOTED = re.compile(r"'[^']*'")
_MAX_REASON = 100


@dataclass(frozen=True, slots=True)
class Filter:
    """Which dead letters are meant; None means any."""

    topic: str | None
    stage: str | None
    service: str | None
    reason: str | None
    since_s: float | None

    def takes(self, dead_letter: DeadLetter, topics: Topics, now: float) -> bool:
        """Return whether a dead letter is meant."""
        names = {
            dead_letter.topic,
            *(name for name, topic in topics.items() if topic.name == dead_letter.topic),
        }
        return (
            (self.topic is None or self.topic in names)
            and (self.stage is None or dead_letter.stage == self.stage)
            and (self.service is None or dead_letter.service == self.service)
            and (self.reason is None or self.reason in dead_letter.reason)
            and (self.since_s is None or dead_letter.time >= now - self.since_s)
        )


def filter_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the flags that choose dead letters."""
    for option in (
        click.option("--since", type=DurationType(), help="Only those of the last 2d, 30m, …"),
        click.option("--reason", metavar="TEXT", help="Only those whose reason has this text in it."),
        click.option("--service", metavar="S", help="Only those whose key names this service."),
        click.option("--stage", metavar="STAGE", help="Only those that this stage refused."),
        click.option("--topic", metavar="TOPIC", help="Only those from this topic."),
    ):
        command = option(command)
    return command


@click.group()
def dlq() -> None:
    """List dead letters, or send them to their topics once more after a fix."""


@dlq.command("list")
@filter_options
@click.option("--all", "replayed_too", is_flag=True, help="Those that were replayed, too.")
@click.option("--letters", is_flag=True, help="Each dead letter instead of a summary by reason.")
@click.option("--limit", type=click.IntRange(min=1), help="At most so many dead letters, the newest.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a dead letter.")
@settings_options("broker", "topics")
def list_letters(
    settings: Settings,
    topic: str | None,
    stage: str | None,
    service: str | None,
    reason: str | None,
    since: float | None,
    replayed_too: bool,
    letters: bool,
    limit: int | None,
    as_json: bool,
) -> None:
    """Show what is on the dead-letters topic and was not replayed: a summary by reason, or each of them."""
    topics = load_topics(settings.topics)
    found = asyncio.run(survey(Broker.of(settings), topics))
    wanted = _chosen(found, topics, Filter(topic, stage, service, reason, since), replayed_too=replayed_too)
    if limit is not None:
        wanted = sorted(wanted, key=lambda dead_letter: dead_letter.time)[-limit:]
    if as_json:
        for dead_letter in wanted:
            click.echo(
                orjson.dumps(_as_json(dead_letter, found.receipts.status(dead_letter.position), topics))
            )
    elif letters:
        console = Console(soft_wrap=True, highlight=False)
        for dead_letter in wanted:
            console.print(_line(dead_letter, found.receipts.status(dead_letter.position), topics))
    else:
        _summarise(wanted, topics)


@dlq.command("replay")
@filter_options
@click.option("--limit", type=click.IntRange(min=1), help="At most so many dead letters, the oldest.")
@click.option("--dry-run", is_flag=True, help="Only say what would be sent.")
@settings_options("broker", "topics", "idempotent_producer", "log_level", "log_format")
def replay_letters(
    settings: Settings,
    topic: str | None,
    stage: str | None,
    service: str | None,
    reason: str | None,
    since: float | None,
    limit: int | None,
    dry_run: bool,
) -> int:
    """Send dead letters to their topics once more, each exactly once however often this is run or killed.

    Exit 1 if some of those that were chosen cannot be sent: cut ones, and messages that a stage made.
    """
    topics = load_topics(settings.topics)
    wanted_of = Filter(topic, stage, service, reason, since)
    return asyncio.run(_replay(settings, topics, wanted_of, limit, dry_run=dry_run))


async def _replay(
    settings: Settings, topics: Topics, wanted_of: Filter, limit: int | None, *, dry_run: bool
) -> int:
    broker = Broker.of(settings)
    if dry_run:
        found = await survey(broker, topics)
        able, unable = _parted(_chosen(found, topics, wanted_of), topics, limit)
        _say_interrupted(found)
        _summarise(able, topics)
        click.echo(f"would send {_letters(len(able))}")
        return _say_unable(unable, topics)
    async with alone(broker, topics):
        found = await survey(broker, topics)
        able, unable = _parted(_chosen(found, topics, wanted_of), topics, limit)
        _say_interrupted(found)
        replay = Replay(
            broker, topics, found, name=uuid4().hex, idempotent=settings.idempotent_producer, progress=_report
        )
        sent = await replay.run(able)
        refused = [x for x in able if found.receipts.status(x.position) == "refused"]
    click.echo(f"sent {_letters(sent)}")
    for partition, offset in (dead_letter.position for dead_letter in refused):
        click.echo(f"not sent: letter {partition}/{offset} is too large for the broker", err=True)
    return max(_say_unable(unable, topics), int(bool(refused)))


def _report(batch: int) -> None:
    click.echo(f"… {_letters(batch)}", err=True)


def _chosen(found: Survey, topics: Topics, wanted: Filter, *, replayed_too: bool = False) -> list[DeadLetter]:
    now = system_clock()
    return [
        dead_letter
        for dead_letter in found.dead_letters
        if wanted.takes(dead_letter, topics, now)
        and (replayed_too or found.receipts.status(dead_letter.position) != "replayed")
    ]


def _parted(
    letters: Sequence[DeadLetter], topics: Topics, limit: int | None
) -> tuple[list[DeadLetter], list[DeadLetter]]:
    """Part dead letters into those that can be sent, the oldest of them, and those that cannot."""
    known = _by_name(topics)
    able = sorted((x for x in letters if not x.obstacle(known)), key=lambda dead_letter: dead_letter.time)
    return able[:limit], [dead_letter for dead_letter in letters if dead_letter.obstacle(known)]


def _say_interrupted(found: Survey) -> None:
    left = sum(map(len, found.receipts.interrupted().values()))
    if left:
        click.echo(f"an earlier replay was interrupted: its last {_letters(left)} come first", err=True)


def _say_unable(unable: Sequence[DeadLetter], topics: Topics) -> int:
    known = _by_name(topics)
    for dead_letter in unable:
        partition, offset = dead_letter.position
        click.echo(f"not sent: letter {partition}/{offset} {dead_letter.obstacle(known)}", err=True)
    return 1 if unable else 0


def _summarise(letters: Iterable[DeadLetter], topics: Topics) -> None:
    known = _by_name(topics)
    counts = Counter(
        (dead_letter.topic, dead_letter.stage, _kind(dead_letter.reason), not dead_letter.obstacle(known))
        for dead_letter in letters
    )
    if not counts:
        click.echo("no dead letters")
        return
    table = Table("letters", "topic", "stage", "reason", "replay")
    table.columns[0].justify = "right"
    for (topic, stage, reason, able), count in counts.most_common():
        table.add_row(str(count), Text(topic), Text(stage), Text(reason), "yes" if able else "no")
    Console(highlight=False).print(table)


def _kind(reason: str) -> str:
    """Leave out of a reason what differs from one message to the next."""
    return _DIGITS.sub("#", _QUOTED.sub("'…'", reason))[:_MAX_REASON]


def _line(dead_letter: DeadLetter, status: Status, topics: Topics) -> Text:
    (partition, offset), origin = dead_letter.position, dead_letter.origin
    obstacle = dead_letter.obstacle(_by_name(topics))
    end = {"open": "", "claimed": "  replay interrupted", "replayed": "  replayed", "refused": "  too large"}[
        status
    ]
    return Text.assemble(
        (f"{partition}/{offset}", "bold"),
        f"  {to_iso(dead_letter.time)}  {dead_letter.topic}/{origin[0]}/{origin[1]}  {dead_letter.stage}",
        f"  {dead_letter.service}  ",
        (dead_letter.reason, "yellow"),
        f"  ({obstacle})" if obstacle else "",
        end,
    )


def _as_json(dead_letter: DeadLetter, status: Status, topics: Topics) -> dict[str, Any]:
    return {
        **{
            "partition": dead_letter.position[0],
            "offset": dead_letter.position[1],
            "time": to_iso(dead_letter.time),
        },
        **{
            "topic": dead_letter.topic,
            "topic_partition": dead_letter.origin[0],
            "topic_offset": dead_letter.origin[1],
        },
        **{"stage": dead_letter.stage, "service": dead_letter.service, "reason": dead_letter.reason},
        **{"bytes": dead_letter.size, "status": status, "replayed_from": dead_letter.replayed_from},
        "obstacle": dead_letter.obstacle(_by_name(topics)),
    }


def _by_name(topics: Topics) -> dict[str, Topic]:
    return {topic.name: topic for topic in topics.values()}


def _letters(count: int) -> str:
    return f"{count} letter" if count == 1 else f"{count} letters"
