"""Addresses of source lines: a template that an operator gives, filled with what commits say."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import quote, urlsplit

SOURCE_FIELDS = ("service", "commit", "path", "line")

_FIELD = re.compile(r"\{([^{}]*)\}")
_STRANGE = re.compile(r"[\s\x00-\x1f\x7f\\\"<>]")


def check_source_url(template: str) -> str:
    """Return a template of SOURCE_FIELDS in braces, for http or https; an empty one stands for no links.

    Raises:
        ValueError: what is wrong with it, in one line.
    """
    if not template:
        return template
    parts = urlsplit(template)
    if parts.scheme not in ("http", "https") or not parts.hostname or _STRANGE.search(template):
        raise ValueError("should be an address that begins with http:// or https://")
    if "@" in parts.netloc or "{" in parts.netloc:
        raise ValueError("should name a host, without a user and without fields")
    known = ", ".join(f"{{{field}}}" for field in SOURCE_FIELDS)
    unknown = [field for field in _FIELD.findall(template) if field not in SOURCE_FIELDS]
    if unknown:
        raise ValueError(f"has no field {{{unknown[0]}}}; there are {known}")
    if "{" in _FIELD.sub("", template) or "}" in _FIELD.sub("", template):
        raise ValueError(f"has a brace without its other half; fields are {known}")
    if "{path}" not in template:
        raise ValueError("should have the field {path}")
    return template


def fill(template: str, values: Mapping[str, str]) -> str:
    """Return a template with its known fields escaped; slashes stay, and so do other words in braces."""
    return _FIELD.sub(
        lambda field: quote(values[field[1]], safe="/") if field[1] in values else field[0], template
    )


def source_url(template: str, service: str, commit: str, path: str, line: int) -> str:
    """Return the address of a line; empty where a value would lead elsewhere than the template says.

    A browser resolves ``.`` and ``..`` between slashes, escaped or not, before it asks.

    Args:
        template: Checked.
        service: Of the commit.
        commit: Its id.
        path: Of a file, from the top of the repository.
        line: From 1; 0: not known, the first then.
    """
    values = {"service": service, "commit": commit, "path": path, "line": str(line or 1)}
    used = [values[field] for field in _FIELD.findall(template)]
    if not template or not all(map(_stays, used)):
        return ""
    return fill(template, values)


def _stays(value: str) -> bool:
    return not {"", ".", ".."}.intersection(value.split("/"))
