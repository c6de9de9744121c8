"""Copies of parsed documents as plain JSON, so that equal ones have equal texts whatever their format."""

from __future__ import annotations

import math
from datetime import date
from typing import Any

from pipeline.messages.fields import MAX_DEPTH, kind_of
from pipeline.model.errors import InvalidMessage

_LEAST, _MOST = -(2**63), 2**64 - 1
"""Whole numbers that JSON is written with."""


class PlainJson:
    """Copies values, all of one document, within bounds.

    Keys that YAML reads as numbers or booleans become the texts that JSON would have, and dates become texts.
    """

    def __init__(self, size: int) -> None:
        """Begin a document of at most ``size`` values and characters, aliases counted where they stand."""
        self._left = size

    def copy(self, value: object, name: str, around: int = 0) -> Any:
        """Return a value as JSON has it; ``around`` counts the lists and objects that it stands in.

        Raises:
            InvalidMessage: ``name``, and what of it JSON cannot hold or is beyond the bounds.
        """
        try:
            return self._copy(value, around)
        except InvalidMessage as error:
            raise InvalidMessage(f"{name}: {error}") from None

    def _copy(self, value: object, around: int) -> Any:
        self._take(1)
        if isinstance(value, str):
            return self._text(value)
        if value is None or isinstance(value, bool | int | float):
            return _checked(value)
        if isinstance(value, date):  # or a time, which is one
            return str(value)
        if not isinstance(value, dict | list | tuple):
            raise InvalidMessage(f"should be plain JSON, not {kind_of(value)}")
        if around >= MAX_DEPTH:
            raise InvalidMessage(f"nested deeper than {MAX_DEPTH}")
        if isinstance(value, dict):
            return self._object(value, around + 1)
        return [self._copy(item, around + 1) for item in value]

    def _object(self, value: dict[Any, Any], around: int) -> dict[str, Any]:
        copied = {self._key(key): self._copy(item, around) for key, item in value.items()}
        if len(copied) < len(value):
            raise InvalidMessage("two keys are the same text")
        return copied

    def _key(self, key: object) -> str:
        if isinstance(key, str):
            return self._text(key)
        if key is None or isinstance(key, bool):
            return {None: "null", True: "true", False: "false"}[key]
        if isinstance(key, int | float | date):
            return str(key)
        raise InvalidMessage(f"a key should be a text, not {kind_of(key)}")

    def _text(self, text: str) -> str:
        self._take(len(text))
        if not text.isascii():
            try:
                text.encode()
            except UnicodeEncodeError:
                raise InvalidMessage("a text with half a character (a lone surrogate)") from None
        return text

    def _take(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise InvalidMessage("too many values and characters, with aliases counted wherever they stand")


def _checked(value: float | None) -> float | None:
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidMessage("a number should be finite")
    if isinstance(value, int) and not _LEAST <= value <= _MOST:
        raise InvalidMessage("a number beyond 64 bits")
    return value
