"""What people said of events, as the store has it."""

from __future__ import annotations

from pipeline.codec.fields import EARLIEST_S, LATEST_S
from pipeline.codec.verdicts import verdict_of_row
from pipeline.model import Verdict
from pipeline.storage.interface import Store


def gather_verdicts(store: Store, service: str | None = None, event: str = "") -> tuple[Verdict, ...]:
    """Return the latest verdict of each author and aspect, oldest first.

    Of one service or of all; of one event or of all. ``pipeline.feedback.latest_verdicts`` gives states.
    """
    equal = {"event": event} if event else {}
    return tuple(
        verdict_of_row(row) for row in store.rows("verdicts", service, EARLIEST_S, LATEST_S, **equal)
    )
