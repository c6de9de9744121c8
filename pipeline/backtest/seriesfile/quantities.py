"""Numbers as people write them, with separators and units; what a comma means is decided over a column."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.model import FloatArray, IntArray
from pipeline.model.errors import SmidgenError

_LONGEST = 64  # characters of a cell that may be a quantity
_SPACES = " \u00a0\u2007\u2009\u202f"
_QUANTITY = re.compile(
    r"\s*(?P<sign>[-+\u2212]?)\s?(?P<currency>[$€£¥]?)\s?"
    rf"(?P<number>[0-9.,](?:[0-9.,'’{_SPACES}]*[0-9.,])?)(?P<exponent>(?:[eE][-+]?[0-9]+)?)"
    r"\s*(?P<unit>(?:(?:[^\W\d_]|[%‰°$€£¥/])[^\d_\x00-\x1f\x7f]{0,24})?)"
)
_SHAPE = str.maketrans(dict.fromkeys("123456789", "0"))
_PLAIN = str.maketrans({**dict.fromkeys(_SPACES, " "), "’": "'"})
_WRITTEN = {" ": "spaces", "'": "apostrophes", ",": "commas", ".": "points"}


class WrongCell(SmidgenError):
    """A cell of a column holds no quantity; the text says why."""

    def __init__(self, row: int, what: str) -> None:
        super().__init__(what)
        self.row = row


@dataclass(frozen=True, slots=True)
class Quantities:
    """A column of numbers, and the unit with which each was written, as an index into ``units``."""

    numbers: FloatArray  # (rows,) NaN where one is missing
    unit_of: IntArray  # (rows,)
    units: tuple[str, ...]  # "" for none
    assumed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Part:
    """The parts of a cell that may be a quantity."""

    sign: float
    number: str  # digits and separators, spaces and apostrophes as in ASCII
    exponent: str
    unit: str

    @property
    def shape(self) -> str:
        """The number with 0 for every digit, but z for a leading 0, which begins no group of thousands."""
        shape = self.number.translate(_SHAPE)
        return f"z{shape[1:]}" if self.number[0] == "0" else shape


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
    _Notation(decimal, thousands) for decimal, other in (".,", ",.") for thousands in ("", other, " ", "'")
)


def is_number(text: str) -> bool:
    """Return whether a text is a number as programs write it."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def read_quantities(cells: Sequence[str], *, decimal_comma: bool = False) -> Quantities:
    """Read a column of numbers; all its cells together determine the meaning of commas, points and spaces.

    Args:
        cells: (rows,) texts; NaN is written ``nan``.
        decimal_comma: True if a comma that may separate decimals or thousands separates decimals.

    Raises:
        WrongCell: a cell holds no number, contradicts the others, or may be two numbers.
    """
    try:
        numbers = np.array(cells, dtype=np.float64)
    except ValueError:
        return _read_written(cells, decimal_comma)
    return Quantities(numbers, np.zeros(len(numbers), dtype=np.int64), ("",))


def _read_written(cells: Sequence[str], decimal_comma: bool) -> Quantities:
    parts = [_part(row, cell) for row, cell in enumerate(cells)]
    rows = [row for row, part in enumerate(parts) if part is not None]
    shapes = {row: part.shape for row, part in enumerate(parts) if part is not None}
    notation = _notation(cells, shapes, decimal_comma)
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


def _notation(cells: Sequence[str], shapes: Mapping[int, str], decimal_comma: bool) -> _Notation:
    """Return the notation that reads every number.

    Raises:
        WrongCell: no notation reads all numbers, or several read them differently.
    """
    fitting = _NOTATIONS
    first: dict[str, int] = {}
    for row, shape in shapes.items():
        first.setdefault(shape, row)
    for shape, row in first.items():
        fitting = tuple(notation for notation in fitting if notation.reads(shape))
        if not fitting:
            hint = " as the cells before it" if any(notation.reads(shape) for notation in _NOTATIONS) else ""
            raise WrongCell(row, f"not a number{hint}: {cells[row].strip()[:40]!r}")
    separators = {character for shape in first for character in shape} & set(",.")
    with_comma = [notation for notation in fitting if notation.decimal == ","]
    if len(with_comma) in (0, len(fitting)) or "," not in separators:
        return fitting[0]
    if separators == {","} and decimal_comma:
        return with_comma[0]
    row = next(row for row, shape in shapes.items() if "," in shape)
    raise WrongCell(
        row,
        f"{cells[row].strip()[:40]!r} may have thousands or decimals after its comma, and no other cell says "
        "which; write decimals with a point, and nothing between thousands",
    )


def _assumed(notation: _Notation, shapes: set[str]) -> tuple[str, ...]:
    used = {character for shape in shapes for character in shape}
    assumptions = []
    if notation.decimal == "," and "," in used:
        assumptions.append("decimal commas")
    if notation.thousands and notation.thousands in used:
        assumptions.append(f"{_WRITTEN[notation.thousands]} between thousands")
    return tuple(assumptions)
