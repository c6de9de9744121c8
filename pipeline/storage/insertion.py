"""INSERT of one block, through the driver."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import uuid4

from clickhouse_connect.driver.client import Client

from pipeline.storage.interface import Table
from pipeline.storage.schema import COLUMNS, prepare

_UNLIMITED = str(1 << 40)
_ONE_BLOCK = {
    "async_insert": "0",
    "max_insert_threads": "1",
    "max_insert_block_size": _UNLIMITED,
    "min_insert_block_size_rows": _UNLIMITED,
    "min_insert_block_size_bytes": _UNLIMITED,
}
"""Settings under which one INSERT is one block, hence one part, hence atomic."""


def insert_block(
    client: Client,
    table: Table,
    columns: Mapping[str, Sequence[Any]],
    token: str,
    asked_at: float | None,
) -> None:
    """Add rows as one part; see Store.insert. Failures are the driver's.

    What ``asked_at`` says travels in the column ``inserted``, which is the time of the INSERT otherwise: the
    table's constraint ``in_time`` looks at it once the whole block has arrived.

    Raises:
        ValueError: a column is missing, unknown, or not as long as the others.
    """
    data = prepare(table, columns)
    rows = len(data[0])
    if not rows:
        return
    types = dict(COLUMNS[table])
    if asked_at is not None:
        types["inserted"] = "DateTime('UTC')"
        data.append([int(asked_at)] * rows)
    # Without a token, equal rows are two facts; ClickHouse would take them for one insert repeated.
    once = {"insert_deduplicate": "1", "insert_deduplication_token": token or uuid4().hex}
    context = client.create_insert_context(
        table,
        column_names=list(types),
        column_type_names=list(types.values()),
        column_oriented=True,
        settings={**_ONE_BLOCK, **once},
        data=data,
    )
    context.block_row_count = rows
    client.data_insert(context)
