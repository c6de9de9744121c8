"""Labels of threads and asyncio tasks, for work whose frames cannot be marked, such as that of a span."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

from agents.inprocess.marks import Label, P, R, labels_above, labels_of, sampling, under_labels
from agents.inprocess.tasks import awaiting_tasks, waiting_frames

Carrier: TypeAlias = Any
"""A task, or a thread's identity where no task runs."""

Labels: TypeAlias = Callable[[], tuple[Label, ...]]
"""Returns the labels of a carrier when it is sampled."""

_of_threads: dict[int, tuple[Labels, ...]] = {}
_of_tasks: WeakKeyDictionary[Any, tuple[Labels, ...]] = WeakKeyDictionary()


def current_carrier() -> Carrier:
    """Return the carrier that runs the caller."""
    asyncio: Any = sys.modules.get("asyncio")
    if asyncio and asyncio._get_running_loop() is not None and (task := asyncio.current_task()):
        return task
    return threading.get_ident()


def attach(carrier: Carrier, labels: Labels) -> None:
    """Label a carrier; the labels attached last count."""
    table = _table(carrier)
    table[carrier] = (*table.get(carrier, ()), labels)


def detach(carrier: Carrier, labels: Labels) -> None:
    """Take labels off a carrier."""
    table = _table(carrier)
    remaining = tuple(attached for attached in table.get(carrier, ()) if attached is not labels)
    if remaining:
        table[carrier] = remaining
    else:
        table.pop(carrier, None)


def carried_labels(carrier: Carrier) -> tuple[Label, ...]:
    """Return the labels of a carrier."""
    attached = _table(carrier).get(carrier)
    return attached[-1]() if attached else ()


def carry(fn: Callable[P, R]) -> Callable[P, R]:
    """Return ``fn`` under the annotations of the caller, wherever it runs: a pool's thread, another task."""
    if not sampling.on:
        return fn
    labels = dict.fromkeys(labels_above(sys._getframe(1)))
    carrier = current_carrier()
    labels.update(dict.fromkeys(carried_labels(carrier)))
    for task in () if isinstance(carrier, int) else awaiting_tasks(carrier):
        labels.update(dict.fromkeys(carried_labels(task)))
        for frame in waiting_frames(task):
            labels.update(dict.fromkeys(labels_of(frame)))
    return under_labels(fn, tuple(labels))


def forget_carriers() -> None:
    """Forget all labels: after a fork, the child has only one thread."""
    _of_threads.clear()


def _table(carrier: Carrier) -> Any:
    return _of_threads if isinstance(carrier, int) else _of_tasks
