"""Series of a file, whatever its format."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from pipeline.backtest.seriesfile.content import read_content
from pipeline.backtest.seriesfile.formats import read_table
from pipeline.backtest.seriesfile.layout import lay_out
from pipeline.backtest.seriesfile.quantities import MARKS, Decimal, Decimals
from pipeline.backtest.seriesfile.series import Duplicates, Series, split_series
from pipeline.model.errors import ConfigError


def read_series(
    path: Path,
    *,
    plain: bool = False,
    duplicates: Duplicates = "refuse",
    service: str | None = None,
    decimal: Decimal | None = None,
    note: Callable[[str], None] | None = None,
) -> tuple[Series, ...]:
    """Read every series of a file, sorted by service, kind and name.

    Args:
        path: In a format of ``formats.FORMATS``; ``-`` is standard input. With the columns ``service, metric,
            timestamp`` (ISO 8601 or epoch seconds), and either ``value`` or ``samples, total``;
            ``metric_kind`` may say what kind of gCPU series it is. Or with ``timestamp`` and a column for
            each series. Numbers may have thousands separators, decimal commas and units.
        plain: Whether points without times are enough. Then a value may be missing (empty, ``NaN``,
            ``null``, ``NA``; in a single column also a blank line, but not before its name), and
            ``timestamp`` may be any ISO 8601 date, a month or a year; whole numbers of four digits
            throughout are years.
        duplicates: What becomes of several points of a series at one time: their mean (of counts their sums),
            the last of them in the file, or none of the file.
        service: Whose series they are where the file does not say so; without it, unless ``plain``, its name
            is that of the file.
        decimal: What stands before decimals; by default the cells, or else the kind of file, say.
        note: Called with one line that says what was assumed, if anything was.

    Raises:
        ConfigError: the file, line and column that is wrong.
    """
    content = read_content(path)
    table = read_table(content)
    if not table.lines:
        raise ConfigError(f"{content.name}: holds no point")
    if decimal:
        table = replace(table, decimals=Decimals(given=MARKS[decimal]))
    whose = service or ("" if plain else content.stem)
    if whose and not service and "service" not in table.cells:
        table = table.assume(f"service {whose} (--service names another)")
    table = lay_out(table, untimed=plain)
    series, assumed = split_series(table, service=whose, plain=plain, duplicates=duplicates)
    if not series:
        raise ConfigError(f"{content.name}: holds no point")
    if note and (every := (*table.assumed, *assumed)):
        note(f"{content.name}: taken as: {'; '.join(every)}")
    return series
