"""Messages of the former version are read, and what this version writes satisfies the former declarations.

``former/`` holds messages that the former version wrote, one a line, and the JSON Schemas that it published.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import orjson
import pytest

from pipeline.messages.events import decode_event, encode_event
from pipeline.messages.fields import parse_object
from pipeline.messages.inputs import decode_change, encode_change
from pipeline.messages.ledger import entry_from_json, entry_from_row, entry_to_json, ledger_columns
from pipeline.messages.measurements import (
    decode_metric_points,
    decode_profile,
    encode_metric_points,
    encode_profile,
)
from pipeline.messages.scans import decode_progress, decode_scan, encode_progress, encode_scan

FORMER = Path(__file__).with_name("former")
CHECKS = {
    path.stem: jsonschema.Draft202012Validator(json.loads(path.read_text()))
    for path in (FORMER / "schemas").iterdir()
}

Again = Callable[[bytes], bytes]


def again_line(value: bytes) -> bytes:
    return orjson.dumps(entry_to_json(entry_from_json(parse_object(value))))


def again_row(value: bytes) -> bytes:
    columns = ledger_columns([entry_from_row(orjson.loads(value))])
    return orjson.dumps({name: column[0] for name, column in columns.items()})


def event_name(message: dict[str, Any]) -> str:
    return str(message["type"]).removeprefix("smidgen.").replace(".", "-")


# Each file: what reads a message and writes it anew, and the former schema that it satisfied.
KINDS: dict[str, tuple[Again, str]] = {
    "profiles": (lambda value: encode_profile(decode_profile(value)), "profile"),
    "metrics": (lambda value: encode_metric_points(decode_metric_points(value)), "metric-points"),
    "changes": (lambda value: encode_change(decode_change(value)), "change"),
    "progress": (lambda value: encode_progress(decode_progress(value)), "progress"),
    "scans": (lambda value: encode_scan(decode_scan(value)), "scan"),
    "events": (lambda value: encode_event(decode_event(value)), ""),
    "ledger-lines": (again_line, ""),
    "ledger-rows": (again_row, ""),
}


def former(name: str, message: object) -> None:
    """Check a message against the former declaration of its kind."""
    CHECKS[name].validate(message)


def stored() -> Iterator[Any]:
    for kind in KINDS:
        for number, line in enumerate((FORMER / f"{kind}.jsonl").read_bytes().splitlines()):
            yield pytest.param(kind, line, id=f"{kind}-{number}")


STORED = list(stored())


def lost(before: Any, after: Any, path: str = "") -> list[str]:
    """Return where a document no longer holds what it held; fields may have been added."""
    if isinstance(before, dict) and isinstance(after, dict):
        return [
            found
            for name, value in before.items()
            for found in (lost(value, after.get(name), f"{path}.{name}") if name in after else [path + name])
        ]
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        pairs = enumerate(zip(before, after, strict=True))
        return [found for i, (one, other) in pairs for found in lost(one, other, f"{path}[{i}]")]
    if isinstance(before, str) and isinstance(after, str) and before[:2] == "[{":  # JSON in a column
        return lost(json.loads(before), json.loads(after), path)
    return [] if before == after else [f"{path}: {before!r} is now {after!r}"]


@pytest.mark.parametrize(("kind", "line"), STORED)
def test_what_the_former_version_wrote_is_read_and_kept(kind: str, line: bytes) -> None:
    before, after = orjson.loads(line), orjson.loads(KINDS[kind][0](line))
    if kind == "metrics":  # a time is written in seconds, however it was spelt
        before["points"] = after["points"]
    if kind == "ledger-lines" and "specversion" in before:
        return  # an event is read as a line, and written as one
    assert lost(before, after) == []


@pytest.mark.parametrize(("kind", "line"), [case for case in STORED if "ledger" not in case.values[0]])
def test_the_former_version_reads_what_is_written_now(kind: str, line: bytes) -> None:
    after = orjson.loads(KINDS[kind][0](line))
    former(event_name(after) if kind == "events" else KINDS[kind][1], after)
