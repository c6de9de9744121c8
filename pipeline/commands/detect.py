"""``smidgen detect``: every change point of plain series, offline."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import orjson
from rich.table import Table
from rich.text import Text

from pipeline.commands.terminal import escape_controls, print_note, progress_lines, table_console
from pipeline.model.clock import to_iso
from pipeline.model.units import counted

if TYPE_CHECKING:  # scipy and pyarrow take a second to load, and a wrong option is to be refused at once
    from pipeline.backtest.seriesfile import Duplicates, Series

_DUPLICATES = ("mean", "last", "refuse")
_NAME_WIDTH = 16  # of the first column, however narrow the terminal is


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--duplicates",
    type=click.Choice(_DUPLICATES),
    default="refuse",
    show_default=True,
    help="What becomes of points of a series at one time: their mean (of counts their sums), the last in "
    "FILE, or an error.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a series.")
def detect(file: Path, duplicates: Duplicates, as_json: bool) -> None:
    """Find every change point of each series in FILE, up and down, looking back over all of it.

    FILE is CSV, JSON, JSON lines or Parquet, or - for standard input: with the columns service, metric,
    timestamp (ISO 8601, epoch seconds or years) and either value or samples and total; or with just
    timestamp, value; or with timestamp and a column for each series, as Grafana exports it; or with a single
    column, with or without a name; or an answer of Prometheus to query_range. timestamp may be called time,
    date, datetime or ts, and be in milliseconds, micro- or nanoseconds. Numbers may have thousands
    separators, decimal commas and units such as 12 ms. What is assumed of FILE is said on stderr.

    There is nothing to set: single outliers are passed over, and noise that follows itself is taken into
    account. A value may be missing: empty, NaN, null or NA; in a single column of CSV also a blank line,
    even before the first value, but not before the column's name.

    index counts from 0 in the order of time, missing points included, and is the first point of the new
    regime; before and after are the levels on both sides up to the next change points.
    """
    from pipeline.backtest.seriesfile import read_series

    every = read_series(file, plain=True, duplicates=duplicates, note=print_note)
    several = len({row.service for row in every}) > 1
    rows = []
    with progress_lines("detect", f"{len(every):,} series") as advance:
        for series in every:
            rows.append(_look(series, several))
            advance()
    if as_json:
        for row in rows:
            click.echo(orjson.dumps(row).decode())
        return
    table_console().print(_table(rows))


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


def _table(rows: list[dict[str, Any]]) -> Table:
    changes = sum(len(row["change_points"]) for row in rows)
    table = Table(title=f"{counted(changes, 'change point')} in {len(rows):,} series", title_justify="left")
    table.add_column("series", min_width=_NAME_WIDTH, overflow="fold")
    table.add_column("index", justify="right", no_wrap=True)
    table.add_column("timestamp", no_wrap=True)
    for name in ("before", "after", "change", "p-value"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        for point in row["change_points"]:
            before, after = point["before"], point["after"]
            table.add_row(
                Text(escape_controls(row["series"])),
                str(point["index"]),
                (point["timestamp"] or "")[:16],
                f"{before:.6g}",
                f"{after:.6g}",
                f"{(after - before) / abs(before):+.2%}" if before else "",
                f"{point['p_value']:.1e}",
            )
    return table
