"""``smidgen dlq``: dead letters, their reasons, and sending them once more."""

from __future__ import annotations

import asyncio
import math
import re
from collections import Counter
from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import click
from rich.text import Text

from pipeline.commands.options import settings_options
from pipeline.commands.request import Duration, json_option, option, takes
from pipeline.commands.tables import print_json, print_table, text_columns
from pipeline.commands.terminal import print_styled
from pipeline.kafka import Broker
from pipeline.model.clock import system_clock, to_iso
from pipeline.model.units import counted
from pipeline.settings.config import Settings
from pipeline.settings.topics import Topics
from pipeline.worker.dlq import DeadLetter, Replay, Status, Survey, alone, survey

_DIGITS = re.compile(r"\d+(\.\d+)?")
_QUOTED = re.compile(r"'[^']*'")
_MAX_REASON = 100


@dataclass(frozen=True, slots=True)
class Filter:
    """Choice of dead letters; None means any."""

    topic: str | None = option(metavar="TOPIC", help="Only those from this topic.")
    stage: str | None = option(metavar="STAGE", help="Only those that this stage refused.")
    service: str | None = option(metavar="S", help="Only those whose key names this service.")
    reason: str | None = option(metavar="TEXT", help="Only those whose reason contains this text.")
    since: float | None = option(kind=Duration(), help="Only those of the last 2d, 30m, …")

    def chosen(self, found: Survey, topics: Topics, *, replayed_too: bool = False) -> list[DeadLetter]:
        """Return the chosen dead letters."""
        oldest = -math.inf if self.since is None else system_clock() - self.since
        names = {self.topic, topics[self.topic].name if self.topic and self.topic in topics else None}
        return [
            dead_letter
            for dead_letter in found.dead_letters
            if (self.topic is None or dead_letter.topic in names)
            and (self.stage is None or dead_letter.stage == self.stage)
            and (self.service is None or dead_letter.service == self.service)
            and (self.reason is None or self.reason in dead_letter.reason)
            and dead_letter.time >= oldest
            and (replayed_too or found.receipts.status(dead_letter.position) != "replayed")
        ]


@click.group()
def dlq() -> None:
    """List dead letters, or send them to their topics once more after a fix."""


@dlq.command("list")
@takes
def list_dead_letters(
    wanted: Filter,
    replayed_too: bool = option(flag="--all", help="Include dead letters that were replayed."),
    separately: bool = option(flag="--letters", help="List each dead letter instead of a summary by reason."),
    limit: int | None = option(least=1, help="Most dead letters; the newest are taken."),
    as_json: bool = json_option("a dead letter"),
    settings: Settings = settings_options("broker", "topics"),
) -> None:
    """Show what is on the dead-letters topic and was not replayed: a summary by reason, or each of them."""
    topics = settings.read_topics()
    dead_letters = asyncio.run(survey(Broker.of(settings), topics, _key(settings)))
    chosen = wanted.chosen(dead_letters, topics, replayed_too=replayed_too)
    if limit is not None:
        chosen = sorted(chosen, key=lambda dead_letter: dead_letter.time)[-limit:]
    if not (as_json or separately):
        _summarise(chosen, topics)
        return
    for dead_letter in chosen:
        status = dead_letters.receipts.status(dead_letter.position)
        obstacle = dead_letter.obstacle(topics.by_name)
        if as_json:
            print_json(_as_json(dead_letter, status, obstacle))
        else:
            print_styled([_line(dead_letter, status, obstacle)])


@dlq.command("replay")
@takes
def replay_dead_letters(
    wanted: Filter,
    limit: int | None = option(least=1, help="Most dead letters; the oldest are taken."),
    dry_run: bool = option(help="Say what would be sent, and send nothing."),
    unsigned: bool = option(help="Include dead letters whose receipt lacks our signature."),
    settings: Settings = settings_options(
        "broker", "topics", "group_prefix", "idempotent_producer", "log_level", "log_format"
    ),
) -> int:
    """Send dead letters to their topics once more, each exactly once however often this is run or killed.

    Exit 1 if some of those that were chosen cannot be sent: cut ones, and messages that a stage made.
    """
    return asyncio.run(_replay(settings, wanted, limit, dry_run=dry_run, unsigned=unsigned))


async def _replay(
    settings: Settings, wanted: Filter, limit: int | None, *, dry_run: bool, unsigned: bool
) -> int:
    broker, topics = Broker.of(settings), settings.read_topics()
    if not dry_run and not await _something_to_send(broker, topics, wanted, _key(settings)):
        click.echo("sent 0 dead letters")
        return 0
    async with nullcontext() if dry_run else alone(broker, topics):
        dead_letters = await survey(broker, topics, _key(settings))
        chosen = wanted.chosen(dead_letters, topics)
        unable = {dead_letter: why for dead_letter in chosen if (why := dead_letter.obstacle(topics.by_name))}
        if not unsigned:
            doubtful = (
                message for message in chosen if dead_letters.receipts.status(message.position) == "unsigned"
            )
            unable |= dict.fromkeys(doubtful, "has a receipt that is not signed; --unsigned sends it")
        able = sorted(
            (dead_letter for dead_letter in chosen if dead_letter not in unable),
            key=lambda dead_letter: dead_letter.time,
        )
        able = able[:limit]
        if left := sum(map(len, dead_letters.receipts.interrupted().values())):
            click.echo(f"an earlier replay was interrupted: its last {_counted(left)} come first", err=True)
        if dry_run:
            _summarise(able, topics)
            click.echo(f"would send {_counted(len(able))}")
        else:
            name, idempotent = uuid4().hex, settings.idempotent_producer
            replay = Replay(broker, topics, dead_letters, name=name, idempotent=idempotent, progress=_report)
            click.echo(f"sent {_counted(await replay.run(able))}")
            for dead_letter in able:
                if dead_letters.receipts.status(dead_letter.position) == "refused":
                    unable[dead_letter] = "is too large for the broker"
    for dead_letter, why in unable.items():
        click.echo(f"not sent: dead letter {_position(dead_letter)} {why}", err=True)
    return 1 if unable else 0


async def _something_to_send(broker: Broker, topics: Topics, wanted: Filter, key: str | None) -> bool:
    """Return whether waiting for the end of other replays, which takes seconds, is worth it."""
    dead_letters = await survey(broker, topics, key)
    return bool(wanted.chosen(dead_letters, topics) or dead_letters.receipts.interrupted())


def _key(settings: Settings) -> str | None:
    return settings.receipt_key.get_secret_value() if settings.receipt_key else None


def _report(batch: int) -> None:
    click.echo(f"… {_counted(batch)}", err=True)


def _summarise(dead_letters: Iterable[DeadLetter], topics: Topics) -> None:
    counts = Counter(
        (
            dead_letter.topic,
            dead_letter.stage,
            _kind(dead_letter.reason),
            "no" if dead_letter.obstacle(topics.by_name) else "yes",
        )
        for dead_letter in dead_letters
    )
    if not counts:
        click.echo("no dead letters")
        return
    columns = text_columns(("dead letters", "topic", "stage", "reason", "replay"), numbers=(0,))
    print_table(columns, [(str(count), *kind) for kind, count in counts.most_common()])


def _kind(reason: str) -> str:
    """Remove from a reason the parts that differ between messages."""
    return _DIGITS.sub("#", _QUOTED.sub("'…'", reason))[:_MAX_REASON]


def _line(dead_letter: DeadLetter, status: Status, obstacle: str) -> Text:
    origin = f"{dead_letter.topic}/{dead_letter.origin[0]}/{dead_letter.origin[1]}"
    end = {
        **{"open": "", "claimed": "  replay interrupted", "replayed": "  replayed", "refused": "  too large"},
        "unsigned": "  its receipt is not signed",
    }
    return Text.assemble(
        (_position(dead_letter), "bold"),
        f"  {to_iso(dead_letter.time)}  {origin}  {dead_letter.stage}  {dead_letter.service}  ",
        (dead_letter.reason, "yellow"),
        f"  ({obstacle})" if obstacle else "",
        end[status],
    )


def _as_json(dead_letter: DeadLetter, status: Status, obstacle: str) -> dict[str, Any]:
    return {
        "partition": dead_letter.position[0],
        "offset": dead_letter.position[1],
        "time": to_iso(dead_letter.time),
        "topic": dead_letter.topic,
        "topic_partition": dead_letter.origin[0],
        "topic_offset": dead_letter.origin[1],
        "stage": dead_letter.stage,
        "service": dead_letter.service,
        "reason": dead_letter.reason,
        "bytes": dead_letter.size,
        "status": status,
        "replayed_from": dead_letter.replayed_from,
        "obstacle": obstacle,
    }


def _position(dead_letter: DeadLetter) -> str:
    """Return the partition and the offset of a dead letter."""
    return "/".join(map(str, dead_letter.position))


def _counted(count: int) -> str:
    return counted(count, "dead letter")
