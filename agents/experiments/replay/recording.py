"""Files of recorded requests: JSON lines after a head line, plain or gzip."""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from pipeline.files.unpacking import UnpackError, gunzip
from pipeline.model.errors import ConfigError, file_errors

FORMAT = "smidgen-recording"
VERSION = 1
"""Version of the format: files of other versions are refused, unknown fields are ignored."""

MAX_FILE_BYTES = 2**30
"""Largest recording, unpacked: it is held in memory."""

_GZIP = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """One request as a service received it."""

    time: float  # epoch seconds
    method: str
    target: str  # path and query
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    session: str = ""  # keyed hash; empty without a session
    weight: float = 1.0  # number of requests that this sampled one stands for
    status: int = 0  # of the answer; 0 without an answer
    duration_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Recording:
    """Content of a file."""

    requests: tuple[RecordedRequest, ...]  # by time
    head: Mapping[str, Any]
    """The first line: format, version, service, and how requests were sampled."""
    invalid: int = 0
    """Number of invalid lines."""
    first_invalid: str = ""
    """Line number and error of the first invalid line."""
    cut: int = 0
    """Requests of sessions that were not recorded whole, which are left out."""


def encode_head(service: str, sampling: str, began: float) -> bytes:
    """Return the first line."""
    head = {"format": FORMAT, "version": VERSION, "service": service, "sampling": sampling, "began": began}
    return orjson.dumps(head) + b"\n"


def encode_request(request: RecordedRequest) -> bytes:
    """Return the line of a request; a body that is no UTF-8 stands in base64."""
    line: dict[str, Any] = {
        "time": request.time,
        "method": request.method,
        "target": request.target,
        "headers": request.headers,
        "status": request.status,
        "duration_s": request.duration_s,
        "weight": request.weight,
    }
    if request.session:
        line["session"] = request.session
    if request.body:
        try:
            line["body"] = request.body.decode()
        except UnicodeDecodeError:
            line["body_base64"] = base64.b64encode(request.body).decode()
    return orjson.dumps(line) + b"\n"


def encode_cut(session: str) -> bytes:
    """Return the line that withdraws a session of which a request was not recorded."""
    return orjson.dumps({"cut_session": session}) + b"\n"


def read_recording(path: Path) -> Recording:
    """Return the requests of a file in the order of time; invalid lines are counted.

    Raises:
        ConfigError: it cannot be read, is no recording or one of another version, or holds no request.
    """
    with file_errors(path):
        size = path.stat().st_size
        if size > MAX_FILE_BYTES:
            raise ConfigError(f"{path}: {size:,} bytes; a recording has at most {MAX_FILE_BYTES:,}")
        data = path.read_bytes()
    if data.startswith(_GZIP):
        try:
            data = gunzip(data, MAX_FILE_BYTES)
        except UnpackError as error:
            raise ConfigError(f"{path}: {error}") from None
    recording = decode_recording(data, str(path))
    if not recording.requests:
        why = f"; line {recording.first_invalid}" if recording.invalid else ""
        raise ConfigError(f"{path}: holds no requests{why}")
    return recording


def decode_recording(data: bytes, name: str) -> Recording:
    """Return the content of a recording.

    Raises:
        ConfigError: the first line is not the head of a recording of this version.
    """
    lines = _lines(data)
    head = _head(next(lines, b""), name)
    requests: list[RecordedRequest] = []
    cut: set[str] = set()
    invalid, first_invalid = 0, ""
    for number, line in enumerate(lines, 2):
        try:
            fields = orjson.loads(line)
            if isinstance(fields, dict) and isinstance(fields.get("cut_session"), str):
                cut.add(fields["cut_session"])
            elif isinstance(fields, dict) and fields.get("format") == FORMAT:
                _head(line, f"{name}: line {number}")  # a head line of a recorder that appended to the file
            else:
                requests.append(_request(fields))
        except ValueError as error:
            invalid += 1
            first_invalid = first_invalid or f"{number}: {error}"
    whole = [request for request in requests if request.session not in cut]
    whole.sort(key=lambda request: request.time)
    return Recording(tuple(whole), head, invalid, first_invalid, len(requests) - len(whole))


def _lines(data: bytes) -> Iterator[bytes]:
    start = 0
    while start < len(data):
        end = data.find(b"\n", start)
        end = len(data) if end < 0 else end
        if end > start:
            yield data[start:end]
        start = end + 1


def _head(line: bytes, name: str) -> Mapping[str, Any]:
    try:
        head = orjson.loads(line)
    except ValueError:
        head = None
    if not isinstance(head, dict) or head.get("format") != FORMAT:
        raise ConfigError(f"{name}: is no recording: its first line should say format {FORMAT}")
    if head.get("version") != VERSION:
        raise ConfigError(f"{name}: has version {head.get('version')!r}; this Smidgen reads {VERSION}")
    return head


def _request(fields: Any) -> RecordedRequest:
    """Return the request of a line.

    Raises:
        ValueError: a field is missing or is not what it should be.
    """
    if not isinstance(fields, dict):
        raise ValueError("should be an object")
    method, target = _text(fields, "method"), _text(fields, "target")
    if not method.isascii() or not method.isalpha():
        raise ValueError(f"method: {method[:20]!r} is none")
    if not target.startswith("/") or not _is_one_line(target) or " " in target:
        raise ValueError(f"target: {target[:80]!r} should be a path and a query")
    return RecordedRequest(
        time=_number(fields, "time"),
        method=method.upper(),
        target=target,
        headers=_headers(fields.get("headers", [])),
        body=_body(fields),
        session=_text(fields, "session") if "session" in fields else "",
        weight=_number(fields, "weight", 1.0),
        status=int(_number(fields, "status", 0.0)),
        duration_s=_number(fields, "duration_s", 0.0),
    )


def _headers(raw: Any) -> tuple[tuple[str, str], ...]:
    pairs = isinstance(raw, list) and all(
        isinstance(pair, list) and len(pair) == 2 and all(isinstance(text, str) for text in pair)
        for pair in raw
    )
    if not pairs:
        raise ValueError("headers: should be a list of pairs of texts")
    for name, value in raw:
        if not name or not name.isascii() or not _is_one_line(name) or ":" in name or " " in name:
            raise ValueError(f"headers: {name[:40]!r} is no name")
        if not _is_one_line(value):
            raise ValueError(f"headers: {name}: has a line break")
    return tuple((name, value) for name, value in raw)


def _body(fields: Mapping[str, Any]) -> bytes:
    if "body_base64" not in fields:
        return _text(fields, "body").encode() if "body" in fields else b""
    try:
        return base64.b64decode(_text(fields, "body_base64"), validate=True)
    except binascii.Error:
        raise ValueError("body_base64: is no base64") from None


def _text(fields: Mapping[str, Any], name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str):
        raise ValueError(f"{name}: should be a text")
    return value


def _number(fields: Mapping[str, Any], name: str, default: float | None = None) -> float:
    value = fields.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        raise ValueError(f"{name}: should be a number, not less than 0")
    return float(value)


def _is_one_line(text: str) -> bool:
    return "\r" not in text and "\n" not in text and "\0" not in text
