"""Records out of checked JSON, and JSON out of records, both from the declarations in ``codec.schema``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from threading import RLock
from types import UnionType
from typing import Any, NotRequired, TypeVar, Union, get_args, get_origin, get_type_hints

import orjson
from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from pipeline.messages.fields import kind_of
from pipeline.messages.schema.types import UTC_TIME
from pipeline.model.clock import to_iso
from pipeline.model.errors import InvalidMessage

Row = TypeVar("Row")
Made = TypeVar("Made")

_SHOULD_BE = {
    "string_type": "a string",
    "float_type": "a number",
    "int_type": "a whole number of at least 0",
    "int_from_float": "a whole number of at least 0",
    "list_type": "a list",
    "dict_type": "an object",
    "bool_type": "true or false",
}
_NO_NULL = ("string_type", "float_type", "int_type", "list_type", "moment")
"""Where null is taken for a field that is left out: in any place but within a list."""

_SHOWN = 40  # characters of a wrong value


def check(shape: type, raw: object, where: str = "") -> dict[str, Any]:
    """Check a JSON object against its declaration and return what that names of it.

    Raises:
        InvalidMessage: the field that is missing or wrong, with its path; ``where`` stands before it.
    """
    try:
        found: dict[str, Any] = adapter_of(shape).validate_python(raw)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        if first["type"].startswith("recursion"):
            raise InvalidMessage("nested deeper than any message is") from None
        raise InvalidMessage(": ".join(filter(None, [_path(where, first["loc"]), _what(first)]))) from None
    return found


def read(record: type[Row], checked: Mapping[str, Any]) -> Row:
    """Return a record of what ``check`` returned; fields that are left out have their defaults."""
    found: Row = _reader(record)(checked)
    return found


def columns_of(rows: Iterable[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Return rows, one at least and all of the same keys, as columns of a table."""
    every = list(rows)
    return {name: [row[name] for row in every] for name in every[0]}


def encode(record: Any) -> bytes:
    """Return a record, and those within it, as JSON: its fields by their names."""
    return orjson.dumps(record, default=_written, option=orjson.OPT_PASSTHROUGH_DATACLASS)


def to_json(record: Any) -> dict[str, Any]:
    """Return a record, and those within it, as a JSON object."""
    found: dict[str, Any] = orjson.loads(encode(record))
    return found


def written(shape: type, *records: object, **own: Any) -> dict[str, Any]:
    """Return the JSON object that a declaration describes, its fields in their order.

    A field is what ``own`` holds, else the attribute of the first record that has one of that name. One that
    is not required is left out unless ``own`` holds it. Moments (epoch seconds) become ISO 8601.

    Raises:
        AttributeError: no record has a required field.
    """
    found = {}
    for name, required, is_moment in _declared(shape):
        if name in own:
            value = own[name]
        elif required:
            value = getattr(next((record for record in records if hasattr(record, name)), None), name)
        else:
            continue
        found[name] = to_iso(value) if is_moment else value
    return found


def plain(record: Any) -> dict[str, Any]:
    """Return a record's fields by their names, those that are records as they are."""
    return {name: getattr(record, name) for name in field_names(type(record))}


def own_form(
    record: type,
    writer: Callable[[Any], dict[str, Any]],
    reader: Callable[[Mapping[str, Any]], Any] | None = None,
) -> None:
    """Declare that a record's JSON is not simply its fields; ``reader`` where it is not read so either."""
    _WRITERS[record] = writer
    if reader:
        _READERS[record] = reader


_READERS: dict[type, Callable[[Mapping[str, Any]], Any]] = {}
_WRITERS: dict[type, Callable[[Any], dict[str, Any]]] = {}


def _written(record: Any) -> dict[str, Any]:
    return _WRITERS.get(type(record), plain)(record)


_MAKING = RLock()
"""Declarations are read through ``inspect``, which threads must not do at the same time."""


def _once(make: Callable[[Any], Made]) -> Callable[[Any], Made]:
    """Keep what is made of each type; threads make one at a time."""

    @cache
    def make_alone(type_: Any) -> Made:
        with _MAKING:
            return make(type_)

    return make_alone


@_once
def adapter_of(type_: Any) -> TypeAdapter[Any]:
    """Return what checks values of a type, made once."""
    return TypeAdapter(type_)


@_once
def field_names(record: type) -> tuple[str, ...]:
    """Return the names of a record's fields, in their order; found once a class."""
    return tuple(field.name for field in fields(record))


@_once
def _declared(shape: type) -> tuple[tuple[str, bool, bool], ...]:
    """Return the fields of a declaration: name, whether it is required, whether it is a moment."""
    hints = get_type_hints(shape, include_extras=True)
    return tuple(
        (name, get_origin(hint) is not NotRequired, UTC_TIME in getattr(hint, "__metadata__", ()))
        for name, hint in hints.items()
    )


@_once
def _reader(record: type) -> Callable[[Mapping[str, Any]], Any]:
    """Return what makes a record of a mapping: lists become tuples, objects the records declared there."""
    if own := _READERS.get(record):
        return own
    hints = get_type_hints(record)
    conversions = {name: found for name in field_names(record) if (found := _conversion(hints[name]))}

    def build(checked: Mapping[str, Any]) -> Any:
        values = dict(checked)
        for name, convert in conversions.items():
            if name in values:
                values[name] = convert(values[name])
        return record(**values)

    return build


def _conversion(hint: Any) -> Callable[[Any], Any] | None:
    """Return how a field's JSON becomes its value, None where it is that already."""
    if is_dataclass(hint):
        return lambda value: _reader(hint)(value)  # looked up late: a record may hold its own kind
    if get_origin(hint) is tuple:
        inner = _conversion(get_args(hint)[0])
        return lambda values: tuple(map(inner, values or ())) if inner else tuple(values or ())
    if get_origin(hint) in (Union, UnionType):
        inner = next(filter(None, map(_conversion, get_args(hint))), None)
        return inner and (lambda value: None if value is None else inner(value))
    return None


def _path(where: str, location: tuple[int | str, ...]) -> str:
    for part in location:
        where += f"[{part}]" if isinstance(part, int) else f".{part}" if where else part
    return where


def _what(error: ErrorDetails) -> str:
    """Return what is wrong with one value, in words that hold little of it."""
    kind, value = error["type"], error["input"]
    if kind == "missing" or (value is None and kind in _NO_NULL and isinstance(error["loc"][-1], str)):
        return "missing"
    if kind in _SHOULD_BE:
        return f"should be {_SHOULD_BE[kind]}, not {kind_of(value)}"
    limits = error.get("ctx", {})
    if kind == "string_too_long":
        return f"longer than {limits['max_length']} characters"
    if kind == "less_than_equal":
        return f"{value} is more than {limits['le']}"
    if kind == "greater_than_equal":
        return f"should be a whole number of at least {limits['ge']}, not {kind_of(value)}"
    if kind == "literal_error":
        return f"should be {limits['expected'].replace(chr(39), '')}, not {value!r:.{_SHOWN}}"
    if kind == "too_long":
        return f"more than {limits['max_length']} items"
    if kind == "too_short" and value:
        return f"should have at least {limits['min_length']} items"
    return "empty" if kind in ("string_too_short", "too_short") else error["msg"]
