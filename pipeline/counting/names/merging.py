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
    """What names become: symbols by rules, or present names by renames."""

    def symbol(self, name: str, /) -> str:
        """Return what a name becomes."""

    def changed(self, names: Collection[str], /) -> dict[str, str]:
        """Return what each of the names becomes that does not stay."""


def merged_series(matrix: SeriesMatrix, naming: Symbols) -> SeriesMatrix:
    """Return gCPU series by symbols, sorted by kind and name; the same object if all names are symbols.

    The series of names with one symbol are added up. A sample that holds two of them counts twice, as counts
    no longer say which samples these were: so a sum is at most the total.
    """
    subroutines = [
        name for kind, name in zip(matrix.kinds, matrix.names, strict=True) if kind == "subroutine"
    ]
    if not naming.changed(subroutines):  # for speed: a scan reads thousands of series, whose names mostly are
        return matrix
    named, row = symbol_rows(list(map(SeriesKey, matrix.kinds, matrix.names)), naming)
    samples = np.minimum(added_rows(matrix.samples, row, len(named)), matrix.totals)
    kinds, names = tuple(kind for kind, _ in named), tuple(name for _, name in named)
    return replace(matrix, kinds=kinds, names=names, samples=samples)


def merged_strata(matrix: StrataMatrix, naming: Symbols) -> StrataMatrix:
    """Return counts by strata of series by symbols; the same object if all names are symbols."""
    named, row = symbol_rows(list(matrix.series), naming)
    if len(named) == len(matrix.series) and named == list(matrix.series):
        return matrix
    return replace(matrix, series=tuple(named), samples=added_rows(matrix.samples, row, len(named)))


def merged_stacks(matrix: StackMatrix, naming: Symbols) -> StackMatrix:
    """Return stacks by symbols; the same object if all elements are symbols."""
    stacks, row = symbol_stacks(matrix.stacks, naming)
    if stacks is matrix.stacks:
        return matrix
    before, after = (added_rows(counts, row, len(stacks)) for counts in (matrix.before, matrix.after))
    return replace(matrix, stacks=stacks, before=before, after=after)


def symbol_rows(series: list[SeriesKey], naming: Symbols) -> tuple[list[SeriesKey], IntArray]:
    """Return the distinct series by symbols, sorted, and which of them each series is.

    The same list comes back if all names are symbols.
    """
    changed = naming.changed([name for kind, name in series if kind == "subroutine"])
    if not changed:
        return series, np.arange(len(series))
    symbols = [
        SeriesKey(kind, changed.get(name, name) if kind == "subroutine" else name) for kind, name in series
    ]
    named = sorted(set(symbols))
    index = {key: number for number, key in enumerate(named)}
    return named, np.array([index[key] for key in symbols], dtype=np.int64)


def symbol_key(series: SeriesKey, naming: Symbols) -> SeriesKey:
    """Return the key of a series by its symbol; only subroutines have one."""
    kind, name = series
    return SeriesKey(kind, naming.symbol(name)) if kind == "subroutine" else series


def symbol_stacks(
    stacks: tuple[tuple[str, ...], ...], naming: Symbols
) -> tuple[tuple[tuple[str, ...], ...], IntArray]:
    """Return the distinct stacks by symbols, in the order in which they come, and which each stack is.

    The same tuple comes back if all elements are symbols.
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
    """Return the sums of the rows of ``counts`` that become one; each of ``rows`` has one at least."""
    if not rows:
        return np.zeros((0, *counts.shape[1:]))
    order = np.argsort(row, kind="stable")
    first = np.searchsorted(row[order], np.arange(rows))
    return np.asarray(np.add.reduceat(counts[order], first, axis=0), dtype=np.float64)


def overcounts(
    stacks: Sequence[Sequence[str]], stack_samples: FloatArray, naming: Naming
) -> dict[str, FloatArray]:
    """Return by what sums over the names of a symbol have to be multiplied: (stack windows,) by symbol.

    Of a symbol two names of which stand in one stack, a sum counts that stack's samples twice. It is
    the share of the sum that is left if each sample counts once, 1 where there are no stacks.

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
    found = {}
    for symbol, holders in twice.items():
        rows, times = np.array(holders, dtype=np.int64).T
        if times.max() > 1:
            once = stack_samples[rows].sum(axis=0)
            summed = times @ stack_samples[rows]
            found[symbol] = np.divide(once, summed, out=np.ones(len(once)), where=summed > 0)
    return found


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
