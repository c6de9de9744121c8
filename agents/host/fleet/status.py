"""The status that a host agent sends to a gateway once a minute, and the gateway's view of all agents."""

from __future__ import annotations

from typing import Annotated, Literal, TypeVar

import orjson
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from pipeline.files.validation import StrictModel, validate
from pipeline.model.errors import ConfigError, InvalidMessage

MAX_STATUS_BYTES = 128 * 1024
MOST_SERVICES = 50
"""Most services in a status; with the longest names it stays within MAX_STATUS_BYTES."""

MOST_KERNELS = 20

SILENT_S = 180.0
"""An agent without a status for this many seconds is silent: three statuses are missing."""

MAX_COMPLAINT = 500
"""Longest text of an error."""

_MOST = 2**53
"""Largest count: the largest integer that every reader of JSON keeps exact."""


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("should be printable text")
    return text


ProcessState = Literal["sampled", "waiting", "failing", "covered", "passed"]
_Count = Annotated[int, Field(ge=0, le=_MOST)]
_Share = Annotated[float, Field(ge=0, le=1e6)]
_Rate = Annotated[float, Field(ge=0, le=1e6)]
_Moment = Annotated[float, Field(ge=0, le=1e12)]
_Threshold = Annotated[float, Field(gt=0, lt=1)]

_Host = Annotated[str, Field(min_length=1, max_length=400), AfterValidator(_printable)]
_Service = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_printable)]
_Version = Annotated[str, Field(max_length=100), AfterValidator(_printable)]


_Kernel = Annotated[str, Field(min_length=1, max_length=100), AfterValidator(_printable)]


class ServiceDemand(StrictModel):
    """A host's demand of a service whose rate is planned."""

    model_config = ConfigDict(strict=True)

    threshold: _Threshold | None  # gCPU ratio; None: the controller's default
    cpus: _Share  # processors that it keeps busy on this host
    rate_hz: _Rate  # rate planned so far, 0 if there is none


class AgentStatus(StrictModel):
    """Status of a host's agent. Counts of messages are since its start."""

    model_config = ConfigDict(strict=True)

    host: _Host
    version: _Version  # of Smidgen
    rules: _Version  # version of the rules that it follows
    processes: dict[ProcessState, _Count]
    rates_hz: Annotated[dict[_Service, _Rate], Field(max_length=MOST_SERVICES)]
    planned: Annotated[dict[_Service, ServiceDemand], Field(max_length=MOST_SERVICES)] = {}
    kernels: Annotated[dict[_Kernel, _Count], Field(max_length=MOST_KERNELS)] = {}  # processes by kernel
    cost_share: _Share  # of the host's CPU
    budget: _Share
    published: _Count
    dropped: _Count
    waiting: _Count  # messages in memory that wait for the broker
    spooled_bytes: _Count


class PlannedRates(StrictModel):
    """The answer to a status: the planned rates of its services."""

    rates_hz: Annotated[dict[_Service, _Rate], Field(max_length=MOST_SERVICES)]


PlanReason = Literal["enough", "fastest", "slowest", "budget"]
"""Reason of a planned rate: the threshold, a bound of rates, or the budgets of hosts."""


class ServicePlan(StrictModel):
    """The rate that a controller plans for a service, with its reason."""

    threshold: _Threshold
    hosts: _Count
    cpus: _Share  # busy processors of all hosts, on average
    enough_hz: _Rate | None  # rate from which the threshold is detectable; None: none
    rate_hz: _Rate  # in force
    target_hz: _Rate  # rate that would be planned now
    reason: PlanReason  # of the target
    changes: _Moment | None  # when the target comes into force unless it changes; epoch seconds


class HeardStatus(StrictModel):
    """A status, and when a gateway heard it."""

    heard: _Moment  # epoch seconds by the gateway's clock
    status: AgentStatus


class FleetView(StrictModel):
    """A gateway's view of its agents."""

    now: _Moment  # epoch seconds by the gateway's clock
    rules: _Version  # version of the rules that it serves
    agents: tuple[HeardStatus, ...]
    plans: dict[_Service, ServicePlan] = {}

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


def decode_rates(body: bytes) -> PlannedRates:
    """Read the answer to a status; an empty one plans nothing.

    Raises:
        InvalidMessage: it is something else; in one line.
    """
    return _decode(PlannedRates, body) if body else PlannedRates(rates_hz={})


def decode_view(body: bytes) -> FleetView:
    """Read a gateway's view of its agents.

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
        raise InvalidMessage(shown) from None  # the message may quote a wrong key, which can be any text
