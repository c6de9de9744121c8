"""Series and stacks under former names, merged into those of their symbols."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from pipeline.counting.names.naming import Naming
from pipeline.model import FloatArray, IntArray, SeriesKey, SeriesMatrix, StackMatrix, StrataMatrix
from pipeline.model.frames import series_of


class Symbols(Protocol):
    """A mapping of names: to symbols by rules, or to present names by renames."""

    def symbol(self, name: str, /) -> str:
        """Return the new name of a name."""

    def changed(self, names: Collection[str], /) -> dict[str, str]:
        """Return the new name of each name that changes."""


def merged_series(matrix: SeriesMatrix, naming: Symbols) -> SeriesMatrix:
    """Return gCPU series by symbols, sorted by kind and name; the same object if all names are symbols.

    The series of names with one symbol are added up. A sample that holds two of them counts twice, since
    counts do not show which samples they share: so sums are cut to the total.
    """
    subroutines = [
        name for kind, name in zip(matrix.kinds, matrix.names, strict=True) if kind == "subroutine"
    ]
    if not naming.changed(subroutines):  # for speed: a scan reads thousands of series, whose names mostly are
        return matrix
    merged, row = symbol_rows(list(map(SeriesKey, matrix.kinds, matrix.names)), naming)
    samples = np.minimum(added_rows(matrix.samples, row, len(merged)), matrix.totals)
    kinds, names = tuple(kind for kind, _ in merged), tuple(name for _, name in merged)
    return replace(matrix, kinds=kinds, names=names, samples=samples)


def merged_strata(matrix: StrataMatrix, naming: Symbols) -> StrataMatrix:
    """Return counts by strata of series by symbols; the same object if all names are symbols."""
    merged, row = symbol_rows(list(matrix.series), naming)
    if len(merged) == len(matrix.series) and merged == list(matrix.series):
        return matrix
    return replace(matrix, series=tuple(merged), samples=added_rows(matrix.samples, row, len(merged)))


def merged_stacks(matrix: StackMatrix, naming: Symbols) -> StackMatrix:
    """Return stacks by symbols; the same object if all elements are symbols."""
    stacks, row = symbol_stacks(matrix.stacks, naming)
    if stacks is matrix.stacks:
        return matrix
    before, after = (added_rows(counts, row, len(stacks)) for counts in (matrix.before, matrix.after))
    return replace(matrix, stacks=stacks, before=before, after=after)


def symbol_rows(series: list[SeriesKey], naming: Symbols) -> tuple[list[SeriesKey], IntArray]:
    """Return the distinct series by symbols, sorted, and the index of each series among them.

    The same list is returned if all names are symbols.
    """
    changed = naming.changed([name for kind, name in series if kind == "subroutine"])
    if not changed:
        return series, np.arange(len(series))
    symbols = [
        SeriesKey(kind, changed.get(name, name) if kind == "subroutine" else name) for kind, name in series
    ]
    merged = sorted(set(symbols))
    index = {key: number for number, key in enumerate(merged)}
    return merged, np.array([index[key] for key in symbols], dtype=np.int64)


def symbol_key(series: SeriesKey, naming: Symbols) -> SeriesKey:
    """Return the key of a series by its symbol; only subroutines have one."""
    kind, name = series
    return SeriesKey(kind, naming.symbol(name)) if kind == "subroutine" else series


def symbol_stacks(
    stacks: tuple[tuple[str, ...], ...], naming: Symbols
) -> tuple[tuple[tuple[str, ...], ...], IntArray]:
    """Return the distinct stacks by symbols, in order of appearance, and the index of each stack among them.

    The same tuple is returned if all elements are symbols.
    """
    changed = naming.changed(set().union(*stacks))
    if not changed:
        return stacks, np.arange(len(stacks))
    index: dict[tuple[str, ...], int] = {}
    row = [
        index.setdefault(tuple(changed.get(label, label) for label in stack), len(index)) for stack in stacks
    ]
    return tuple(index), np.array(row, dtype=np.int64)


def added_rows(counts: FloatArray, row: IntArray, rows: int) -> FloatArray:
    """Return the sums of the rows of ``counts`` by target row; each of ``rows`` targets has at least one."""
    if not rows:
        return np.zeros((0, *counts.shape[1:]))
    order = np.argsort(row, kind="stable")
    first = np.searchsorted(row[order], np.arange(rows))
    return np.asarray(np.add.reduceat(counts[order], first, axis=0), dtype=np.float64)


def overcounts(
    stacks: Sequence[Sequence[str]], stack_samples: FloatArray, naming: Naming
) -> dict[str, FloatArray]:
    """Return factors for sums over the names of a symbol: (stack windows,) by symbol.

    If a stack holds two names of a symbol, the sum counts the stack's samples twice. The factor is the share
    of the sum that remains if each sample counts once; it is 1 without stacks.

    Args:
        stacks: By their former names.
        stack_samples: (stacks, stack windows).
        naming: Turns names into symbols.
    """
    twice: dict[str, list[tuple[int, int]]] = {}
    changed = naming.changed(set().union(*stacks))
    merged = _merged_symbols(changed, set().union(*stacks))
    for number, stack in enumerate(stacks):
        seen: dict[str, int] = {}
        for label in set(stack):
            if (symbol := changed.get(label, label)) in merged:
                seen[symbol] = seen.get(symbol, 0) + 1
        for symbol, names in seen.items():
            twice.setdefault(symbol, []).append((number, names))
    factors = {}
    for symbol, holders in twice.items():
        rows, times = np.array(holders, dtype=np.int64).T
        if times.max() > 1:
            once = stack_samples[rows].sum(axis=0)
            summed = times @ stack_samples[rows]
            factors[symbol] = np.divide(once, summed, out=np.ones(len(once)), where=summed > 0)
    return factors


def _merged_symbols(changed: dict[str, str], labels: Iterable[str]) -> set[str]:
    """Return the symbols that several labels have."""
    seen: set[str] = set()
    merged: set[str] = set()
    for label in labels:
        if series_of(label)[0] != "subroutine":
            continue
        symbol = changed.get(label, label)
        (merged if symbol in seen else seen).add(symbol)
    return merged
