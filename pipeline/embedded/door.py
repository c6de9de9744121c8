"""Login of the embedded store; without one any program of this machine may use it."""

from __future__ import annotations

import base64
import binascii
import hmac
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pipeline.http.access import is_authorised, is_loopback
from pipeline.model.errors import ConfigError
from pipeline.settings.config import read_secret

_DEFAULT_USER = "default"


@dataclass(frozen=True, slots=True)
class DoorUser:
    """The one user that is let in; the password is also the bearer token."""

    user: str
    password: str = field(repr=False)

    @classmethod
    def read(cls, user: str, file: Path) -> DoorUser:
        """Make it with the password that a file holds.

        Raises:
            ConfigError: the file cannot be read or holds no password.
        """
        return cls(user or _DEFAULT_USER, read_secret(file, "--password-file"))

    def admits(self, headers: Mapping[str, str], arguments: Mapping[str, str]) -> bool:
        """Return whether a request logs in: by ClickHouse's headers, its arguments, Basic or Bearer."""
        authorization = headers.get("Authorization", "")
        if authorization.lower().startswith("bearer "):
            return is_authorised(authorization, self.password)
        if authorization.lower().startswith("basic "):
            user, password = _basic(authorization[6:])
        elif "X-ClickHouse-User" in headers or "X-ClickHouse-Key" in headers:
            user = headers.get("X-ClickHouse-User", _DEFAULT_USER)
            password = headers.get("X-ClickHouse-Key", "")
        else:
            user, password = arguments.get("user", _DEFAULT_USER), arguments.get("password", "")
        same = (_same(user, self.user), _same(password, self.password))  # both, however the first one ends
        return all(same)


def from_a_web_page(headers: Mapping[str, str]) -> bool:
    """Return whether a request comes from a page in somebody's browser.

    Browsers say so themselves. One that was led here under a foreign name (DNS rebinding) names it as host.
    """
    if "Origin" in headers or headers.get("Sec-Fetch-Site", "none") != "none":
        return True
    host = headers.get("Host", "")
    name = host.rpartition("]")[0] + "]" if host.startswith("[") else host.partition(":")[0]
    return bool(host) and not is_loopback(name)


def server_context(certificate: Path | None, key: Path | None) -> ssl.SSLContext | None:
    """Return the TLS context of a server; None without a certificate.

    Raises:
        ConfigError: the files hold no certificate with its key.
    """
    if certificate is None:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(certificate, key or certificate, lambda: "")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", "") or "hold no certificate with its key"
        raise ConfigError(f"--certificate {certificate} and --key {key}: {reason}") from None
    return context


def _basic(encoded: str) -> tuple[str, str]:
    try:
        text = base64.b64decode(encoded.strip(), validate=True).decode("utf-8", errors="surrogateescape")
    except (binascii.Error, ValueError):
        return "", ""
    user, _, password = text.partition(":")
    return user, password


def _same(given: str, wanted: str) -> bool:
    return hmac.compare_digest(
        given.encode("utf-8", "surrogateescape"), wanted.encode("utf-8", "surrogateescape")
    )
