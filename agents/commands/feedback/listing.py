"""The list of answered events: what was said of each, by whom, and whether what was called fixed is gone."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from typing import Any, get_args

import click
import orjson

from pipeline.analysis.feedback import FixState, original_of
from pipeline.commands.options import Moment, settings_options
from pipeline.commands.terminal import escape_controls
from pipeline.messages.fields import EARLIEST_S
from pipeline.model import Verdict, VerdictKind
from pipeline.model.clock import to_iso
from pipeline.settings.config import Settings
from pipeline.settings.workloads import known_workloads
from pipeline.stages.gather.reported import Answered, gather_answered, gather_fixes
from pipeline.storage.connect import open_store

_FIXES = {"waiting": "not seen yet", "confirmed": "it is gone", "contradicted": "it is still there"}


@click.command("list")
@click.option("--service", metavar="S", help="Its events (default: of every service).")
@click.option("--since", type=Moment(), default=EARLIEST_S, help="Change times since then: 30d, or ISO 8601.")
@click.option(
    "--verdict", "wanted", type=click.Choice(get_args(VerdictKind)), metavar="V", help="Those of this state."
)
@click.option("--json", "as_json", is_flag=True, help="One event a line.")
@settings_options("store", "workloads")
def listing(settings: Settings, service: str | None, since: float, wanted: str | None, as_json: bool) -> None:
    """List what people said of events; duplicates stand in the line of the event that reported first."""
    with closing(open_store(settings.store, existing=True)) as store:
        answered = gather_answered(store, service, since)
        fixes = gather_fixes(store, answered, known_workloads(settings.workloads))
    states = {one.reported.id: one.state for one in answered if one.state}
    originals = {event: original_of(event, states) for event in states}
    chosen = [one for one in answered if wanted is None or wanted in _said_of(one)]
    if as_json:
        for one in chosen:
            click.echo(orjson.dumps(_to_json(one, fixes, originals)))
        return
    merged = Counter(original for event, original in originals.items() if original != event)
    known = {one.reported.id for one in chosen}
    lines = [one for one in chosen if originals.get(one.reported.id, "") in ("", one.reported.id)]
    lines += [one for one in chosen if one not in lines and originals[one.reported.id] not in known]
    if not lines:
        click.echo("no event has an answer")
        return
    for one in lines:
        click.echo(escape_controls("  ".join(_parts(one, fixes, merged))))


def _said_of(one: Answered) -> list[str]:
    return [said.verdict for said in (one.state, one.cause) if said]


def _parts(one: Answered, fixes: dict[str, FixState], merged: Counter[str]) -> list[str]:
    reported = one.reported
    said = one.state or one.cause
    assert said is not None  # nobody else is listed
    words: list[str] = [said.verdict] if one.state else []
    if one.state and one.state.verdict == "duplicate":
        words.append(f"of {one.state.subject}")
    if fix := fixes.get(reported.id):
        words.append(f"({_FIXES[fix]})")
    if one.cause:
        words.append(f"cause {one.cause.subject}")
    if copies := merged[reported.id]:
        words.append(f"+{copies} duplicate{'s' if copies > 1 else ''}")
    at = f"{to_iso(said.time)[:16].replace('T', ' ')} UTC"
    by = [f"by {said.author}"] if said.author else []
    comment = [f"({said.comment})"] if said.comment else []
    return [reported.id, reported.service, reported.metric, " ".join(words), *by, at, *comment]


def _to_json(one: Answered, fixes: dict[str, FixState], originals: dict[str, str]) -> dict[str, Any]:
    reported = one.reported
    found: dict[str, Any] = {
        **{"event": reported.id, "service": reported.service, "workload": reported.workload},
        **{"metric": reported.metric, "verdict": None, "fix": fixes.get(reported.id)},
        **{"original": originals.get(reported.id, reported.id), "cause": None},
    }
    if one.state:
        found |= _verdict_json(one.state)
    if one.cause:
        found["cause"] = {"change": one.cause.subject, **_verdict_json(one.cause)}
    return found


def _verdict_json(said: Verdict) -> dict[str, Any]:
    own = {"verdict": said.verdict, "author": said.author, "comment": said.comment, "time": to_iso(said.time)}
    return own if said.end is None else {**own, "end": to_iso(said.end)}
