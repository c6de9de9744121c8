"""Access to HTTP endpoints: bearer tokens and loopback addresses."""

from __future__ import annotations

import hmac
import ipaddress

from pipeline.model.errors import ConfigError

_SCHEME = "bearer"


def is_authorised(header: str | None, token: str | None) -> bool:
    """Return whether an ``Authorization`` header holds the bearer token.

    Without a token everybody is authorised; an empty token authorises nobody, for it is a mistake. The
    comparison takes the same time wherever the first difference is.
    """
    if token is None:
        return True
    scheme, _, given = (header or "").strip().partition(" ")
    same = hmac.compare_digest(_bytes(given.strip()), _bytes(token))
    return same and scheme.lower() == _SCHEME and bool(token)


def is_loopback(host: str) -> bool:
    """Return whether an address can only be reached from this machine."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def check_reach(name: str, host: str, token: str | None) -> None:
    """Check that other machines reach an address only with a token; ``name`` is what an error calls it.

    Raises:
        ConfigError: they could do without.
    """
    if token is None and not is_loopback(host):
        raise ConfigError(f"{name}: {host} can be reached from other machines: set http_token_file too")


def _bytes(text: str) -> bytes:
    """Return a header as it was sent: bytes that are not UTF-8 stand in it as lone surrogates."""
    return text.encode("utf-8", errors="surrogateescape")
