"""Signatures of requests, whose comparisons take the same time for any input."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping

from pipeline.model.units import DAY_S

TOLERANCE_S = 300.0
"""How far the time of a Standard Webhooks signature may lie from now; an older request may be a replay."""

REDELIVERY_S = 3 * DAY_S
"""How long after an event its delivery is taken where the signature has no time of its own.

GitHub sends a delivery again for as long. A later one was recorded by somebody.
"""

SIGNING_PREFIX = "whsec_"
"""What begins a Standard Webhooks secret; the rest is the key in base64."""


def github_signed(secret: str, headers: Mapping[str, str], body: bytes) -> bool:
    """Check ``X-Hub-Signature-256``: HMAC-SHA256 over the body as it was received."""
    digest = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return _equal(f"sha256={digest}", headers.get("X-Hub-Signature-256", ""))


def gitlab_signed(secret: str, headers: Mapping[str, str], body: bytes, now: float) -> bool:
    """Check GitLab's signature if the secret is a signing token (``whsec_…``), else ``X-Gitlab-Token``."""
    if secret.startswith(SIGNING_PREFIX):
        return _standard_signed(secret, headers, body, now)
    return _equal(secret, headers.get("X-Gitlab-Token", ""))


def hex_signed(secret: str, given: str, body: bytes) -> bool:
    """Check a header that holds HMAC-SHA256 over the body as it was received, in hexadecimal digits."""
    return _equal(hmac.new(secret.encode(), body, hashlib.sha256).hexdigest(), given)


def token_given(secret: str, given: str) -> bool:
    """Check a header that holds the secret itself, alone or as a bearer token."""
    return _equal(secret, given.removeprefix("Bearer "))


def signing_key(secret: str) -> bytes | None:
    """Return the key of a signing token, None if it is not base64."""
    try:
        return base64.b64decode(secret.removeprefix(SIGNING_PREFIX), validate=True) or None
    except (binascii.Error, ValueError):
        return None


def _standard_signed(secret: str, headers: Mapping[str, str], body: bytes, now: float) -> bool:
    """Check ``webhook-signature`` as Standard Webhooks defines it: over id, time and body."""
    key = signing_key(secret)
    identity, stamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if key is None or not identity or not (stamp.isascii() and stamp.isdecimal() and len(stamp) < 15):
        return False
    if abs(now - int(stamp)) > TOLERANCE_S:
        return False
    signed = b".".join([_bytes(identity), stamp.encode(), body])
    expected = "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    offered = headers.get("webhook-signature", "").split(" ")[:16]  # several while a key is exchanged
    return any(_equal(expected, signature) for signature in offered)


def _equal(expected: str, signature: str) -> bool:
    return hmac.compare_digest(_bytes(expected), _bytes(signature))


def _bytes(header: str) -> bytes:
    """Return a header as it was sent: bytes that are not UTF-8 stand in it as lone surrogates."""
    return header.encode("utf-8", errors="surrogateescape")
