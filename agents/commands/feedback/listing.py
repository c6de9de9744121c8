"""List of answered events: verdict, author, and whether a regression called fixed is gone."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from typing import Any, get_args

import click

from agents.commands.feedback.options import events_service_option, since_option
from pipeline.analysis.feedback import FixState, original_of
from pipeline.commands.options import settings_options
from pipeline.commands.request import json_option, option, takes
from pipeline.commands.tables import print_json_lines
from pipeline.commands.terminal import print_lines
from pipeline.model import Verdict, VerdictKind
from pipeline.model.clock import to_iso
from pipeline.settings.config import Settings
from pipeline.settings.workloads import known_workloads
from pipeline.stages.gather.reported import Answered, gather_answered, gather_fixes
from pipeline.storage.connect import open_store

_FIXES = {"waiting": "not seen yet", "confirmed": "it is gone", "contradicted": "it is still there"}


@click.command("list")
@takes
def listing(
    service: str | None = events_service_option,
    since: float = since_option,
    wanted: str | None = option(
        flag="--verdict", choices=get_args(VerdictKind), metavar="V", help="State of the events."
    ),
    as_json: bool = json_option(help="Print one event a line."),
    settings: Settings = settings_options("store", "workloads"),
) -> None:
    """List what people said of events; duplicates stand in the line of the event that reported first."""
    with closing(open_store(settings.store, existing=True)) as store:
        answered = gather_answered(store, service, since)
        fixes = gather_fixes(store, answered, known_workloads(settings.workloads))
    states = {row.reported.id: row.state for row in answered if row.state}
    originals = {event: original_of(event, states) for event in states}
    chosen = [row for row in answered if wanted is None or wanted in _said_of(row)]
    if as_json:
        print_json_lines(_to_json(row, fixes, originals) for row in chosen)
        return
    merged = Counter(original for event, original in originals.items() if original != event)
    ids = {row.reported.id for row in chosen}
    lines = [row for row in chosen if originals.get(row.reported.id, "") in ("", row.reported.id)]
    lines += [row for row in chosen if row not in lines and originals[row.reported.id] not in ids]
    if not lines:
        click.echo("no event has an answer")
        return
    print_lines("  ".join(_parts(row, fixes, merged)) for row in lines)


def _said_of(answered: Answered) -> list[str]:
    return [verdict.verdict for verdict in (answered.state, answered.cause) if verdict]


def _parts(answered: Answered, fixes: dict[str, FixState], merged: Counter[str]) -> list[str]:
    reported = answered.reported
    verdict = answered.state or answered.cause
    assert verdict is not None  # only answered events are listed
    words: list[str] = [verdict.verdict] if answered.state else []
    if answered.state and answered.state.verdict == "duplicate":
        words.append(f"of {answered.state.subject}")
    if fix := fixes.get(reported.id):
        words.append(f"({_FIXES[fix]})")
    if answered.cause:
        words.append(f"cause {answered.cause.subject}")
    if copies := merged[reported.id]:
        words.append(f"+{copies} duplicate{'s' if copies > 1 else ''}")
    at = f"{to_iso(verdict.time)[:16].replace('T', ' ')} UTC"
    by = [f"by {verdict.author}"] if verdict.author else []
    comment = [f"({verdict.comment})"] if verdict.comment else []
    return [reported.id, reported.service, reported.metric, " ".join(words), *by, at, *comment]


def _to_json(answered: Answered, fixes: dict[str, FixState], originals: dict[str, str]) -> dict[str, Any]:
    reported = answered.reported
    row: dict[str, Any] = {
        **{"event": reported.id, "service": reported.service, "workload": reported.workload},
        **{"metric": reported.metric, "verdict": None, "fix": fixes.get(reported.id)},
        **{"original": originals.get(reported.id, reported.id), "cause": None},
    }
    if answered.state:
        row |= _verdict_json(answered.state)
    if answered.cause:
        row["cause"] = {"change": answered.cause.subject, **_verdict_json(answered.cause)}
    return row


def _verdict_json(verdict: Verdict) -> dict[str, Any]:
    own = {
        "verdict": verdict.verdict,
        "author": verdict.author,
        "comment": verdict.comment,
        "time": to_iso(verdict.time),
    }
    return own if verdict.end is None else {**own, "end": to_iso(verdict.end)}
