"""Worker processes of a benchmark, which end with the process that started them."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context, parent_process
from multiprocessing.process import BaseProcess


def worker_pool(processes: int) -> ProcessPoolExecutor:
    """Return a pool of fresh processes: they inherit no threads and no open files.

    What ends the benchmark ends them too, be it a signal that leaves it no time to say so: a run of a large
    fleet takes minutes of a core, and its result would go to nobody.
    """
    return ProcessPoolExecutor(processes, mp_context=get_context("spawn"), initializer=_end_with_parent)


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        threading.Thread(target=_end_after, args=(parent,), daemon=True).start()


def _end_after(parent: BaseProcess) -> None:
    parent.join()
    os._exit(1)
