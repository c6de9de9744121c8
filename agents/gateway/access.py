"""Clients that may push, by their tokens."""

from __future__ import annotations

import base64
import binascii
import fnmatch
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from agents.gateway.quota import Rates
from pipeline.http.access import is_authorised

EVERYBODY = "everybody"
"""The client of a gateway that asks for no token."""


@dataclass(frozen=True, slots=True)
class Client:
    """A client: its services by globs, and its rates."""

    name: str
    token: str | None = field(default=None, repr=False)
    services: tuple[str, ...] = ("*",)
    rates: Rates = Rates()

    def may_send(self, service: str) -> bool:
        """Return whether the service is one of the client's."""
        return any(fnmatch.fnmatchcase(service, glob) for glob in self.services)


def authorization_of(headers: Mapping[str, str]) -> str | None:
    """Return the header that holds a token; Datadog's agent and clients send it as their API key.

    Args:
        headers: Names in lower case.
    """
    key = headers.get("dd-api-key")
    return headers.get("authorization") or (f"Bearer {key}" if key else None)


def find_client(clients: Sequence[Client], authorization: str | None) -> Client | None:
    """Return the client whose token a header holds, as a bearer token or as any user's password, or None."""
    header = _as_bearer(authorization or "")
    matching = [client for client in clients if is_authorised(header, client.token)]
    return matching[0] if matching else None


def _as_bearer(header: str) -> str:
    """Return Basic's password as a bearer token."""
    scheme, _, credentials = header.strip().partition(" ")
    if scheme.lower() != "basic":
        return header
    try:
        decoded = base64.b64decode(credentials.strip(), validate=True).decode("utf-8")
    except (binascii.Error, ValueError):
        return ""
    return f"Bearer {decoded.partition(':')[2]}"
