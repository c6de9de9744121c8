"""Ends of work under an event loop by SIGINT or SIGTERM, in order."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")


def stop_event() -> asyncio.Event:
    """Return an event that SIGINT or SIGTERM sets."""
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop


async def until_signal(work: Coroutine[Any, Any, T], on_signal: Callable[[], None]) -> T | None:
    """Return what the work returns, None if SIGINT or SIGTERM ended it; only the first signal counts.

    A second Ctrl-C must not tear down what is just being stopped in order.
    """
    loop = asyncio.get_running_loop()
    task = asyncio.ensure_future(work)
    interrupted = False

    def stop() -> None:
        nonlocal interrupted
        if not interrupted:
            interrupted = True
            on_signal()
            task.cancel()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop)
    try:
        return await task
    except asyncio.CancelledError:
        if interrupted:
            return None
        raise
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)


@contextmanager
def until_stopped() -> Iterator[threading.Event]:
    """Give an event that SIGINT and SIGTERM set."""
    stop = threading.Event()
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        for number in before:
            signal.signal(number, lambda *_: stop.set())
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
