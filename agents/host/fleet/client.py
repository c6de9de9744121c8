"""Client of a gateway, for host agents and ``smidgen agent list``."""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from agents.host.fleet.rules import MAX_RULES_BYTES, HostRules
from agents.host.fleet.status import (
    MAX_STATUS_BYTES,
    AgentStatus,
    FleetView,
    PlannedRates,
    decode_rates,
    decode_view,
    encode_status,
)
from pipeline.model.errors import InvalidMessage, SmidgenError

RULES_PATH = "/agents/rules"
STATUS_PATH = "/agents/status"
AGENTS_PATH = "/agents"

TIMEOUT_S = 5.0
"""Timeout of a request to a gateway, in seconds."""

MAX_VIEW_BYTES = 128 * 1024**2

_REASONS = {
    401: "wrong or missing token (http_token_file)",
    404: "it serves no rules: it needs --agents FILE",
}


class GatewayUnavailable(SmidgenError):
    """A gateway does not answer, or not as it should."""


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Follows none: the token goes to the address that the user named, and to no other."""

    def redirect_request(self, *_: object, **__: object) -> None:
        """Return nothing, so that the redirection is an error."""


_OPENER = urllib.request.build_opener(_NoRedirects, urllib.request.ProxyHandler({}))


def is_url(text: str) -> bool:
    """Return whether a text is the address of a gateway and not a file."""
    return text.startswith(("http://", "https://"))


def check_url(text: str) -> str:
    """Return the address of a gateway, without a slash at its end.

    Raises:
        ValueError: it is none.
    """
    wanted = ValueError("should be http://HOST:PORT of a gateway")
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        raise wanted from None
    is_plain = text.isascii() and text.isprintable() and " " not in text
    if not is_plain or parts.scheme not in ("http", "https") or not parts.hostname:
        raise wanted
    if parts.username is not None or parts.query or parts.fragment:
        raise ValueError("should be http://HOST:PORT of a gateway; a token comes from http_token_file")
    return text.rstrip("/")


@dataclass(frozen=True, slots=True)
class FleetClient:
    """Sends requests to one gateway. Each method raises GatewayUnavailable without a valid answer."""

    url: str
    token: str | None = field(default=None, repr=False)

    def rules(self, known: str = "") -> HostRules | None:
        """Return the rules of the fleet; None if their version is ``known``."""
        headers = {"If-None-Match": f'"{known}"'} if known else {}
        body = self._ask(RULES_PATH, MAX_RULES_BYTES, headers=headers)
        return None if body is None else HostRules(body)

    def report(self, status: AgentStatus) -> PlannedRates:
        """Send the status of an agent; return the rates that are planned for its services."""
        headers = {"Content-Type": "application/json"}
        answer = self._ask(STATUS_PATH, MAX_STATUS_BYTES, encode_status(status), headers)
        try:
            return decode_rates(answer or b"")
        except InvalidMessage as error:
            raise GatewayUnavailable(f"{self.url}: no planned rates: {error}") from None

    def view(self) -> FleetView:
        """Return the gateway's view of its agents."""
        try:
            return decode_view(self._ask(AGENTS_PATH, MAX_VIEW_BYTES) or b"")
        except InvalidMessage as error:
            raise GatewayUnavailable(f"{self.url}: no list of agents: {error}") from None

    def _ask(
        self, path: str, most: int, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> bytes | None:
        """Return the answer's body, None if nothing has changed."""
        sent = dict(headers or {})
        if self.token is not None:
            sent["Authorization"] = f"Bearer {self.token}"
        try:
            request = urllib.request.Request(self.url + path, body, sent)
            with _OPENER.open(request, timeout=TIMEOUT_S) as answer:
                content: bytes = answer.read(most + 1)
        except urllib.error.HTTPError as error:
            error.close()
            if error.code == 304:
                return None
            reason = _REASONS.get(error.code, f"it answers {error.code}")
            raise GatewayUnavailable(f"{self.url}: {reason}") from None
        except urllib.error.URLError as error:
            reason = getattr(error.reason, "strerror", None) or str(error.reason)
            raise GatewayUnavailable(f"{self.url}: {reason}") from None
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise GatewayUnavailable(f"{self.url}: {str(error) or type(error).__name__}") from None
        if len(content) > most:
            raise GatewayUnavailable(f"{self.url}: its answer is larger than {most} bytes")
        return content
