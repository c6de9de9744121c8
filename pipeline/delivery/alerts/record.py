"""Record of deliveries in the store: waiting, sent, and answered."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from pipeline.delivery.alerts.alert import decode_alert, encode_alert
from pipeline.delivery.alerts.delivery import Delivery
from pipeline.messages.records import columns_of
from pipeline.model.errors import InvalidMessage, StoreUnavailable
from pipeline.storage.interface import RowQuery, Store
from pipeline.storage.schema import EVER

log = logging.getLogger(__name__)

RETRY_S = 2.0

_Found = TypeVar("_Found")


class DeliveryRecord:
    """Deliveries as rows of ``alerts``. Every call waits until the store answers, however long it takes."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def load(self, since: float) -> list[Delivery]:
        """Return the deliveries of events from ``since`` (event time, epoch seconds) on, each state once.

        A delivery whose alert cannot be read is logged and left out; the others are sent.
        """
        rows = await _patiently(lambda: self._store.rows(RowQuery("alerts", None, since, EVER[1])))
        return [read for row in rows if (read := _readable(row))]

    async def write(self, deliveries: Sequence[Delivery]) -> None:
        """Store deliveries with their states."""
        if deliveries:
            columns = columns_of([_row(delivery) for delivery in deliveries])
            await _patiently(lambda: self._store.insert("alerts", columns))

    async def answered(self, service: str, events: Sequence[str]) -> bool:
        """Return whether a person has answered one of these events."""
        for event in events:
            query = partial(self._store.rows, RowQuery("verdicts", service, *EVER, equal={"event": event}))
            if await _patiently(query):
                return True
        return False


async def _patiently(call: Callable[[], _Found]) -> _Found:
    """Call the store in a thread, again until it answers."""
    is_logged = False
    while True:
        try:
            return await asyncio.to_thread(call)
        except StoreUnavailable as error:
            if not is_logged:
                log.warning("the store does not answer, waiting: %s", error)
            is_logged = True
            await asyncio.sleep(RETRY_S)


def _row(delivery: Delivery) -> dict[str, Any]:
    return {
        "id": delivery.id,
        "service": delivery.alert.service,
        "time": delivery.alert.time,
        "event": delivery.alert.event,
        "regression": delivery.alert.regression,
        "target": delivery.target,
        "manner": delivery.manner,
        "state": delivery.state,
        "partition": delivery.partition,
        "due_time": delivery.due,
        "changed_time": delivery.changed,
        "thread": delivery.thread,
        "detail": delivery.detail,
        "content": encode_alert(delivery.alert),
    }


def _readable(row: dict[str, Any]) -> Delivery | None:
    try:
        return _delivery(row)
    except InvalidMessage as error:
        log.error("delivery %s of event %s is unreadable: %s", row["id"], row["event"], error)
        return None


def _delivery(row: dict[str, Any]) -> Delivery:
    return Delivery(
        id=row["id"],
        alert=decode_alert(row["content"]),
        target=row["target"],
        manner=row["manner"],
        partition=int(row["partition"]),
        due=row["due_time"],
        state=row["state"],
        changed=row["changed_time"],
        thread=row["thread"],
        detail=row["detail"],
    )
