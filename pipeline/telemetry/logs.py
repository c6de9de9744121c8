"""Formats of a line of the log: text for people, or one JSON object for machines."""

from __future__ import annotations

import logging
from typing import Any, Literal

import orjson

from pipeline.model.clock import to_iso

TEXT = "%(asctime)s %(levelname)s %(name)s %(message)s"

FIELDS = (
    *("stage", "service", "topic", "partition", "offset", "last_offset"),
    *("messages", "samples", "published", "dead_letters", "store_retries", "lag"),
)
"""Fields of a line of JSON besides its text; passed to the logger as ``extra``."""


class JsonFormatter(logging.Formatter):
    """Formatter with one object per line: time, level, logger, message, and the FIELDS that apply."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line; values without a form in JSON are written as text."""
        line: dict[str, Any] = {
            "time": to_iso(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= {name: field for name in FIELDS if (field := getattr(record, name, None)) is not None}
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        try:
            return orjson.dumps(line, default=str, option=orjson.OPT_NON_STR_KEYS).decode()
        except orjson.JSONEncodeError:  # a text that is not UTF-8: bytes of a message, perhaps
            plain = {name: str(value).encode(errors="replace").decode() for name, value in line.items()}
            return orjson.dumps(plain).decode()


def formatter(form: Literal["text", "json"]) -> logging.Formatter:
    """Return the formatter of a handler."""
    return JsonFormatter() if form == "json" else logging.Formatter(TEXT)
