"""Units in cells, and the conversion of the values of a series to one unit."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pipeline.backtest.seriesfile.quantities import Quantities, WrongCell, unit_of_cell
from pipeline.model import FloatArray, IntArray
from pipeline.model.units import TIME_UNITS, UNIT_S


def _spelt(words: str, factor: float) -> dict[str, float]:
    return dict.fromkeys(words.split(), factor)


_THOUSANDS = {"k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_COUNTS = {**_THOUSANDS, "Mil": 1e6, "Mio": 1e6, "B": 1e9, "Bil": 1e9, "Tri": 1e12}
_SCALES: Mapping[str, Mapping[str, float]] = {
    "s": {spelling: UNIT_S[unit] for spelling, unit in TIME_UNITS.items()},
    "B": {
        **_spelt("B byte bytes Bytes", 1.0),
        **{f"{prefix}B": factor for prefix, factor in _THOUSANDS.items()},
        **{f"{prefix}iB": 1024.0**power for power, prefix in enumerate("KMGTP", start=1)},
    },
    "bit": {
        **_spelt("b bit bits", 1.0),
        **{f"{prefix}b": factor for prefix, factor in _THOUSANDS.items()},
        **{f"{prefix}bit": factor for prefix, factor in _THOUSANDS.items()},
    },
    "bps": {"bps": 1.0, **{f"{prefix}bps": factor for prefix, factor in _THOUSANDS.items()}},
    "Hz": {"Hz": 1.0, **{f"{prefix}Hz": factor for prefix, factor in _THOUSANDS.items()}},
    "": {"": 1.0, **{unit: factor for unit, factor in _COUNTS.items() if unit != "B"}},
}
"""By the unit that values of mixed units are written in: how many of it each of them is."""


def in_one_unit(found: Quantities, rows: IntArray) -> tuple[FloatArray, str, str]:
    """Return the values of a series, their unit, and the assumption about it in words.

    Values of one unit stay as they are; those of several of one kind, such as ms and s, are converted. A zero
    needs no unit.

    Args:
        found: A column.
        rows: (points,) rows of the series.

    Raises:
        WrongCell: a value has a unit that cannot be converted to that of the others.
    """
    values, unit_of = found.numbers[rows], found.unit_of[rows]
    if (unit_of == unit_of[0]).all():
        return _as_it_is(values, found.units[int(unit_of[0])])
    free = (values == 0) | np.isnan(values)
    bare = np.array([not unit for unit in found.units])[unit_of]
    used = [found.units[code] for code in dict.fromkeys(unit_of[~(free & bare)].tolist())]
    if len(used) == 1:
        return _as_it_is(values, used[0])
    scales = [_scale(unit) for unit in used]
    for unit, (_, base) in zip(used, scales, strict=True):
        if base != scales[0][1]:
            odd = int(np.flatnonzero(~(free & bare) & (unit_of == found.units.index(unit)))[0])
            hint = f"where others of the series are {_worded(used[0])}"
            raise WrongCell(int(rows[odd]), f"{values[odd]:g} is {_worded(unit)}, {hint}")
    factor = {unit: scale for unit, (scale, _) in zip(used, scales, strict=True)}
    values = values * np.array([factor.get(unit, 1.0) for unit in found.units])[unit_of]
    base = scales[0][1]
    return values, base, f"values {', '.join(map(_worded, used))} as {base or 'plain numbers'}"


def is_quantity(cell: str) -> bool:
    """Return whether a cell is a number, perhaps with a known unit; ``99th percentile`` is none."""
    unit = unit_of_cell(cell)
    if unit is None:
        return False
    return not unit[:1].isalpha() or _scale(unit) != (1.0, unit) or unit in _SCALES


def as_ucum(unit: str) -> str:
    """Return a unit as metadata of metrics spell it: bytes are ``By``."""
    return unit.replace("B", "By") if _scale(unit)[1].startswith("B") else unit


def _as_it_is(values: FloatArray, unit: str) -> tuple[FloatArray, str, str]:
    return values, unit, f"values in {unit}" if unit else ""


def _worded(unit: str) -> str:
    return f"in {unit}" if unit else "without a unit"


def _scale(unit: str) -> tuple[float, str]:
    """Return how many of which unit one of a unit is: 1,000 req/s are one K req/s."""
    head, slash, rate = unit.partition("/")
    words = head.split()
    if len(words) == 2 and words[0] in _COUNTS:
        return _COUNTS[words[0]], f"{words[1]}{slash}{rate}"
    for base, scale in _SCALES.items():
        if head.strip() in scale:
            return scale[head.strip()], f"{base}{slash}{rate}"
    return 1.0, unit
