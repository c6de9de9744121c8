"""Order of test files in the processes of pytest-xdist: waiting and counting run side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

COUNTING_BEGINS_AT = 3
"""So many processes there are at least where one of them is kept for files that count."""


class WaitingBesideCounting(LoadFileScheduling):  # type: ignore[misc] # xdist ships no types
    """Scheduler: the first process takes files that count, the others files that wait.

    A process without files of its kind takes files of the other. Within a kind files keep the order of
    collection.
    """

    def __init__(self, config: pytest.Config, log: Producer, waits: Callable[[str], bool]) -> None:
        super().__init__(config, log)
        self._waits = waits

    def _assign_work_unit(self, node: WorkerController) -> None:
        waiting = not counts(node.gateway.id, self.numnodes)
        chosen = next((file for file in self.workqueue if self._waits(file) == waiting), None)
        if chosen is not None:
            self.workqueue.move_to_end(chosen, last=False)
        super()._assign_work_unit(node)


def counts(worker: str, processes: int) -> bool:
    """Return whether a process (``gw0``) is the one that counts while the others wait."""
    return worker == "gw0" and processes >= COUNTING_BEGINS_AT


def counting_worker(environment: Mapping[str, str]) -> bool:
    """Return whether this process is the counting one, by the environment of pytest-xdist."""
    processes = int(environment.get("PYTEST_XDIST_WORKER_COUNT", 0))
    return counts(environment.get("PYTEST_XDIST_WORKER", ""), processes)
