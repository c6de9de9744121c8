"""Statement that an HTTP request asks of ClickHouse, with its data, parameters and settings."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pipeline.embedded.protocol import SYNTAX_ERROR, UNKNOWN_EXCEPTION
from pipeline.files.unpacking import UnpackError, gunzip, inflate, unlz4, unzstd

_TRANSPORT = frozenset(
    {
        *("query", "database", "default_format", "user", "password", "role", "quota_key", "query_id"),
        *("session_id", "session_timeout", "session_check", "close_session", "buffer_size"),
        *("compress", "decompress", "wait_end_of_query", "enable_http_compression"),
        *("client_protocol_version", "send_progress_in_http_headers", "http_headers_progress_interval_ms"),
        "cancel_http_readonly_queries_on_client_close",
    }
)
"""Arguments in the URL that the server itself uses; every other one is a setting of the statement."""

_CODECS: Mapping[str, Callable[[bytes, int], bytes]] = {
    "gzip": gunzip,
    "deflate": inflate,
    "lz4": unlz4,
    "zstd": unzstd,
}

MAX_BODY_BYTES = 1024**3
"""Most that a body may unpack to: far more than one INSERT of a worker."""

_PARAMETER = "param_"
# Exactly one line end belongs to the statement: the rows may begin with a byte that looks like another.
_INSERT = re.compile(rb"\s*(INSERT\s+INTO\s.*?)\s+FORMAT\s+(\w+)[ \t]*(?:\r?\n|\Z)", re.IGNORECASE)
_FORMAT = re.compile(r"\bFORMAT\s+(\w+)\s*;?\s*$", re.IGNORECASE)
_SETTING = re.compile(r"[A-Za-z_]\w*")


class BadRequest(ValueError):
    """The request makes no sense; the text says why, and ``code`` is ClickHouse's."""

    def __init__(self, text: str, code: int = UNKNOWN_EXCEPTION) -> None:
        super().__init__(text)
        self.code = code


@dataclass(frozen=True, slots=True)
class Statement:
    """One SQL statement. ``data`` holds the rows of an INSERT, whose ``sql`` then ends before FORMAT."""

    sql: bytes
    format: str
    data: bytes | None = None
    database: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)


def read_statement(arguments: Mapping[str, str], body: bytes) -> Statement:
    """Understand a request: ``arguments`` of the URL or form, and the body, no longer compressed.

    As in ClickHouse, the statement is the argument ``query`` followed by the body.

    Raises:
        BadRequest: there is no statement, or a setting has an impossible name.
    """
    query = arguments.get("query", "").encode()
    whole = query + b"\n" + body if query and body else query or body
    if not whole.strip():
        raise BadRequest("Empty query. (SYNTAX_ERROR)", SYNTAX_ERROR)
    settings = {
        name: value
        for name, value in arguments.items()
        if name not in _TRANSPORT and not name.startswith(_PARAMETER)
    }
    for name in settings:
        if not _SETTING.fullmatch(name):
            raise BadRequest(f"Not the name of a setting: {name!r}")
    parameters = {
        name.removeprefix(_PARAMETER): value
        for name, value in arguments.items()
        if name.startswith(_PARAMETER)
    }
    database = arguments.get("database", "")
    insert = _INSERT.match(whole)
    if insert:
        data = whole[insert.end() :]
        return Statement(insert[1], insert[2].decode(), data, database, parameters, settings)
    named = _FORMAT.search(whole[-200:].decode(errors="replace"))
    form = named[1] if named else arguments.get("default_format", "TSV")
    return Statement(whole, form, None, database, parameters, settings)


def decompress(body: bytes, encoding: str, *, max_bytes: int = MAX_BODY_BYTES) -> bytes:
    """Undo a Content-Encoding; a body may be several compressed frames in a row.

    Raises:
        BadRequest: the encoding is unknown here, the body is damaged, or more than ``max_bytes``.
    """
    if encoding in ("", "identity"):
        return body
    codec = _CODECS.get(encoding)
    if codec is None:
        raise BadRequest(f"Unknown Content-Encoding {encoding!r}")
    try:
        return codec(body, max_bytes)
    except UnpackError as error:
        raise BadRequest(f"Content-Encoding {encoding}: {error}") from None
