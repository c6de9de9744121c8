"""Verdicts as messages of the topic ``feedback``, and as rows of the store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from pipeline.messages.fields import LATEST_S
from pipeline.messages.records import check, plain, read
from pipeline.messages.schema import inputs as shapes
from pipeline.model import Verdict
from pipeline.model.errors import InvalidMessage

_WITH_SUBJECT = {"duplicate": "the other event", "cause": "the change"}


def encode_verdict(verdict: Verdict) -> bytes:
    """Encode a verdict; the inverse of decode_feedback."""
    given = {name: value for name, value in plain(verdict).items() if value}
    return orjson.dumps({"kind": "verdict", **given})


def verdict_from_json(raw: Mapping[str, Any]) -> Verdict:
    """Check a message of the kind ``verdict`` that is already parsed.

    Raises:
        InvalidMessage: the field that is missing or wrong.
    """
    given = check(shapes.Verdict, raw)
    own = {name: value for name, value in given.items() if name != "kind"}
    found = read(Verdict, {**own, "subject": given.get("subject") or ""})
    named = _WITH_SUBJECT.get(found.verdict)
    if named and not found.subject:
        raise InvalidMessage(f"subject: missing; it is the id of {named}")
    if found.subject and not named:
        raise InvalidMessage("subject: of duplicates and causes alone")
    if found.verdict == "duplicate" and found.subject == found.event:
        raise InvalidMessage("subject: an event is no duplicate of itself")
    if found.end is not None and found.verdict != "expected":
        raise InvalidMessage("end: of expected ones alone")
    if found.end is not None and found.end <= found.time:
        raise InvalidMessage("end: should be after time")
    return found


def verdict_to_row(verdict: Verdict) -> dict[str, Any]:
    """Return a verdict as a row of the table ``verdicts``."""
    row = plain(verdict)
    end = row.pop("end")
    aspect = "cause" if verdict.verdict == "cause" else "state"
    return {**row, "aspect": aspect, "end_time": LATEST_S if end is None else end}


def verdict_of_row(row: Mapping[str, Any]) -> Verdict:
    """Return a verdict of a row of the table ``verdicts``."""
    own = {name: value for name, value in row.items() if name not in ("aspect", "end_time")}
    return Verdict(**own, end=None if row["end_time"] >= LATEST_S else row["end_time"])
