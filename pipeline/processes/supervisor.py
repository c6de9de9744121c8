"""The supervisor of a process's background tasks: none of them ends unseen."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline.model.errors import SmidgenError

if TYPE_CHECKING:  # counting needs no library
    from pipeline.telemetry.instruments import Sample

logger = logging.getLogger(__name__)

FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 60.0
"""Pause before a failed task starts again; it doubles with every failure in a row, up to a longest one."""

PROVEN_S = 60.0
"""Seconds that a restarted task has to run before its failure counts as past."""

CHECK = "background tasks"
"""Name of the check of /ready."""


class TaskFailed(SmidgenError):
    """A background task of this process fails; the text names the task and its error."""


@dataclass(frozen=True, slots=True)
class _Failure:
    """Failures of a task in a row: the last error, their number, and when the task starts again."""

    error: Exception
    in_a_row: int
    starts_at: float  # monotonic

    def __str__(self) -> str:
        text = f"{type(self.error).__name__}: {self.error}" if str(self.error) else repr(self.error)
        return text if self.in_a_row == 1 else f"{text} ({self.in_a_row} times in a row)"


class TaskSupervisor:
    """Runs the tasks and threads that work beside a process's main loop.

    An exception of a task is logged, counted and shown by ``problem``, and the task starts again after a
    pause. A task that returns has done its work. Cancelling the returned task ends it for good.

    Args:
        first_pause_s: Pause before the first restart, in seconds.
        monotonic: Clock of pauses, in seconds.
    """

    def __init__(
        self, first_pause_s: float = FIRST_PAUSE_S, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._first_pause_s = first_pause_s
        self._monotonic = monotonic
        self._failures: dict[str, _Failure] = {}
        self._counts: Counter[str] = Counter()
        self._tasks: set[asyncio.Task[None]] = set()
        self._lock = threading.Lock()

    def run(self, name: str, work: Callable[[], Awaitable[object]]) -> asyncio.Task[None]:
        """Run ``work``, which goes on until it is cancelled, again after every failure."""

        async def run_always() -> None:
            while (pause_s := await self._attempt(name, work)) is not None:
                await asyncio.sleep(pause_s)

        return self._started(run_always())

    def repeat(
        self, name: str, interval_s: float, work: Callable[[], Awaitable[object]]
    ) -> asyncio.Task[None]:
        """Run ``work`` again and again, ``interval_s`` seconds after its end or failure."""

        async def run_rounds() -> None:
            while True:
                await asyncio.sleep(interval_s)
                if await self._attempt(name, work) is None:
                    self._note_success(name)

        return self._started(run_rounds())

    def run_thread(self, name: str, work: Callable[[], None], stopping: threading.Event) -> threading.Thread:
        """Start a daemon thread that runs ``work``, which ends by ``stopping``, again after every failure."""

        def run_always() -> None:
            while True:
                try:
                    return work()
                except Exception as error:  # whatever it is, the task starts again
                    pause_s = self._note_failure(name, error)
                if stopping.is_set():
                    return None
                stopping.wait(pause_s)  # even if it is set meanwhile, the work has something to close

        thread = threading.Thread(target=run_always, name=name, daemon=True)
        thread.start()
        return thread

    def problem(self) -> str:
        """Return the tasks that fail now with their errors, in one line; empty if none does."""
        now = self._monotonic()
        with self._lock:
            failures = dict(self._failures)
        return "; ".join(
            f"{name}: {failure}" for name, failure in failures.items() if now < failure.starts_at + PROVEN_S
        )

    async def check(self) -> None:
        """Pass as a check of /ready.

        Raises:
            TaskFailed: a task fails now.
        """
        if problem := self.problem():
            raise TaskFailed(problem)

    def samples(self) -> list[Sample]:
        """Return the number of failures of each task."""
        from pipeline.telemetry.metrics import TASK_FAILURES

        with self._lock:
            return [(TASK_FAILURES, {"task": name}, count) for name, count in self._counts.items()]

    async def close(self) -> None:
        """Cancel all tasks of the running event loop, and wait for their ends."""
        loop = asyncio.get_running_loop()
        tasks = [task for task in self._tasks if task.get_loop() is loop]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _started(self, work: Awaitable[None]) -> asyncio.Task[None]:
        task = asyncio.ensure_future(work)
        assert isinstance(task, asyncio.Task)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _attempt(self, name: str, work: Callable[[], Awaitable[object]]) -> float | None:
        """Run work once; return the pause before the next attempt, None if it did not fail."""
        try:
            await work()
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            # A cancellation inside the work, such as that of a client's own task, is not meant for this one.
            return self._note_failure(name, TaskFailed("cancelled from within"))
        except Exception as error:  # whatever it is, the task starts again
            return self._note_failure(name, error)
        return None

    def _note_failure(self, name: str, error: Exception) -> float:
        """Log and count a failure; return the pause before the next start."""
        now = self._monotonic()
        with self._lock:
            before = self._failures.get(name)
            is_new = before is None or now >= before.starts_at + PROVEN_S
            in_a_row = 1 if before is None or is_new else before.in_a_row + 1
            pause_s = min(self._first_pause_s * 2.0 ** min(in_a_row - 1, 60), LONGEST_PAUSE_S)
            failure = self._failures[name] = _Failure(error, in_a_row, now + pause_s)
            self._counts[name] += 1
        if in_a_row.bit_count() == 1:  # the first, second, fourth … in a row
            known = isinstance(error, SmidgenError)
            logger.error("%s failed and starts again: %s", name, failure, exc_info=None if known else error)
        return pause_s

    def _note_success(self, name: str) -> None:
        with self._lock:
            failure = self._failures.pop(name, None)
        if failure:
            logger.info("%s works again after %d failures", name, failure.in_a_row)
