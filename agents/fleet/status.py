"""The status of a host agent: what it sends to a gateway once a minute, and what a gateway says of all."""

from __future__ import annotations

from typing import Annotated, Literal, TypeVar

import orjson
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from pipeline.errors import ConfigError, InvalidMessage
from pipeline.validation import StrictModel, validate

MAX_STATUS_BYTES = 64 * 1024
MOST_SERVICES = 50
"""Services whose rates a status holds; with the longest names it is within MAX_STATUS_BYTES."""

SILENT_S = 180.0
"""An agent that was not heard for so long is silent: three statuses are missing."""

MAX_COMPLAINT = 500
"""Longest text on what is wrong."""

_MOST = 2**53
"""Largest count: what every reader of JSON keeps."""


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("should be printable text")
    return text


ProcessState = Literal["sampled", "waiting", "failing", "covered", "passed"]
_Count = Annotated[int, Field(ge=0, le=_MOST)]
_Share = Annotated[float, Field(ge=0, le=1e6)]
_Rate = Annotated[float, Field(ge=0, le=1e6)]
_Moment = Annotated[float, Field(ge=0, le=1e12)]


_Host = Annotated[str, Field(min_length=1, max_length=400), AfterValidator(_printable)]
_Service = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_printable)]
_Version = Annotated[str, Field(max_length=100), AfterValidator(_printable)]


class AgentStatus(StrictModel):
    """How it is with the agent of a host. Counts of messages are since it began."""

    model_config = ConfigDict(strict=True)

    host: _Host
    version: _Version  # of Smidgen
    rules: _Version  # version of the rules that it follows
    processes: dict[ProcessState, _Count]
    rates_hz: Annotated[dict[_Service, _Rate], Field(max_length=MOST_SERVICES)]
    cost_share: _Share  # of the host's CPU
    budget: _Share
    published: _Count
    dropped: _Count
    waiting: _Count  # for the broker, in memory
    spooled_bytes: _Count


class HeardStatus(StrictModel):
    """A status, and when a gateway heard it."""

    heard: _Moment  # epoch seconds by the gateway's clock
    status: AgentStatus


class FleetView(StrictModel):
    """What a gateway knows of its agents."""

    now: _Moment  # epoch seconds by the gateway's clock
    rules: _Version  # version of the rules that it serves
    agents: tuple[HeardStatus, ...]

    def age_s(self, heard: HeardStatus) -> float:
        """Return the seconds since a status was heard."""
        return max(self.now - heard.heard, 0.0)

    def is_silent(self, heard: HeardStatus) -> bool:
        """Return whether an agent was not heard for longer than SILENT_S."""
        return self.age_s(heard) > SILENT_S

    def is_current(self, heard: HeardStatus) -> bool:
        """Return whether an agent follows the rules that the gateway serves now."""
        return heard.status.rules == self.rules


def encode_status(status: AgentStatus) -> bytes:
    """Return a status as JSON."""
    return orjson.dumps(status.model_dump())


def decode_status(body: bytes) -> AgentStatus:
    """Read a status.

    Raises:
        InvalidMessage: it is none, or larger than MAX_STATUS_BYTES; in one line.
    """
    if len(body) > MAX_STATUS_BYTES:
        raise InvalidMessage(f"larger than {MAX_STATUS_BYTES} bytes")
    return _decode(AgentStatus, body)


def decode_view(body: bytes) -> FleetView:
    """Read what a gateway knows of its agents.

    Raises:
        InvalidMessage: it is something else; in one line.
    """
    return _decode(FleetView, body)


_Model = TypeVar("_Model", bound=BaseModel)


def _decode(model: type[_Model], body: bytes) -> _Model:
    try:
        return validate(model, orjson.loads(body), "")
    except orjson.JSONDecodeError as error:
        raise InvalidMessage(f"not JSON: {error}") from None
    except ConfigError as error:
        shown = "".join(c if c.isprintable() else "?" for c in str(error)[:MAX_COMPLAINT])
        raise InvalidMessage(shown) from None  # a wrong key, which is in it, is any text
