"""Numbers as people write them, with separators and units; what a comma means is decided over a column."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from pipeline.model import FloatArray, IntArray
from pipeline.model.errors import SmidgenError

_LONGEST = 64  # characters of a cell that may be a quantity
_SPACES = " \u00a0\u2007\u2009\u202f"
_QUANTITY = re.compile(
    r"\s*(?P<sign>[-+\u2212]?)\s?(?P<currency>[$€£¥]?)\s?"
    rf"(?P<number>[0-9.,](?:[0-9.,'’_{_SPACES}]*[0-9.,])?)(?P<exponent>(?:[eE][-+]?[0-9]+)?)"
    r"\s*(?P<unit>(?:(?:[^\W\d_]|[%‰°$€£¥/])[^\d_\x00-\x1f\x7f]{0,24})?)"
)
_SHAPE = str.maketrans(dict.fromkeys("123456789", "0"))
_PLAIN = str.maketrans({**dict.fromkeys(_SPACES, " "), "’": "'"})
_WRITTEN = {" ": "spaces", "'": "apostrophes", "_": "underscores", ",": "commas", ".": "points"}
_EITHER = re.compile(r"0{1,3}[.,]000")
"""Shape of a number that has either decimals or thousands after its only separator."""

_THOUSANDS = re.compile(r"\s*[-+]?[1-9][0-9]{0,2}\.[0-9]{3}\s*")

Decimal = Literal["point", "comma"]
"""What stands before decimals."""

MARKS: Mapping[Decimal, str] = {"point": ".", "comma": ","}


class WrongCell(SmidgenError):
    """A cell of a column holds no quantity; the text says why."""

    def __init__(self, row: int, what: str) -> None:
        super().__init__(what)
        self.row = row


class EitherMark(WrongCell):
    """The cells of a column do not say what stands before decimals."""


@dataclass(frozen=True, slots=True)
class Quantities:
    """A column of numbers, and the unit with which each was written, as an index into ``units``."""

    numbers: FloatArray  # (rows,) NaN where one is missing
    unit_of: IntArray  # (rows,)
    units: tuple[str, ...]  # "" for none
    assumed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Decimals:
    """What stands before decimals, as far as a file says it beside the column that is read.

    Attributes:
        given: The mark that is certain, "." or ","; empty if the cells must say.
        presumed: The mark of this kind of file where cells may have it or the other one.
        is_sure: Whether programs wrote the file: then ``presumed`` stands before thousands in no cell.
    """

    given: str = ""
    presumed: str = "."
    is_sure: bool = True


@dataclass(frozen=True, slots=True)
class _Part:
    """The parts of a cell that may be a quantity."""

    sign: float
    number: str  # digits and separators, spaces and apostrophes as in ASCII
    exponent: str
    unit: str

    @property
    def shape(self) -> str:
        """The number with 0 for every digit, but z for a first one that begins no group of thousands.

        That is a 0, and any digit before an exponent.
        """
        shape = self.number.translate(_SHAPE)
        return f"z{shape[1:]}" if shape[0] == "0" and (self.number[0] == "0" or self.exponent) else shape


@dataclass(frozen=True, slots=True)
class _Notation:
    """The separators of decimals and of thousands; "" if thousands have none."""

    decimal: str
    thousands: str

    def reads(self, shape: str) -> bool:
        """Return whether a number of this shape is valid in this notation."""
        decimal, group = re.escape(self.decimal), re.escape(self.thousands)
        grouped = rf"|0{{1,3}}(?:{group}0{{2,3}})*{group}000" if group else ""
        return bool(re.fullmatch(rf"(?:[z0]0*{grouped})(?:{decimal}0*)?|{decimal}0+", shape))

    def value(self, part: _Part) -> float:
        """Return the value of a cell in this notation."""
        plain = part.number.replace(self.thousands, "") if self.thousands else part.number
        return part.sign * float(plain.replace(self.decimal, ".") + part.exponent)


_NOTATIONS = tuple(
    _Notation(decimal, thousands)
    for decimal, other in (".,", ",.")
    for thousands in ("", other, " ", "'", "_")
)


def is_number(text: str) -> bool:
    """Return whether a text is a number as programs write it."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def read_quantities(
    cells: Sequence[str], decimals: Decimals = Decimals(), series_of: IntArray | None = None
) -> Quantities:
    """Read a column of numbers; all its cells together determine the meaning of commas, points and spaces.

    Args:
        cells: (rows,) texts; NaN is written ``nan``.
        decimals: What the file says of its marks.
        series_of: (rows,) the series of each row; without it all are of one.

    Raises:
        WrongCell: a cell holds no number, contradicts the others, or may be two numbers (EitherMark).
    """
    try:
        numbers = np.array(cells, dtype=np.float64)
    except ValueError:
        return _read_written(cells, decimals, series_of)
    if decimals.given == "," or (decimals != Decimals() and _may_have_thousands(cells)):
        return _read_written(cells, decimals, series_of)
    return Quantities(numbers, np.zeros(len(numbers), dtype=np.int64), ("",))


def _may_have_thousands(cells: Sequence[str]) -> bool:
    """Return whether the points in numbers of programs may as well stand before thousands; usually quick."""
    with_point = [cell for cell in cells if "." in cell]
    return bool(with_point) and all(_THOUSANDS.fullmatch(cell) for cell in with_point)


def decimal_mark(cells: Sequence[str]) -> str:
    """Return what stands before decimals in a column, "." or ","; empty if its cells do not say."""
    try:
        parts = [part for row, cell in enumerate(cells) if (part := _part(row, cell)) is not None]
        fitting = _fitting(cells, _first_rows({row: part.shape for row, part in enumerate(parts)}))
    except WrongCell:
        return ""
    marks = {notation.decimal for notation in fitting}
    return marks.pop() if len(marks) == 1 else ""


def unit_of_cell(cell: str) -> str | None:
    """Return the unit of a cell that may be a quantity, empty if it has none; None for anything else."""
    try:
        part = _part(0, cell)
    except WrongCell:
        return None
    if part is None:
        return ""
    return part.unit if any(notation.reads(part.shape) for notation in _NOTATIONS) else None


def _read_written(cells: Sequence[str], decimals: Decimals, series_of: IntArray | None) -> Quantities:
    parts = [_part(row, cell) for row, cell in enumerate(cells)]
    rows = [row for row, part in enumerate(parts) if part is not None]
    shapes = {row: part.shape for row, part in enumerate(parts) if part is not None}
    notation = _notation(cells, shapes, decimals, series_of)
    values = [
        float(cell) if part is None else notation.value(part) for cell, part in zip(cells, parts, strict=True)
    ]
    units = tuple(dict.fromkeys(["", *(part.unit for part in parts if part is not None)]))
    position = {unit: number for number, unit in enumerate(units)}
    unit_of = np.zeros(len(cells), dtype=np.int64)
    unit_of[rows] = [position[part.unit] for part in parts if part is not None]
    return Quantities(np.array(values), unit_of, units, _assumed(notation, set(shapes.values())))


def _part(row: int, cell: str) -> _Part | None:
    """Split a cell into its parts; None for a number that only programs write, such as inf.

    Raises:
        WrongCell: the cell is neither.
    """
    quantity = _QUANTITY.fullmatch(cell) if len(cell) <= _LONGEST else None
    if not quantity:
        if is_number(cell):
            return None
        raise WrongCell(row, f"not a number: {cell.strip()[:40]!r}" if cell.strip() else "missing")
    number = quantity["number"].translate(_PLAIN)
    unit = f"{quantity['unit'].strip()} {quantity['currency']}".strip()
    return _Part(-1.0 if quantity["sign"] in ("-", "\u2212") else 1.0, number, quantity["exponent"], unit)


def _notation(
    cells: Sequence[str], shapes: Mapping[int, str], decimals: Decimals, series_of: IntArray | None
) -> _Notation:
    """Return the notation that reads every number.

    Raises:
        WrongCell: no notation reads all numbers.
        EitherMark: several read them differently.
    """
    first = _first_rows(shapes)
    fitting = _fitting(cells, first, decimals.given)
    separators = {character for shape in first for character in shape} & set(",.")
    if len({notation.decimal for notation in fitting}) == 1 or not separators:
        return fitting[0]
    # All numbers with a separator have a single one, before three digits: it is the same in all of them.
    is_presumed = separators == {decimals.presumed}
    if is_presumed and (decimals.is_sure or not _has_whole_beside(shapes, series_of)):
        return next(notation for notation in fitting if notation.decimal == decimals.presumed)
    row = next(row for row, shape in shapes.items() if not separators.isdisjoint(shape))
    (separator,) = separators
    name = next(name for name, mark in MARKS.items() if mark == separator)
    raise EitherMark(
        row,
        f"{cells[row].strip()[:40]!r} may have thousands or decimals after its {name}, and no other cell "
        f"says which: write 1002 or 1.0020 for such as 1{separator}002, or give --decimal (detect, backtest)",
    )


def _fitting(cells: Sequence[str], first: Mapping[str, int], mark: str = "") -> tuple[_Notation, ...]:
    """Return the notations, of those with this mark before decimals if it is given, that read every number.

    Args:
        cells: (rows,).
        first: The first row of each shape.
        mark: "." or ","; empty for either.

    Raises:
        WrongCell: there is none.
    """
    fitting = tuple(notation for notation in _NOTATIONS if mark in ("", notation.decimal))
    for shape, row in first.items():
        fitting = tuple(notation for notation in fitting if notation.reads(shape))
        if not fitting:
            hint = " as the cells before it" if any(notation.reads(shape) for notation in _NOTATIONS) else ""
            raise WrongCell(row, f"not a number{hint}: {cells[row].strip()[:40]!r}")
    return fitting


def _first_rows(shapes: Mapping[int, str]) -> dict[str, int]:
    """Return the first row of each shape."""
    first: dict[str, int] = {}
    for row, shape in shapes.items():
        first.setdefault(shape, row)
    return first


def _has_whole_beside(shapes: Mapping[int, str], series_of: IntArray | None) -> bool:
    """Return whether a series has numbers below 1,000 without the separator that others have.

    Three decimals throughout are decimals that a program rounded; it would not write 999 beside them.
    """
    kinds: dict[int, set[bool]] = {}
    for row, shape in shapes.items():
        if shape != "z":  # 0 may be written in either way
            series = 0 if series_of is None else int(series_of[row])
            kinds.setdefault(series, set()).add(_EITHER.fullmatch(shape) is not None)
    return any(len(kind) == 2 for kind in kinds.values())


def _assumed(notation: _Notation, shapes: set[str]) -> tuple[str, ...]:
    used = {character for shape in shapes for character in shape}
    assumptions = []
    if notation.decimal == "," and "," in used:
        assumptions.append("decimal commas")
    if notation.thousands and notation.thousands in used:
        assumptions.append(f"{_WRITTEN[notation.thousands]} between thousands")
    return tuple(assumptions)
