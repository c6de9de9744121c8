"""One answer to one event: checked against the store, and published."""

from __future__ import annotations

import getpass
import time
from contextlib import closing, suppress

import click

from agents.publishing.broker import publish_once, quiet_client
from pipeline.analysis.feedback import Reported
from pipeline.commands.options import settings_options
from pipeline.commands.request import Duration, Moment, argument, json_option, option, takes
from pipeline.commands.terminal import escape_controls
from pipeline.messages.inputs import decode_feedback, encode_feedback, feedback_message
from pipeline.model import Verdict, VerdictKind
from pipeline.model.clock import system_clock
from pipeline.model.errors import ConfigError, InvalidMessage
from pipeline.settings.config import Settings
from pipeline.stages.gather.reported import find_reported
from pipeline.stages.gather.verdicts import gather_verdicts
from pipeline.storage.connect import open_store
from pipeline.storage.interface import RowQuery, Store

_POLL_S = 0.2
_MOST_NAMED = 5


@click.command("ID")
@takes
def answer(
    event_id: str = argument(metavar=""),
    verdict: VerdictKind = argument(metavar="VERDICT"),
    change: str | None = argument(metavar="[CHANGE]"),
    other: str | None = option(flag="--of", metavar="ID", help="Event that reported a duplicate first."),
    until: float | None = option(kind=Moment("after"), help="End of an expected regression, or 30d."),
    comment: str = option("", metavar="TEXT", help="Explanation for others."),
    author: str | None = option(
        metavar="NAME", help="Author of the answer (default: the user of this machine)."
    ),
    wait: float | None = option(kind=Duration(), help="Longest wait until the answer is stored."),
    dry_run: bool = option(help="Publish nothing."),
    as_json: bool = json_option(help="Print the message."),
    settings: Settings = settings_options("broker", "topics", "idempotent_producer", "log_level", "store"),
) -> None:
    """Answer the event ID; its first digits will do. `cause` takes the change that did it."""
    if (change is None) == (verdict == "cause"):
        raise click.UsageError("'cause' takes a CHANGE, and it alone")
    if (other is None) == (verdict == "duplicate"):
        raise click.UsageError("'duplicate' takes --of ID, and it alone")
    with closing(open_store(settings.store, existing=True)) as store:
        reported = _the_event(store, event_id)
        subject = _the_event(store, other).id if other else _the_change(store, reported, change or "")
        message = Verdict(
            reported.id,
            reported.service,
            verdict,
            system_clock(),
            _user() if author is None else author,
            comment,
            subject,
            until,
        )
        _publish(message, settings, dry_run=dry_run)
        click.echo(encode_feedback(message).decode() if as_json else _line(message, reported))
        if wait is not None and not dry_run and not is_stored(store, message, wait):
            click.echo(f"published, and not stored within {wait:g} s: does aggregate run?", err=True)
            raise click.exceptions.Exit(1)


def is_stored(store: Store, said: Verdict, most_s: float) -> bool:
    """Wait until the store has a verdict, or a later one of the same author; False after ``most_s``."""
    deadline = time.monotonic() + most_s
    while True:
        verdicts = gather_verdicts(store, said.service, event=said.event)
        if any(verdict.author == said.author and verdict.time >= round(said.time, 3) for verdict in verdicts):
            return True
        if time.monotonic() >= deadline:
            return False
        time.sleep(_POLL_S)


def _publish(answer: Verdict, settings: Settings, *, dry_run: bool) -> None:
    message = feedback_message(answer)
    try:
        decode_feedback(message.value)
    except InvalidMessage as error:
        raise ConfigError(str(error)) from None
    if not dry_run:
        quiet_client(settings)
        publish_once([message], settings, settings.read_topics())


def _the_event(store: Store, prefix: str) -> Reported:
    """Return the one event whose id begins with ``prefix``."""
    events = find_reported(store, prefix) if prefix else []
    if len(events) == 1:
        return events[0]
    named = ", ".join(f"{event.id} of {event.service}" for event in events[:_MOST_NAMED])
    raise ConfigError(f"{prefix!r} could be {named}: give more of it" if events else f"no event {prefix!r}")


def _the_change(store: Store, reported: Reported, prefix: str) -> str:
    """Return the id of the one change of an event's service whose id begins so; empty for none asked."""
    if not prefix:
        return ""
    rows = store.rows(RowQuery("changes", reported.service, id_prefix=prefix))
    ids = sorted({row["id"] for row in rows})
    if prefix in ids:
        return prefix
    if len(ids) != 1:
        named = ", ".join(ids[:_MOST_NAMED])
        raise ConfigError(
            f"{prefix!r} could be {named}: give more of it"
            if ids
            else f"no change {prefix!r} of {reported.service} in the store"
        )
    return str(ids[0])


def _line(answer: Verdict, reported: Reported) -> str:
    about = {"duplicate": f" of {answer.subject}", "cause": f" is {answer.subject}"}.get(answer.verdict, "")
    return escape_controls(f"{answer.event}  {answer.service}  {reported.metric}  {answer.verdict}{about}")


def _user() -> str:
    with suppress(OSError, KeyError):
        return getpass.getuser()
    return ""
