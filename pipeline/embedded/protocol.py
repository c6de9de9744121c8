"""Statuses, formats and content types of ClickHouse's HTTP interface, as its server gives them."""

from __future__ import annotations

from collections.abc import Mapping

SYNTAX_ERROR = 62
AUTHENTICATION_FAILED = 516
UNKNOWN_EXCEPTION = 1002

_STATUS: Mapping[int, int] = {
    # What cannot be parsed or understood.
    **dict.fromkeys((6, 25, 26, 27, 36, 38, 41, 53, 62, 72, 117, 321, 427), 400),
    # What is not there: function, identifier, type, engine, table, format, database, setting, role.
    **dict.fromkeys((46, 47, 50, 56, 60, 63, 73, 81, 115, 511), 404),
    **{194: 401, 192: 403, 193: 403, AUTHENTICATION_FAILED: 403, 159: 408, 48: 501},
}

_TYPES = {
    **dict.fromkeys(("TSV", "TabSeparated", "LineAsString"), "text/tab-separated-values"),
    **{"CSV": "text/csv", "JSON": "application/json", "XML": "application/xml", "Null": "text/plain"},
}
"""Content type by how the name of a format begins; others are binary."""

_LINES = ("JSONEachRow", "JSONStringsEachRow")
_PLAIN = ("Pretty", "Vertical", "Values", "Markdown", "JSONCompactEachRow")


def status_of(code: int) -> int:
    """Return the HTTP status of a ClickHouse exception code."""
    return _STATUS.get(code, 500)


def content_type(name: str) -> str:
    """Return the content type of a format."""
    if name in _LINES:
        found = "application/x-ndjson"
    elif name.startswith(_PLAIN):
        found = "text/plain"
    else:
        found = next((kind for prefix, kind in _TYPES.items() if name.startswith(prefix)), "")
    if not found:
        return "application/octet-stream"
    header = f"; header={'present' if 'WithNames' in name else 'absent'}" if found == "text/csv" else ""
    return f"{found}; charset=UTF-8{header}"
