"""Passwords and session tokens."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json

from .settings import PASSWORD_ROUNDS

SECRET = b"not a secret: this shop sells nothing"


def hash_password(name: str, password: str) -> str:
    """Return the slow hash that is stored for a password."""
    salt = hashlib.sha256(name.encode()).digest()
    return hashlib.pbkdf2_hmac("sha256", password.encode(), salt, PASSWORD_ROUNDS).hex()


def sign_token(name: str, scopes: list[str]) -> str:
    """Return a session token for each scope, chained so that none can be taken out."""
    seal = b""
    parts = []
    for scope in scopes:
        claim = json.dumps({"name": name, "scope": scope, "seal": seal.hex()}, sort_keys=True).encode()
        seal = hmac.new(SECRET, claim, "sha256").digest()
        parts.append(base64.urlsafe_b64encode(claim + seal).decode())
    return ".".join(parts)[-200:]
