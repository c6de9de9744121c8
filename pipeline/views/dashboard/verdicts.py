"""Verdicts on regressions, from a form or a program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

from pipeline.messages.verdicts import verdict_from_json
from pipeline.model import Verdict, VerdictKind
from pipeline.model.errors import ConfigError, InvalidMessage

BUTTONS: Mapping[str, str] = {
    "acknowledged": "Acknowledge",
    "true": "True",
    "fixed": "Fixed",
    "expected": "Expected",
    "false": "False",
    "cost-shift": "Cost shift",
    "duplicate": "Duplicate",
}
"""Verdicts of one click, and the text of their button."""


def verdicts_of(
    events: Sequence[tuple[str, str]], said: Mapping[str, str], *, author: str, now: float
) -> list[Verdict]:
    """Return one verdict for each event, checked as the pipeline will check it.

    Args:
        events: Id and service of each.
        said: ``verdict``, and as far as given ``comment`` and ``subject``.
        author: Name of the person.
        now: Time of the verdict, epoch seconds.

    Raises:
        ConfigError: no event, or a wrong verdict.
    """
    if not events:
        raise ConfigError("choose a regression first")
    kind = said.get("verdict", "")
    if kind not in get_args(VerdictKind):
        raise ConfigError(f"verdict: should be one of {', '.join(get_args(VerdictKind))}, not {kind[:40]!r}")
    words: dict[str, Any] = {"author": author, "comment": said.get("comment", "").strip()}
    if subject := said.get("subject", "").strip():
        words["subject"] = subject
    try:
        return [
            verdict_from_json(
                {"kind": "verdict", "event": key, "service": service, "verdict": kind, "time": now}
                | {name: text for name, text in words.items() if text}
            )
            for key, service in events
        ]
    except InvalidMessage as error:
        raise ConfigError(str(error)) from None
