"""The formats of series files, known by their content."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pipeline.backtest.seriesfile.content import Content
from pipeline.backtest.seriesfile.delimited import read_delimited
from pipeline.backtest.seriesfile.json_file import read_json
from pipeline.backtest.seriesfile.parquet import read_parquet_table
from pipeline.backtest.seriesfile.table import Table
from pipeline.model.errors import ConfigError

_BLANK = b" \t\r\n\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class SeriesFormat:
    """A format of series files."""

    name: str
    begins: tuple[bytes, ...]  # with what the content begins, but for blanks; none: anything else
    endings: tuple[str, ...]  # of the names of files that can be nothing else
    read: Callable[[Content], Table]


FORMATS = (
    SeriesFormat("Parquet", (b"PAR1",), (".parquet",), read_parquet_table),
    SeriesFormat("JSON", (b"{", b"["), (".json", ".jsonl", ".ndjson"), read_json),
    SeriesFormat("CSV", (), (".csv", ".tsv"), read_delimited),
)

_OTHERS = {
    b"PK\x03\x04": "an Excel workbook or another zip archive; save it as CSV",
    b"\xd0\xcf\x11\xe0": "an Excel workbook; save it as CSV",
    b"\x28\xb5\x2f\xfd": "packed by zstd; unpack it first",
    b"\xfd7zXZ": "packed by xz; unpack it first",
    b"Result: ": "a table of InfluxDB for people; write it with influx query --raw",
    b"name: ": "a table of InfluxDB for people; write it with influx -format csv",
    b"<": "HTML or XML, perhaps the page of a login",
}
"""What files that are often given begin with, and what to do."""


def read_table(content: Content) -> Table:
    """Read a file in the format that its content, or else its name, says; by default in CSV.

    Raises:
        ConfigError: it is of a format that is not read, or is wrong.
    """
    start = content.data[:64].lstrip(_BLANK)
    for begins, what in _OTHERS.items():
        if start.startswith(begins):
            raise ConfigError(f"{content.name}: {what}")
    return _format_of(content, start).read(content)


def _format_of(content: Content, start: bytes) -> SeriesFormat:
    name = content.name.lower().removesuffix(".gz")
    for one in FORMATS:
        if name.endswith(one.endings):
            return one
    return next((one for one in FORMATS if start.startswith(one.begins)), FORMATS[-1])
