"""Tasks that run beside the demo's script: the first that fails ends it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class BackgroundTasks:
    """Background tasks that run until the script is through."""

    def __init__(self) -> None:
        self._tasks: list[asyncio.Task[Any]] = []
        self._failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def add(self, work: Coroutine[Any, Any, Any]) -> None:
        """Start a task; its failure is the script's failure."""
        task = asyncio.create_task(work)
        task.add_done_callback(self._done)
        self._tasks.append(task)

    async def lead(self, script: Coroutine[Any, Any, T]) -> T:
        """Run the script to its end, then cancel the background tasks.

        Raises:
            The first exception of the script or a background task.
        """
        main = asyncio.create_task(script)
        try:
            waiting: set[asyncio.Future[Any]] = {main, self._failed}
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            if self._failed.done():
                self._failed.result()
            return await main
        finally:
            everyone = [main, *self._tasks]
            for task in everyone:
                task.cancel()
            await asyncio.gather(*everyone, return_exceptions=True)
            if self._failed.done():
                self._failed.exception()  # retrieved: a second failure at the same moment needs no warning

    def _done(self, task: asyncio.Task[Any]) -> None:
        if task.cancelled() or self._failed.done():
            return
        if error := task.exception():
            self._failed.set_exception(error)
