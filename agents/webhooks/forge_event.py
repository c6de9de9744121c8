"""A forge's event, the same for every forge: a branch, tag or environment now has these commits."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agents.webhooks.mapping import Occasion
from pipeline.messages import fields
from pipeline.model.clock import from_iso
from pipeline.model.errors import InvalidMessage

SHA = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_LONGEST_TIME = 64  # characters
_OFFSET = re.compile(r"\s*(?:UTC|([+-]\d\d):?(\d\d))$")


@dataclass(frozen=True, slots=True)
class PayloadCommit:
    """A commit as a webhook describes it. ``sha`` is empty where not every webhook of its tag has it."""

    sha: str
    title: str
    author: str = ""
    body: str = ""
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ForgeEvent:
    """That ``name``, a branch, tag or environment of a repository, was deployed."""

    repository: str
    occasion: Occasion
    name: str
    commits: tuple[PayloadCommit, ...]  # oldest first
    before: str = ""  # the commit that a branch or environment had before; empty if it is new or unknown
    after: str = ""  # the commit that it has now; empty if only the tag is known
    time: float | None = None  # when it was deployed, None if the webhook does not say
    left_out: int = 0  # commits that the webhook only counts


def section(raw: Mapping[str, Any], field: str) -> dict[str, Any]:
    """Return an object inside the payload.

    Raises:
        InvalidMessage: it is missing or something else.
    """
    value = raw.get(field)
    if not isinstance(value, dict):
        raise InvalidMessage(f"{field}: should be an object")
    return value


def optional_section(raw: Mapping[str, Any], field: str) -> dict[str, Any]:
    """Return an object inside the payload, empty where it is null or left out."""
    return {} if raw.get(field) is None else section(raw, field)


def text(raw: Mapping[str, Any], field: str) -> str:
    """Return an optional text, empty where it is null or left out; it may be long."""
    value = raw.get(field)
    return "" if value is None else fields.text(raw, field, "", limit=10_000_000)


def sha(raw: Mapping[str, Any], field: str) -> str:
    """Return a commit's id, empty for the zeros that stand for none.

    Raises:
        InvalidMessage: it is missing or not an id.
    """
    value = fields.text(raw, field)
    if not SHA.fullmatch(value):
        raise InvalidMessage(f"{field}: should be a commit id of 40 or 64 hexadecimal digits")
    return value if value.strip("0") else ""


def moment(raw: Mapping[str, Any], *names: str) -> float | None:
    """Return the first of several optional times: epoch seconds or any of the forges' spellings.

    None or an empty text is none.

    Raises:
        InvalidMessage: it is no time.
    """
    for name in names:
        value = raw.get(name)
        if value is None or value == "":
            continue
        if isinstance(value, str):
            if len(value) > _LONGEST_TIME:
                raise InvalidMessage(f"{name}: longer than {_LONGEST_TIME} characters")
            spelt = _OFFSET.sub(lambda m: f"{m[1]}:{m[2]}" if m[1] else "+00:00", value)
            return fields.moment({name: from_iso(spelt)}, name)
        return fields.moment(raw, name)
    return None


def required_moment(raw: Mapping[str, Any], *names: str) -> float:
    """Return the first of several times, as ``moment`` does.

    Raises:
        InvalidMessage: there is none, or it is no time.
    """
    time = moment(raw, *names)
    if time is None:
        raise InvalidMessage(f"{names[0]}: missing")
    return time


def pushed_commits(raw: Mapping[str, Any]) -> tuple[PayloadCommit, ...]:
    """Return the commits of a push, which both forges describe in the same way, oldest first."""
    return tuple(_pushed(commit) for commit in fields.listing(raw, "commits", optional=True))


def payload_commit(sha: str, message: str, author: str = "", files: Sequence[str] = ()) -> PayloadCommit:
    """Split a commit's message into its title and the rest."""
    title, _, body = message.strip().partition("\n")
    return PayloadCommit(sha, title.strip(), author, body.strip(), tuple(files))


def person(raw: Mapping[str, Any]) -> str:
    """Return ``Name <address>`` of an author, as far as it is known."""
    name, address = text(raw, "name"), text(raw, "email")
    return f"{name} <{address}>".strip() if address else name


def _pushed(raw: object) -> PayloadCommit:
    if not isinstance(raw, dict):
        raise InvalidMessage("commits: should be objects")
    files = dict.fromkeys(
        path for kind in ("added", "modified", "removed") for path in fields.texts(raw, kind, limit=100_000)
    )
    author = person(optional_section(raw, "author"))
    return payload_commit(sha(raw, "id"), text(raw, "message"), author, tuple(files))
