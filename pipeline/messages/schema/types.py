"""Types of the fields of messages."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema, with_config
from pydantic_core import PydanticCustomError

from pipeline.messages.fields import EARLIEST_S, LATEST_S, MAX_INTEGER, MAX_NAME, to_moment
from pipeline.model.errors import InvalidMessage

message = with_config(ConfigDict(strict=True, use_attribute_docstrings=True))
"""Declares an object of a message: no value is converted, and the string below a field describes it."""

Item = TypeVar("Item")

Several = Annotated[list[Item], Field(fail_fast=True)]
"""A list that is refused at the first wrong item, so that a long one makes no long list of complaints."""

Name = Annotated[str, Field(min_length=1, max_length=MAX_NAME)]

ServiceName = Annotated[str, Field(min_length=1, max_length=200)]

ShortName = Annotated[str, Field(min_length=1, max_length=400)]

Text = Annotated[str, Field(max_length=MAX_NAME)]

LongText = Annotated[str, Field(max_length=4 * MAX_NAME)]

LongName = Annotated[str, Field(min_length=1, max_length=4 * MAX_NAME)]
"""Several names in one, such as those of a subroutine's callers."""

Count = Annotated[int, Field(ge=0, le=MAX_INTEGER)]

Share = Annotated[float, Field(ge=0, le=1)]


def _moment(value: Any) -> float:
    try:
        return to_moment(value)
    except InvalidMessage as error:
        raise PydanticCustomError("moment", "{what}", {"what": str(error)}) from None


Moment = Annotated[
    float,
    BeforeValidator(_moment),
    WithJsonSchema(
        {
            "anyOf": [
                {
                    "type": "number",
                    "minimum": EARLIEST_S,
                    "exclusiveMaximum": LATEST_S,
                    "description": "Seconds since the epoch, between 2000 and 2100.",
                },
                {
                    "type": "string",
                    "format": "date-time",
                    "description": "ISO 8601; UTC where no offset is given.",
                },
            ],
        }
    ),
]
"""A time as it may be sent: epoch seconds, or ISO 8601, which becomes them."""

Interval = Annotated[list[Moment], Field(min_length=2, max_length=2)]
"""From when until when."""

UTC_TIME = WithJsonSchema(
    {
        "type": "string",
        "format": "date-time",
        "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$",  # UTC, to the millisecond
        "examples": ["2026-01-31T12:00:00.000Z"],
    }
)
UtcTime = Annotated[str, UTC_TIME]
"""A time as it is reported; ``codec.records.written`` makes it of epoch seconds."""

UtcInterval = Annotated[list[UtcTime], Field(min_length=2, max_length=2)]
"""From when until when, as it is reported."""
