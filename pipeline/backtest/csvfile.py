"""CSV files as people have them: commas, semicolons or tabs between cells, packed by gzip or not."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
import zlib
from pathlib import Path

from pipeline.errors import ConfigError, file_errors

SUFFIXES = (".csv", ".tsv", ".csv.gz", ".tsv.gz")

_MOST_BYTES = 4 * 1024**3
_DECIMAL_COMMA = re.compile(r"[-+]?\d+,\d+")


def is_csv(path: Path) -> bool:
    """Return whether the name of a file says that it is one."""
    return path.name.lower().endswith(SUFFIXES)


def read_csv_rows(path: Path) -> tuple[list[list[str]], list[int]]:
    """Return the cells of every line, none of a blank one, and the numbers of the lines.

    What stands between cells is said by the first line that is not blank: a comma, or else a tab or a
    semicolon. Between semicolons, numbers may have decimal commas; they come back with points.

    Raises:
        ConfigError: the file, and the line where it is no UTF-8 text or no CSV.
    """
    text = _text_of(path)
    delimiter = _delimiter(text)
    reader = csv.reader(
        io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=delimiter != "\t", strict=True
    )
    rows: list[list[str]] = []
    lines: list[int] = []
    try:
        for row in reader:
            rows.append([_with_point(cell) for cell in row] if delimiter == ";" else row)
            lines.append(reader.line_num)
    except csv.Error as error:
        raise ConfigError(f"{path}:{reader.line_num}: {error}") from None
    return rows, lines


def _text_of(path: Path) -> str:
    with file_errors(path):
        content = path.read_bytes()
    if path.suffix.lower() == ".gz":
        content = _unpacked(path, content)
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):  # as Excel writes Unicode text
        return _utf16(path, content)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise ConfigError(f"{path}:{line}: not UTF-8 text") from None
    if "\0" in text:
        line = text[: text.index("\0")].count("\n") + 1
        raise ConfigError(f"{path}:{line}: not UTF-8 text: holds a NUL character")
    return text


def _utf16(path: Path, content: bytes) -> str:
    try:
        return content.decode("utf-16")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-16 text, as its first bytes say: {error.reason}") from None


def _unpacked(path: Path, content: bytes) -> bytes:
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as packed:
            found = packed.read(_MOST_BYTES + 1)
    except (OSError, EOFError, zlib.error):
        raise ConfigError(f"{path}: not packed by gzip, or cut off") from None
    if len(found) > _MOST_BYTES:
        raise ConfigError(f"{path}: larger than {_MOST_BYTES // 1024**3} GiB unpacked")
    return found


def _delimiter(text: str) -> str:
    first = next((line for line in text.splitlines() if line.strip()), "")
    return next((one for one in (",", "\t", ";") if one in first), ",")


def _with_point(cell: str) -> str:
    return cell.replace(",", ".") if _DECIMAL_COMMA.fullmatch(cell.strip()) else cell
