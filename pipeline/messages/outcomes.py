"""Outcomes of scans as rows of the table ``outcomes``, and back.

A row is one piece: a message, rows for another table, or a note of the stage for itself. One more row, the
mark, which a reader looks for first, has the attempt whose pieces are the outcome, and their number.
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
"""Most characters of the pieces in one insert, unless one piece is longer: memory holds them twice."""

_MARK = "outcome"


@dataclass(frozen=True, slots=True)
class ScanOutcome:
    """The outcome of one scan in a stage: rows for other tables, in order, and messages, keyed by service."""

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
    """The attempt at a scan that counts."""

    attempt: str
    pieces: int


def outcome_pieces(outcome: ScanOutcome) -> list[Piece]:
    """Return an outcome in pieces; the inverse of ``outcome_of``."""
    # The standard library's JSON can hold infinite and NaN numbers, which columns may contain.
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
    """Return the name of an attempt: a hash of its pieces, so that equal attempts are one."""
    hashed = xxhash.xxh3_128()
    for piece in pieces:
        hashed.update(orjson.dumps(tuple(piece)))
    return hashed.hexdigest()


def outcome_columns(stage: str, scan: Scan, pieces: Sequence[Piece]) -> Iterator[Columns]:
    """Yield the columns to insert, in order; the mark comes last and makes the outcome count."""
    attempt = attempt_of(pieces)
    common = {"service": scan.service, "stage": stage, "workload": scan.workload, "time": scan.end}
    rows: list[dict[str, Any]] = []
    characters = 0
    for number, piece in enumerate(pieces):
        if rows and characters + len(piece.content) > CHUNK_CHARACTERS:
            yield columns_of(rows)
            rows, characters = [], 0
        rows.append({**common, "attempt": attempt, "number": number, **piece._asdict()})
        characters += len(piece.content)
    mark = Piece(_MARK, attempt, "", str(len(pieces)))
    yield columns_of([*rows, {**common, "attempt": "", "number": 0, **mark._asdict()}])


def mark_of(row: Mapping[str, Any]) -> Mark:
    """Return the mark from a row without an attempt."""
    return Mark(row["name"], int(row["content"]))


def pieces_of(rows: Sequence[Mapping[str, Any]]) -> list[Piece]:
    """Return the pieces from the rows of one attempt, in order."""
    ordered = sorted(rows, key=lambda row: row["number"])
    return [Piece(*(row[name] for name in Piece._fields)) for row in ordered]
