"""Which test file each process of pytest-xdist runs next: waiting and counting go on side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

COUNTING_BEGINS_AT = 3
"""So many processes there are at least where one of them is kept for files that count."""


class WaitingBesideCounting(LoadFileScheduling):  # type: ignore[misc] # xdist ships no types
    """Gives files that wait to all processes but the first, which takes those that count; later all help all.

    The order within each kind is that in which the tests were collected.
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
    """Return whether this process is it, by what pytest-xdist says in the environment."""
    processes = int(environment.get("PYTEST_XDIST_WORKER_COUNT", 0))
    return counts(environment.get("PYTEST_XDIST_WORKER", ""), processes)
