"""``smidgen detect``: every change point of plain series, offline."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from pipeline.commands.request import argument, json_option, option, takes
from pipeline.commands.tables import Column, print_json_lines, print_table
from pipeline.commands.terminal import print_note, progress_lines
from pipeline.model.clock import to_iso
from pipeline.model.units import counted

if TYPE_CHECKING:  # scipy and pyarrow take a second to load, and a wrong option is to be refused at once
    from pipeline.backtest.seriesfile import Series


@click.command()
@takes
def detect(
    file: Path = argument(),
    duplicates: Literal["mean", "last", "refuse"] = option(
        "refuse",
        help="Value of several points of a series at one time: their mean (of counts their sums), the "
        "last in "
        "FILE, or an error.",
    ),
    decimal: Literal["point", "comma"] | None = option(
        help="What stands before decimals, where FILE does not say, as by 999 and 1.002 between semicolons."
    ),
    as_json: bool = json_option("a series"),
) -> None:
    """Find every change point of each series in FILE, up and down, looking back over all of it.

    FILE is CSV, JSON, JSON lines or Parquet, or - for standard input: with the columns service, metric,
    timestamp (ISO 8601, epoch seconds or years) and either value or samples and total; or with just
    timestamp, value; or with timestamp and a column for each series, as Grafana exports it; or with a single
    column, with or without a name; or an answer of Prometheus to query_range. timestamp may be called time,
    date, datetime or ts, and be in milliseconds, micro- or nanoseconds; without an offset it is in UTC.
    Numbers may have thousands separators, decimal commas and units such as 12 ms. What is assumed of FILE is
    said on stderr.

    There is nothing to set: single outliers are passed over, and noise that follows itself is taken into
    account. A value may be missing: empty, NaN, null or NA; in a single column of CSV also a blank line,
    even before the first value, but not before the column's name.

    index counts from 0 in the order of time, missing points included, and is the first point of the new
    regime; before and after are the levels on both sides up to the next change points.
    """
    from pipeline.backtest.seriesfile import read_series

    every = read_series(file, plain=True, duplicates=duplicates, decimal=decimal, note=print_note)
    several = len({row.service for row in every}) > 1
    rows = []
    with progress_lines("detect", f"{len(every):,} series") as advance:
        for series in every:
            rows.append(_look(series, several))
            advance()
    if as_json:
        print_json_lines(rows)
        return
    points = [{"series": row["series"], **point} for row in rows for point in row["change_points"]]
    print_table(_COLUMNS, points, title=f"{counted(len(points), 'change point')} in {len(rows):,} series")


def _look(series: Series, several: bool) -> dict[str, Any]:
    from pipeline.analysis.detect.offline.segment import segment

    return {
        "series": f"{series.service}/{series.metric}" if several else series.metric,
        "change_points": [
            {
                "index": shift.index,
                "timestamp": None
                if series.timestamps is None
                else to_iso(float(series.timestamps[shift.index])),
                "before": shift.before,
                "after": shift.after,
                "p_value": shift.p_value,
            }
            for shift in segment(series.levels)
        ],
    }


def _change(point: dict[str, Any]) -> float | None:
    before = point["before"]
    return (point["after"] - before) / abs(before) if before else None


_COLUMNS: tuple[Column[dict[str, Any]], ...] = (
    Column("series"),
    Column("index", form="d"),
    Column("timestamp", lambda point: (point["timestamp"] or "")[:16]),
    Column("before", form=".6g"),
    Column("after", form=".6g"),
    Column("change", _change, "+.2%"),
    Column("p-value", "p_value", ".1e"),
)
