"""Layout of the tables over servers: on one, or on every replica of a cluster."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_TABLE = re.compile(r"((?:CREATE TABLE IF NOT EXISTS|ALTER TABLE) \w+)\b")
_ENGINE = re.compile(r"(\) ENGINE = )(\w*MergeTree)\b")
_WINDOW = re.compile(r"\bnon_replicated_deduplication_window = (\d+)")
_KEPT_S = 7 * 86_400
"""How long a replicated table knows the token of an insert; ClickHouse's default is one hour."""

_CLUSTER = re.compile(r"[\w.{}-]+")  # with {cluster}, a macro of the server


@dataclass(frozen=True, slots=True)
class TableLayout:
    """Where and how tables are made.

    ``cluster`` makes each statement run ON CLUSTER, on all of its servers; ``replicated`` gives the tables
    the Replicated form of their engine. Its path and its name of the replica are the server's defaults
    (default_replica_path, default_replica_name): those go with ``cluster`` or with a database whose own
    engine is Replicated.

    Raises:
        ValueError: the cluster has an impossible name.
    """

    cluster: str = ""
    replicated: bool = False

    def __post_init__(self) -> None:
        if self.cluster and not _CLUSTER.fullmatch(self.cluster):
            raise ValueError(f"impossible name of a cluster: {self.cluster!r}")

    def database(self, sql: str) -> str:
        """Return a CREATE DATABASE statement for this layout."""
        return f"{sql}{self._on_cluster}"

    def table(self, sql: str) -> str:
        """Return a statement that makes or alters a table for this layout.

        Raises:
            ValueError: it does neither, so that it cannot run on a cluster.
        """
        if self == ONE_SERVER:
            return sql
        sql, found = _TABLE.subn(lambda match: match[1] + self._on_cluster, sql, count=1)
        if not found:
            raise ValueError(f"neither makes nor alters a table: {sql[:80]!r}")
        if not self.replicated:
            return sql
        sql = _ENGINE.sub(r"\1Replicated\2", sql)
        kept = rf"replicated_deduplication_window = \1, replicated_deduplication_window_seconds = {_KEPT_S}"
        return _WINDOW.sub(kept, sql)

    @property
    def settings(self) -> dict[str, str]:
        """Settings of every query: an insert counts once most replicas have it, and reads see what counts.

        A worker that reads its offset from another replica than the one that took its last insert counts
        samples twice without them.
        """
        if not self.replicated:
            return {}
        return {"insert_quorum": "auto", "insert_quorum_parallel": "0", "select_sequential_consistency": "1"}

    @property
    def _on_cluster(self) -> str:
        return f" ON CLUSTER '{self.cluster}'" if self.cluster else ""


ONE_SERVER: Final = TableLayout()
