"""States of events by what people said of them."""

from __future__ import annotations

from collections.abc import Iterable

from pipeline.model import Verdict


def latest_verdicts(said: Iterable[Verdict]) -> dict[str, Verdict]:
    """Return the state of each event that has one: its latest verdict, causes left out, by the event's id.

    Of two of the same time that of the later author by name counts, so that the order they come in does not.
    """
    return _latest(one for one in said if one.verdict != "cause")


def confirmed_causes(said: Iterable[Verdict]) -> dict[str, Verdict]:
    """Return the latest cause that was confirmed of each event, by the event's id."""
    return _latest(one for one in said if one.verdict == "cause")


def _latest(said: Iterable[Verdict]) -> dict[str, Verdict]:
    ordered = sorted(said, key=lambda one: (one.time, one.author))
    return {one.event: one for one in ordered}
