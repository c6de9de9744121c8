"""Ids of handled events, in a file of SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

_MAKE = "CREATE TABLE IF NOT EXISTS smidgen_seen (id TEXT PRIMARY KEY, at TEXT DEFAULT CURRENT_TIMESTAMP)"
_TAKE = "INSERT OR IGNORE INTO smidgen_seen (id) VALUES (?)"
_FORGET = "DELETE FROM smidgen_seen WHERE at < datetime('now', ?)"


class SeenIds:
    """Remembers ids over restarts; processes may share the file.

    Writes of the block of ``once`` through ``connection`` are in one transaction with the id: exactly once.
    Other effects are repeated if the process dies within the block.

    Args:
        path: The file, made if it is not there.
        keep_days: How long an id is remembered; events are kept for 90 days.
    """

    def __init__(self, path: Path | str, *, keep_days: int = 120) -> None:
        self.connection = sqlite3.connect(path, timeout=60, isolation_level=None)
        self.connection.execute(_MAKE)
        self.connection.execute(_FORGET, (f"-{keep_days} days",))

    @contextmanager
    def once(self, event_id: str) -> Iterator[bool]:
        """Yield whether an id is new, and keep it once the block has ended; not if the block raises."""
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            yield self.connection.execute(_TAKE, (event_id,)).rowcount == 1
        except BaseException:
            self.connection.execute("ROLLBACK")
            raise
        self.connection.execute("COMMIT")

    def close(self) -> None:
        """Close the file."""
        self.connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
