"""Progress of counted tables: one question for several of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection

from pipeline.storage.gcpu_series import Columns
from pipeline.storage.interface import CountTable, Extent, Extents
from pipeline.storage.schema import counted_time

_ASKED_AT = "SELECT '', '', 0, -1, toUnixTimestamp64Milli(now64(3))"
"""The row without a table: when the store was asked, by its own clock."""


def _extents_of_all(number: int) -> str:
    """Return the question of how far one table goes; its projection answers it, which has no times."""
    return f"""
        SELECT {{name{number}:String}}, topic, partition, max(last_offset), 0
        FROM {{table{number}:Identifier}}
        WHERE stream = {{stream:String}}
        GROUP BY topic, partition
    """


def _extents_of_service(number: int) -> str:
    return f"""
        SELECT
            {{name{number}:String}}, topic, partition,
            max(last_offset), max(toUnixTimestamp64Milli({{time{number}:Identifier}}))
        FROM {{table{number}:Identifier}}
        WHERE stream = {{stream:String}} AND service = {{service:String}}
        GROUP BY topic, partition
    """


def read_extents(
    columns: Columns, tables: Collection[CountTable], stream: str, service: str | None
) -> dict[CountTable, Extents]:
    """Return the progress of rows in each partition by table; see Store.extents."""
    values = {"stream": stream, "service": service or ""}
    for number, table in enumerate(tables):
        values |= {f"name{number}": table, f"table{number}": table, f"time{number}": counted_time(table)}
    form = _extents_of_all if service is None else _extents_of_service
    selected = [form(number) for number in range(len(tables))]
    rows = columns(" UNION ALL ".join([*selected, _ASKED_AT]), 5, values)
    progress: dict[str, dict[tuple[str, int], Extent]] = defaultdict(dict)
    for table, topic, partition, offset, time_ms in zip(*rows, strict=True):
        progress[table][str(topic), int(partition)] = Extent(int(offset), int(time_ms) / 1000)
    asked_at = progress[""]["", 0].last_time
    return {table: Extents(progress[table], asked_at) for table in tables}
