"""Redaction: values that nobody may read become a keyed hash, the same one for the same value."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlencode

import orjson

HEADERS = frozenset({"authorization", "cookie", "set-cookie", "proxy-authorization", "x-api-key"})
"""Headers that are always redacted."""

FIELDS = frozenset(
    {
        "password",
        "passwd",
        "secret",
        "token",
        "access_token",
        "refresh_token",
        "id_token",
        "api_key",
        "apikey",
    }
)
"""Query parameters and fields of bodies that are always redacted."""

_DIGEST_BYTES = 8
_FORM = "application/x-www-form-urlencoded"


class Unreadable(ValueError):
    """A body that cannot be parsed, and may hold values that have to be redacted."""


@dataclass(frozen=True, slots=True)
class Redaction:
    """Names of redacted headers, parameters and fields, in lower case, and the key of the hash."""

    key: bytes
    headers: frozenset[str] = HEADERS
    fields: frozenset[str] = FIELDS

    def digest(self, value: str) -> str:
        """Return the keyed hash of a value, which is the same for the same value and key."""
        keyed_hash = hashlib.blake2b(value.encode(), digest_size=_DIGEST_BYTES, key=self.key)
        return f"redacted-{keyed_hash.hexdigest()}"

    def of_headers(self, headers: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
        """Return headers with redacted values."""
        return tuple(
            (name, self.digest(value) if name.lower() in self.headers else value) for name, value in headers
        )

    def of_target(self, target: str) -> str:
        """Return a path and query with redacted parameters; other parameters keep their spelling."""
        path, mark, query = target.partition("?")
        return path + mark + "&".join(self._parameter(part) for part in query.split("&")) if mark else path

    def of_body(self, body: bytes, content_type: str, encoding: str = "") -> bytes:
        """Return a body with redacted fields, if it is JSON or a form; other bodies are returned as they are.

        Raises:
            Unreadable: it is compressed, or no JSON or form though it says so.
        """
        if not body or not self.fields:
            return body
        kind = content_type.partition(";")[0].strip().lower()
        is_json = kind == "application/json" or kind.endswith("+json")
        if not is_json and kind != _FORM:
            return body
        if encoding not in ("", "identity"):
            raise Unreadable(f"is compressed by {encoding}")
        try:
            if kind == _FORM:
                return self._form(body)
            content = orjson.loads(body)
        except ValueError:
            raise Unreadable(f"is no {kind}") from None
        redacted = self._json(content)
        return orjson.dumps(redacted) if redacted != content else body

    def _parameter(self, part: str) -> str:
        pairs = parse_qsl(part, keep_blank_values=True)
        if not pairs or pairs[0][0].lower() not in self.fields:
            return part
        return urlencode([(pairs[0][0], self.digest(pairs[0][1]))])

    def _form(self, body: bytes) -> bytes:
        text = body.decode()
        return "&".join(self._parameter(part) for part in text.split("&")).encode()

    def _json(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {
                name: self.digest(_spelt(inner)) if name.lower() in self.fields else self._json(inner)
                for name, inner in value.items()
            }
        return [self._json(inner) for inner in value] if isinstance(value, list) else value


def _spelt(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()
