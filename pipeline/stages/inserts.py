"""INSERTs of blocks that do not need one another, several at once."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from types import TracebackType
from typing import Any, Self

from pipeline.storage.interface import CountTable, Store

AT_ONCE = 4
"""Most INSERTs under way: one partition of one table each."""


class Inserts:
    """INSERTs under way, of which all have ended when the ``with`` block is left.

    While the store is at one, the caller makes the rows of the next. Once one has failed, no further one
    begins: that is raised, StoreUnavailable as a rule, and what came of the others is not known.

    Args:
        store: Takes the rows.
        max_rows: Most rows under way; a block of more goes alone.
    """

    def __init__(self, store: Store, max_rows: int) -> None:
        self._store = store
        self._max_rows = max_rows
        self._threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="insert")
        self._rows: dict[Future[None], int] = {}  # of those under way

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._threads.shutdown()
        if error is None:
            self._collect(self._rows)

    def await_room(self, rows: int) -> None:
        """Wait until so many rows can begin at once: what is checked after this holds when they do."""
        self._collect([insert for insert in self._rows if insert.done()])
        while self._rows and (len(self._rows) == AT_ONCE or sum(self._rows.values()) + rows > self._max_rows):
            self._collect(wait(self._rows, return_when=FIRST_COMPLETED).done)

    def begin(
        self, table: CountTable, columns: Mapping[str, Sequence[Any]], *, token: str, asked_at: float
    ) -> None:
        """Begin to insert a block; see Store.insert."""
        insert = self._threads.submit(self._store.insert, table, columns, token=token, asked_at=asked_at)
        self._rows[insert] = len(columns["partition"])

    def _collect(self, ended: Collection[Future[None]]) -> None:
        for insert in list(ended):
            del self._rows[insert]
            insert.result()
