"""Columns of Parquet and CSV files as numpy arrays; the one module that knows pyarrow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from pipeline.files.listing import listed
from pipeline.model import FloatArray, IntArray
from pipeline.model.errors import ConfigError, file_errors

_TEXTS = (
    pa.types.is_dictionary,
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_string_view,
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_binary_view,
)
_TICKS = {"s": 1.0, "ms": 1e3, "us": 1e6}


@dataclass(frozen=True, slots=True)
class Texts:
    """A column of few distinct texts: row i holds ``values[codes[i]]``."""

    codes: IntArray
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of one file; every mistake is a ConfigError with file, row and column."""

    path: Path
    table: Any  # pyarrow.Table

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that the file has."""
        return tuple(self.table.column_names)

    def texts(self, name: str, *, missing: str | None = None) -> Texts:
        """Return a column of texts; what is missing is refused unless a text stands in for it."""
        column = self._column(name, nulls=missing is not None)
        if missing is not None:
            column = self._cast(name, column, pa.string()).fill_null(missing)
        if not pa.types.is_dictionary(column.type):
            column = self._cast(name, column, pa.string()).dictionary_encode()
        combined = column.combine_chunks()
        if isinstance(combined, pa.ChunkedArray):  # more than one chunk where dictionaries differ
            combined = combined.unify_dictionaries().combine_chunks()
        try:
            values = tuple(str(value) for value in combined.dictionary.to_pylist())
        except UnicodeDecodeError:
            raise ConfigError(f"{self.path}: {name}: not UTF-8 text") from None
        return Texts(combined.indices.to_numpy(zero_copy_only=False).astype(np.int64), values)

    def labels(self, name: str) -> Texts:
        """Return a column of texts that may be missing: then they are empty."""
        column = self._column(name, nulls=True)
        if not column.null_count:
            return self.texts(name)
        plain = self._cast(name, column, pa.string()).fill_null("")
        index = self.table.column_names.index(name)
        return Columns(self.path, self.table.set_column(index, name, plain)).texts(name)

    def numbers(self, name: str, dtype: type[Any] = np.float64) -> NDArray[Any]:
        """Return a column of finite numbers."""
        column = self._cast(name, self._column(name), pa.from_numpy_dtype(np.dtype(dtype)))
        values: NDArray[Any] = column.to_numpy()
        if dtype is np.float64 and not np.isfinite(values).all():
            self.refuse(int(np.flatnonzero(~np.isfinite(values))[0]), name, "should be a finite number")
        return values

    def numbers_or_nan(self, name: str) -> FloatArray:
        """Return a column of numbers, with NaN where it holds none."""
        values: FloatArray = self._cast(name, self._column(name, nulls=True), pa.float64()).to_numpy()
        return values

    def flags(self, name: str) -> NDArray[np.bool_]:
        """Return a column of true and false."""
        flags: NDArray[np.bool_] = self._cast(name, self._column(name), pa.bool_()).to_numpy()
        return flags

    def lists(self, name: str) -> list[tuple[str, ...]]:
        """Return a column of lists of texts."""
        column = self._cast(name, self._column(name), pa.list_(pa.string()))
        return [tuple(values) for values in column.to_pylist()]

    def moments(self, name: str) -> FloatArray | None:
        """Return a column of timestamps or dates as epoch seconds (UTC); None if it is of another type."""
        column = self._column(name)
        if pa.types.is_date(column.type):
            column = column.cast(pa.timestamp("ms"))
        if not pa.types.is_timestamp(column.type):
            return None
        whole, unit = column.cast(pa.int64()).to_numpy(), column.type.unit
        # Of nanoseconds since 1970 a float keeps no more than microseconds, and rounds what is not whole.
        seconds: FloatArray = whole // 1000 / 1e6 if unit == "ns" else whole / _TICKS[unit]
        return seconds

    def is_moment(self, name: str) -> bool:
        """Return whether a column is of the type of timestamps or dates."""
        kind = self._column(name, nulls=True).type
        return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))

    def is_local(self, name: str) -> bool:
        """Return whether a column holds timestamps of a time zone that the file does not say."""
        kind = self._column(name, nulls=True).type
        return bool(pa.types.is_timestamp(kind) and kind.tz is None)

    def is_text(self, name: str) -> bool:
        """Return whether a column holds texts, or bytes, as which some programs write them."""
        kind = self._column(name, nulls=True).type
        return any(is_one(kind) for is_one in _TEXTS)

    def refuse(self, row: int, name: str, what: str) -> None:
        """Raise a ConfigError about one value; rows count from 1."""
        raise ConfigError(f"{self.path}: row {row + 1}: {name}: {what}")

    def _column(self, name: str, *, nulls: bool = False) -> Any:
        if name not in self.table.column_names:
            raise ConfigError(f"{self.path}: no column {name!r}; it has {listed(self.names, name)}")
        if self.table.column_names.count(name) > 1:
            raise ConfigError(f"{self.path}: {name}: column stands twice")
        column = self.table.column(name)
        if column.null_count and not nulls:
            self.refuse(column.is_null().to_pylist().index(True), name, "missing")
        return column

    def _cast(self, name: str, column: Any, kind: Any) -> Any:
        try:
            return column.cast(kind)
        except pa.ArrowException as error:
            reason = _first_line(error)
            raise ConfigError(f"{self.path}: {name}: should be of type {kind}: {reason}") from None


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


MAX_ROWS = 10**8
"""Most rows of a Parquet file: a few kilobytes can hold any number of equal ones."""


def read_parquet(path: Path) -> Columns:
    """Read a Parquet file.

    Raises:
        ConfigError: it is not there, not Parquet, or has more than MAX_ROWS rows.
    """
    with file_errors(path), path.open("rb") as file:
        return parse_parquet(file, path)


def parse_parquet(file: BinaryIO, path: Path) -> Columns:
    """Read the content of a Parquet file, which errors name by ``path``; see ``read_parquet``."""
    try:
        rows = pq.ParquetFile(file).metadata.num_rows
        if rows > MAX_ROWS:
            raise ConfigError(f"{path}: {rows} rows, more than {MAX_ROWS}")
        table = pq.read_table(file)
        len(table.column_names)  # which takes their names for UTF-8
        return Columns(path, table)
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: not a Parquet file: a column's name is not UTF-8") from None
    except pa.ArrowException as error:
        raise ConfigError(f"{path}: not a Parquet file: {_first_line(error)}") from None
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror or _first_line(error)}") from None


def write_parquet(path: Path, columns: Mapping[str, NDArray[Any] | Texts | Sequence[Any]]) -> None:
    """Write columns of equal length.

    Raises:
        ConfigError: the file cannot be written.
    """
    arrays = {
        name: pa.DictionaryArray.from_arrays(
            pa.array(values.codes.astype(np.int32)), pa.array(values.values, pa.string())
        )
        if isinstance(values, Texts)
        else pa.array(values)
        if isinstance(values, np.ndarray)
        else pa.array(values, pa.list_(pa.string()))
        for name, values in columns.items()
    }
    try:
        pq.write_table(pa.table(arrays), path, compression="zstd")
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror or error}") from None


def parse_table(file: BinaryIO, path: Path, texts: Sequence[str] = ()) -> Columns:
    """Read the content of a Parquet file, or else of CSV with a header, which errors name by ``path``.

    Args:
        file: Where it is read from its beginning; one that can be read twice.
        path: Its name.
        texts: Columns that are texts whatever they look like: ``01`` and ``NA`` in CSV stay what they are.

    Raises:
        ConfigError: it is neither.
    """
    start = file.read(4)
    file.seek(0)
    if start == b"PAR1":
        return parse_parquet(file, path)
    kinds = dict.fromkeys(texts, pa.dictionary(pa.int32(), pa.string()))
    options = pa_csv.ConvertOptions(column_types=kinds, null_values=[""], strings_can_be_null=True)
    try:
        return Columns(path, pa_csv.read_csv(file, convert_options=options))
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: not UTF-8 text") from None
    except pa.ArrowException as error:
        raise ConfigError(f"{path}: not a CSV file: {_first_line(error)}") from None
