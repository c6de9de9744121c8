"""Sessions of people who logged in: the content of a signed cookie, and their rights."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import jwt

from pipeline.views.dashboard.access import EVERYBODY, Person

SESSION_S = 3600.0
"""Duration of a login; the provider lets people whom it still knows in again without a prompt.

Short, because a dashboard does not know of logouts at another one, nor that somebody has left a group.
"""

LOGIN_S = 600.0
"""Longest time for logging in."""

LONGEST_PATH = 2000
"""Longest path to come back to: it is in a cookie, and browsers drop cookies of more than 4 kB."""

MOST_ENDED = 10_000
"""Most ended cookies that are remembered."""

_ALGORITHM = "HS256"


@dataclass(frozen=True, slots=True)
class Roles:
    """People who may answer and who may read, by name and by group."""

    triage: frozenset[str] = frozenset()  # names; EVERYBODY stands for all who log in
    triage_groups: frozenset[str] = frozenset()
    read_groups: frozenset[str] = frozenset()  # empty: everybody who logs in may read


class Sessions:
    """Signs and reads cookies. Several dashboards with one ``secret`` accept one another's sessions."""

    def __init__(self, roles: Roles, secret: str) -> None:
        self._roles = roles
        key = secret.encode() if secret else secrets.token_bytes(32)
        self._key = hmac.new(key, b"smidgen dashboard: cookies", hashlib.sha256).digest()
        self._ended: dict[str, float] = {}  # id → its original expiry

    def sign(self, purpose: str, lasts_s: float, **claims: Any) -> str:
        """Return a signed text that nobody else can make; ``read`` accepts it for this purpose alone."""
        now = int(time.time())
        own = {"aud": purpose, "iat": now, "exp": now + int(lasts_s), "jti": secrets.token_hex(16)}
        return jwt.encode({**claims, **own}, self._key, algorithm=_ALGORITHM)

    def read(self, purpose: str, text: str) -> dict[str, Any] | None:
        """Return the signed content; None if it is too old, ended, changed, or of another purpose."""
        try:
            claims: dict[str, Any] = jwt.decode(
                text,
                self._key,
                algorithms=[_ALGORITHM],
                audience=purpose,
                options={"require": ["exp", "aud", "jti"]},
            )
        except jwt.PyJWTError:
            return None
        return None if claims["jti"] in self._ended else claims

    def end(self, claims: dict[str, Any]) -> bool:
        """End the result of ``read`` before its expiry; False if it has ended already."""
        now = time.time()
        if claims["jti"] in self._ended:
            return False
        if len(self._ended) >= MOST_ENDED:
            remaining = sorted((end, key) for key, end in self._ended.items() if end > now)
            self._ended = {key: end for end, key in remaining[-MOST_ENDED // 2 :]}
        self._ended[claims["jti"]] = claims["exp"]
        return True

    def begin(self, name: str, groups: frozenset[str]) -> str:
        """Return the cookie of a session, with those groups that decide on rights."""
        deciding = groups & (self._roles.triage_groups | self._roles.read_groups)
        return self.sign("session", SESSION_S, name=name, groups=sorted(deciding))

    def person(self, cookie: str) -> Person | None:
        """Return the person of a cookie; None without one; ``may_read`` is False without the right."""
        claims = self.read("session", cookie)
        if claims is None:
            return None
        roles, groups, name = self._roles, frozenset(claims["groups"]), str(claims["name"])
        may_answer = bool(roles.triage & {name, EVERYBODY} or roles.triage_groups & groups)
        may_read = may_answer or not roles.read_groups or bool(roles.read_groups & groups)
        return Person(name, may_answer=may_answer, may_read=may_read)


def own_path(text: str, fallback: str = "/regressions") -> str:
    """Return a path of this dashboard, with its query; the fallback for addresses elsewhere."""
    plain = (
        len(text) <= LONGEST_PATH
        and text.isprintable()
        and "\\" not in text
        and text.startswith("/")
        and not text.startswith("//")
    )
    try:
        parts = urlsplit(text)
    except ValueError:
        return fallback
    return text if plain and not parts.scheme and not parts.netloc else fallback
