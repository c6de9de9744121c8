"""Sessions of people who logged in: what a signed cookie holds, and who may do what with it."""

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
"""How long a login lasts; whom the provider still knows it lets in again without asking.

Short, because no dashboard knows what was ended at another one, nor that somebody has left a group.
"""

LOGIN_S = 600.0
"""How long somebody may take to log in."""

LONGEST_PATH = 2000
"""Of a page to come back to: it is in a cookie, and of one of more than 4 kB browsers keep nothing."""

MOST_ENDED = 10_000
"""Cookies that were ended before their time, and are remembered."""

_ALGORITHM = "HS256"


@dataclass(frozen=True, slots=True)
class Roles:
    """Who may answer and who may read, by name and by group."""

    triage: frozenset[str] = frozenset()  # names; EVERYBODY stands for all who are let in
    triage_groups: frozenset[str] = frozenset()
    read_groups: frozenset[str] = frozenset()  # empty: whoever logs in may read


class Sessions:
    """Signs and reads cookies. Several dashboards with one ``secret`` know one another's sessions."""

    def __init__(self, roles: Roles, secret: str) -> None:
        self._roles = roles
        key = secret.encode() if secret else secrets.token_bytes(32)
        self._key = hmac.new(key, b"smidgen dashboard: cookies", hashlib.sha256).digest()
        self._ended: dict[str, float] = {}  # id → when it would have ended by itself

    def sign(self, purpose: str, lasts_s: float, **claims: Any) -> str:
        """Return a text that nobody else can make; ``read`` takes it for this purpose alone."""
        now = int(time.time())
        own = {"aud": purpose, "iat": now, "exp": now + int(lasts_s), "jti": secrets.token_hex(16)}
        return jwt.encode({**claims, **own}, self._key, algorithm=_ALGORITHM)

    def read(self, purpose: str, text: str) -> dict[str, Any] | None:
        """Return what was signed; None for what is too old, ended, changed, or of another purpose."""
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
        """End what ``read`` returned before its time; False if it has ended already."""
        now = time.time()
        if claims["jti"] in self._ended:
            return False
        if len(self._ended) >= MOST_ENDED:
            kept = sorted((end, key) for key, end in self._ended.items() if end > now)
            self._ended = {key: end for end, key in kept[-MOST_ENDED // 2 :]}
        self._ended[claims["jti"]] = claims["exp"]
        return True

    def begin(self, name: str, groups: frozenset[str]) -> str:
        """Return the cookie of a session; of the groups it holds those that decide something."""
        deciding = groups & (self._roles.triage_groups | self._roles.read_groups)
        return self.sign("session", SESSION_S, name=name, groups=sorted(deciding))

    def person(self, cookie: str) -> Person | None:
        """Return whose session a cookie is; None for nobody, ``may_read`` is False of who may not."""
        claims = self.read("session", cookie)
        if claims is None:
            return None
        roles, groups, name = self._roles, frozenset(claims["groups"]), str(claims["name"])
        may_answer = bool(roles.triage & {name, EVERYBODY} or roles.triage_groups & groups)
        may_read = may_answer or not roles.read_groups or bool(roles.read_groups & groups)
        return Person(name, may_answer=may_answer, may_read=may_read)


def own_path(text: str, fallback: str = "/regressions") -> str:
    """Return a path of this dashboard, with its query; the fallback for whatever leads elsewhere."""
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
