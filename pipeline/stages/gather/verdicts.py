"""What people said of events, as the store has it."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from pipeline.analysis.feedback import expectation_of, latest_verdicts, original_of
from pipeline.messages.fields import EARLIEST_S, LATEST_S
from pipeline.messages.lifecycle import open_regression
from pipeline.messages.verdicts import verdict_of_row
from pipeline.model import Scan, Silence, Verdict
from pipeline.model.errors import InvalidMessage
from pipeline.storage.interface import Store

log = logging.getLogger(__name__)


def gather_verdicts(store: Store, service: str | None = None, event: str = "") -> tuple[Verdict, ...]:
    """Return the latest verdict of each author and aspect, oldest first.

    Of one service or of all; of one event or of all. ``pipeline.analysis.feedback.latest_verdicts`` gives
    states.
    """
    equal = {"event": event} if event else {}
    return tuple(
        verdict_of_row(row) for row in store.rows("verdicts", service, EARLIEST_S, LATEST_S, **equal)
    )


def states_before(store: Store, scan: Scan) -> dict[str, Verdict]:
    """Return the states of a service's events by what was said before a scan ended.

    Of what an author said twice only the latest is kept: what a later verdict replaced is not known any more.
    """
    return latest_verdicts(one for one in gather_verdicts(store, scan.service) if one.time < scan.end)


def is_resolved_with_original(store: Store, scan: Scan, event: str, states: Mapping[str, Verdict]) -> bool:
    """Return whether an event is a duplicate of one that was resolved since that was said."""
    original = original_of(event, states)
    if original == event:
        return False
    said = states[event].time
    return bool(store.rows("updates", scan.service, said, scan.end, regression=original, type="resolved"))


def gather_expected(store: Store, scan: Scan) -> list[Silence]:
    """Return the expectations that verdicts make of a service's events."""
    found = []
    for event, said in states_before(store, scan).items():
        if said.verdict != "expected":
            continue
        for row in store.rows("regressions", scan.service, EARLIEST_S, LATEST_S, id=event):
            try:
                one = expectation_of(said, open_regression(row, ()).candidate)
            except InvalidMessage as error:
                log.warning("event %s makes no expectation: it is unreadable: %s", event, error)
                continue
            found += [one] if one else []
    return found
