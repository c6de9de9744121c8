"""A profile file of any format, with its service in the address: ``curl --data-binary``."""

from __future__ import annotations

from agents.gateway.base import Decoded, DecodeSetup, PushProtocol, Request
from agents.gateway.profiles import Pushed, profile_parts
from agents.gateway.times import moment, number
from agents.profiles.formats import AUTO, format_names
from pipeline.model.errors import InvalidMessage

_OWN = frozenset(("from", "until", "rate", "format"))


def decode(request: Request, setup: DecodeSetup) -> Decoded:
    """Read the body as a file; parameters of the address besides times, rate and format are labels."""
    query = request.query
    name = query.get("format", AUTO)
    if name not in format_names():
        raise InvalidMessage(f"format: should be one of {', '.join(format_names())}")
    pushed = Pushed(
        data=request.body,
        labels={name: value for name, value in query.items() if name not in _OWN},
        start=moment(query, "from"),
        end=moment(query, "until"),
        rate_hz=number(query, "rate"),
        format=name,
    )
    return profile_parts(pushed, request, setup)


RECEIVER = PushProtocol("pprof", ("/pprof",), decode)
