"""Requests of a service by type and period, as hosts count them from access logs."""

from __future__ import annotations

from typing import Annotated, NotRequired

from pydantic import Field
from typing_extensions import TypedDict  # pydantic cannot read typing.TypedDict before Python 3.12

from pipeline.messages.schema.inputs import MAX_COUNT, MAX_ID
from pipeline.messages.schema.types import Moment, Name, ServiceName, Several, ShortName, Text, message
from pipeline.model import RESPONSE_CLASSES

MAX_TYPES = 2000
"""Most types of one message."""

MAX_PERIOD_S = 3600

MIN_BUCKET, MAX_BUCKET = -640, 639
"""Buckets of response times, from 1 microsecond to 12 days: what lies beyond is in the first and the last."""

Requests = Annotated[int, Field(ge=0, le=MAX_COUNT)]


@message
class TypeCounts(TypedDict):
    """The requests of one type in one period."""

    type: Name
    """Method and path, without what differs from request to request: GET /cart/:id."""
    requests: Requests
    responses: NotRequired[
        Annotated[
            list[Requests],
            Field(min_length=len(RESPONSE_CLASSES), max_length=len(RESPONSE_CLASSES), fail_fast=True),
        ]
    ]
    """How many responses had each class of status: 1xx, 2xx, 3xx, 4xx, 5xx."""
    times: NotRequired[
        Annotated[
            list[Annotated[list[int], Field(min_length=2, max_length=2)]],
            Field(fail_fast=True, max_length=MAX_BUCKET - MIN_BUCKET + 1),
        ]
    ]
    """Response times: pairs of a bucket and the requests in it. Bucket i, from -640 to 639, is for times
    above 2^(i/32) s, up to 2^((i+1)/32) s; none twice."""


@message
class RequestCounts(TypedDict):
    """What one host got in one period."""

    service: ServiceName
    host: ShortName
    start: Moment
    """Of the period; a multiple of its length."""
    period_s: Annotated[float, Field(gt=0, le=MAX_PERIOD_S)]
    types: Annotated[Several[TypeCounts], Field(min_length=1, max_length=MAX_TYPES)]
    """None twice; one that did not come may be left out."""
    release: NotRequired[Text]
    """What runs on the host, such as a commit. Without it, nothing can be compared."""
    id: NotRequired[Annotated[str, Field(max_length=MAX_ID)]]
    """Messages of one service and day with the same id and the same key are counted once."""
