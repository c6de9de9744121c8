"""What the fields of messages are made of."""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict, Field, WithJsonSchema, with_config

from pipeline.codec.fields import EARLIEST_S, LATEST_S, MAX_INTEGER, MAX_NAME

documented = with_config(ConfigDict(use_attribute_docstrings=True))
"""Takes the string below a field for its description."""

Name = Annotated[str, Field(min_length=1, max_length=MAX_NAME)]

ServiceName = Annotated[str, Field(min_length=1, max_length=200)]

ShortName = Annotated[str, Field(min_length=1, max_length=400)]

Text = Annotated[str, Field(max_length=MAX_NAME)]

Count = Annotated[int, Field(ge=0, le=MAX_INTEGER)]

Moment = Annotated[
    float | str,
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
"""A time as it may be sent."""

UtcTime = Annotated[
    str,
    WithJsonSchema(
        {
            "type": "string",
            "format": "date-time",
            "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$",  # UTC, to the millisecond
            "examples": ["2026-01-31T12:00:00.000Z"],
        }
    ),
]
"""A time as it is told."""
