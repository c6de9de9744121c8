"""Readiness checks of a worker: its broker and its store."""

from __future__ import annotations

import asyncio
import contextlib
import threading

from pipeline.kafka import Broker, cluster_id
from pipeline.model.errors import StoreUnavailable
from pipeline.storage.interface import Store
from pipeline.worker.health import CHECK_S


class BrokerCheck:
    """Asks the broker which cluster it is."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    async def __call__(self) -> None:
        """Return once it has answered.

        Raises:
            BrokerUnavailable: it does not answer.
        """
        await cluster_id(self._broker, timeout_s=CHECK_S)


class StoreCheck:
    """Asks the store for what it hardly has to look for.

    A store that hangs keeps one thread and no more; the thread does not outlive the process.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._asking: asyncio.Future[None] | None = None

    async def __call__(self) -> None:
        """Return once it has answered.

        Raises:
            StoreUnavailable: it does not answer.
            ConfigError: it refuses the user, or its tables are gone.
        """
        if self._asking is not None and not self._asking.done():
            raise StoreUnavailable("the store has not answered the question before")
        loop = asyncio.get_running_loop()
        self._asking = loop.create_future()
        threading.Thread(target=self._ask, args=(loop, self._asking), daemon=True).start()
        await asyncio.shield(self._asking)

    def _ask(self, loop: asyncio.AbstractEventLoop, answer: asyncio.Future[None]) -> None:
        error: Exception | None = None
        try:
            self._store.extents(["totals"], "")
        except Exception as found:  # noqa: BLE001 - handed to whoever waits
            error = found
        with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(_settle, answer, error)


def _settle(answer: asyncio.Future[None], error: Exception | None) -> None:
    if answer.done():
        return
    if error is None:
        answer.set_result(None)
    else:
        answer.set_exception(error)
        answer.exception()  # seen, even if nobody waits any more
