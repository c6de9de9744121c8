"""What a stage makes of a scan as rows of the table ``outcomes``, and back.

A row is one piece: a message, rows for another table, or what the stage notes for itself. One more row, the
first that a reader looks for, names the attempt whose pieces are the scan's outcome, and says how many.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import orjson
import xxhash

from pipeline.messages.records import columns_of
from pipeline.model import Outgoing, Scan

Columns = Mapping[str, Sequence[Any]]

CHUNK_CHARACTERS = 1 << 24
"""Most characters of the pieces in one insert, unless one piece is longer: they are in memory twice."""

_MARK = "outcome"


@dataclass(frozen=True, slots=True)
class ScanOutcome:
    """What a stage makes of one scan: rows for other tables, in order, and messages, keyed by the service."""

    rows: tuple[tuple[str, Columns], ...] = ()
    messages: tuple[Outgoing, ...] = ()
    noted: Mapping[str, Any] = field(default_factory=dict)  # JSON for the stage itself


class Piece(NamedTuple):
    """One part of an outcome."""

    kind: str
    name: str
    headers: str
    content: str


@dataclass(frozen=True, slots=True)
class Mark:
    """Which attempt at a scan is the one that counts."""

    attempt: str
    pieces: int


def outcome_pieces(outcome: ScanOutcome) -> list[Piece]:
    """Return an outcome in pieces; the inverse of ``outcome_of``."""
    # The standard library's JSON keeps numbers that are not finite, which columns may hold.
    pieces = [Piece("rows", table, "", json.dumps(dict(columns))) for table, columns in outcome.rows]
    for message in outcome.messages:
        headers = [(name, value.decode()) for name, value in message.headers]
        pieces.append(Piece("message", message.topic, orjson.dumps(headers).decode(), message.value.decode()))
    if outcome.noted:
        pieces.append(Piece("noted", "", "", json.dumps(dict(outcome.noted))))
    return pieces


def outcome_of(scan: Scan, pieces: Sequence[Piece]) -> ScanOutcome:
    """Return the outcome of a scan from its pieces, in order."""
    rows: list[tuple[str, Columns]] = []
    messages: list[Outgoing] = []
    noted: Mapping[str, Any] = {}
    for piece in pieces:
        match piece.kind:
            case "rows":
                rows.append((piece.name, json.loads(piece.content)))
            case "message":
                headers = tuple((name, value.encode()) for name, value in orjson.loads(piece.headers))
                messages.append(Outgoing(piece.name, scan.service, piece.content.encode(), headers))
            case "noted":
                noted = json.loads(piece.content)
    return ScanOutcome(tuple(rows), tuple(messages), noted)


def attempt_of(pieces: Sequence[Piece]) -> str:
    """Return the name of an attempt: a hash of what it made, so that equal ones are one."""
    hashed = xxhash.xxh3_128()
    for piece in pieces:
        hashed.update(orjson.dumps(tuple(piece)))
    return hashed.hexdigest()


def outcome_columns(stage: str, scan: Scan, pieces: Sequence[Piece]) -> Iterator[Columns]:
    """Yield what is to be inserted, in order; the mark comes last, and with it the outcome counts."""
    attempt = attempt_of(pieces)
    whose = {"service": scan.service, "stage": stage, "workload": scan.workload, "time": scan.end}
    rows: list[dict[str, Any]] = []
    characters = 0
    for number, piece in enumerate(pieces):
        if rows and characters + len(piece.content) > CHUNK_CHARACTERS:
            yield columns_of(rows)
            rows, characters = [], 0
        rows.append({**whose, "attempt": attempt, "number": number, **piece._asdict()})
        characters += len(piece.content)
    mark = Piece(_MARK, attempt, "", str(len(pieces)))
    yield columns_of([*rows, {**whose, "attempt": "", "number": 0, **mark._asdict()}])


def mark_of(row: Mapping[str, Any]) -> Mark:
    """Return the mark that a row without an attempt is."""
    return Mark(row["name"], int(row["content"]))


def pieces_of(rows: Sequence[Mapping[str, Any]]) -> list[Piece]:
    """Return the pieces that rows of one attempt are, in their order."""
    ordered = sorted(rows, key=lambda row: row["number"])
    return [Piece(*(row[name] for name in Piece._fields)) for row in ordered]
