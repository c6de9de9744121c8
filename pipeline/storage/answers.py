"""Answers of the store, held against how many rows the server says it sent.

A server whose disk is full answers 200 without a body to queries that succeeded, as it cannot keep the answer
until its end. That reads like a result without rows: a scan would find no series, and a worker no offsets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from clickhouse_connect.driver.client import Client
from clickhouse_connect.driver.query import QueryResult
from numpy.typing import NDArray

from pipeline.model.errors import StoreUnavailable

_ROWS = "result_rows"


def whole_rows(result: QueryResult) -> Sequence[Sequence[Any]]:
    """Return the rows of an answer.

    Raises:
        StoreUnavailable: fewer rows came than the server sent.
    """
    _check(len(result.result_rows), result.summary)
    return result.result_rows


def whole_columns(result: QueryResult, width: int) -> Sequence[Sequence[Any]]:
    """Return the columns of an answer; one without rows has them too.

    Raises:
        StoreUnavailable: fewer rows came than the server sent.
    """
    columns = result.result_columns or [[]] * width
    _check(len(columns[0]), result.summary)
    return columns


def whole_numbers(client: Client, sql: str, values: Mapping[str, Any]) -> NDArray[np.void]:
    """Run a query of numbers; return a structured array, without a Python object a number.

    Raises:
        StoreUnavailable: fewer rows came than the server sent.
    """
    context = client.create_query_context(sql, dict(values), use_numpy=True)
    result: Any = client.query(context=context)
    found: NDArray[np.void] = result.np_result
    _check(len(found), result.summary)
    return found


def _check(rows: int, summary: Mapping[str, Any]) -> None:
    """Check the number of rows; chDB does not say how many it sent, and answers from memory."""
    sent = int(summary.get(_ROWS) or 0)
    if rows < sent:
        raise StoreUnavailable(f"the store sent {sent:,} rows, and {rows:,} came: its disk may be full")


def rows_of(series: NDArray[np.uint64], keys: NDArray[np.uint64]) -> tuple[NDArray[np.intp], list[int]]:
    """Place each count on a row: its row, and for each row the index of its key in ``keys``.

    Keys that no count has (their first rows came in between two queries) get no row.
    """
    order = np.argsort(keys)
    index = order[np.searchsorted(keys, series, sorter=order)] if len(keys) else np.empty(0, np.intp)
    found = np.unique(index)
    return np.searchsorted(found, index), found.tolist()
