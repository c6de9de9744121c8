"""gCPU counts of the stack samples of many hosts, computed together.

gCPU of a subroutine is the share of a service's samples whose stack holds it (FBDetect §5.1), so a
subroutine is counted once per sample, however often it recurs in the stack. With C the counts of cells
(service, window, partition) × distinct stacks, and I the incidence of distinct stacks × series (0 or 1),
the counts of all series are the sparse product C · I. Series are counted from whole stacks; the stacks that
are stored beside them may be shortened.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from pipeline.counting.bounds import STACK_BOUNDS, Ragged, StackBounds
from pipeline.counting.distinct_stacks import DistinctStacks, StackRoom, find_stacks, hash_stacks
from pipeline.counting.vocabulary import UIntArray, Vocabulary
from pipeline.model import FloatArray, IntArray, MetricKind, Profile

STRATUM_STACK_WINDOWS = 12
"""Stack windows in a window of counts by stratum: differences between strata change slowly."""


@dataclass(frozen=True, slots=True)
class Cells:
    """Cells of counts: parallel arrays of service, window start (epoch seconds), partition, stratum."""

    services: tuple[str, ...]  # (cells,)
    windows: FloatArray  # (cells,)
    partitions: IntArray  # (cells,)
    strata: tuple[int, ...]  # (cells,) ids; 0 if strata are counted together


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts of a batch in coordinate form: cell ``*_cell[i]`` has ``*_samples[i]`` samples."""

    cells: Cells  # by window
    total_samples: IntArray  # (cells,)
    kinds: tuple[MetricKind, ...]  # (series,)
    names: tuple[str, ...]  # (series,)
    series_cell: IntArray
    series_index: IntArray
    series_samples: IntArray
    stratum_cells: Cells  # by stratum and stratum window
    stratum_width_s: float
    stratum_cell: IntArray
    stratum_index: IntArray  # of the series
    stratum_samples: IntArray
    stratum_stack_cell: IntArray  # of ``stratum_cells``
    stratum_stack_index: IntArray  # of the stack
    stratum_stack_samples: IntArray
    stack_cells: Cells  # by stack window
    stack_width_s: float
    stacks: tuple[tuple[str, ...], ...]  # (distinct stacks,) root first
    stack_ids: UIntArray  # (distinct stacks,) 64-bit hashes of their elements
    stack_cell: IntArray
    stack_index: IntArray
    stack_samples: IntArray
    shortened: tuple[int, ...]  # (profiles,) number of shortened stacks

    @property
    def rows(self) -> int:
        """Number of rows that the largest table receives."""
        counted = (
            *(self.series_cell, self.stratum_cell, self.stratum_stack_cell),
            *(self.stack_cell, self.total_samples),
        )
        return max(map(len, counted))


def count_samples(
    profiles: Sequence[Profile],
    partitions: Sequence[int],
    *,
    window_s: float,
    stack_window_s: float,
    bounds: StackBounds = STACK_BOUNDS,
    vocabulary: Vocabulary | None = None,
    room: StackRoom | None = None,
) -> Counts:
    """Count samples per service, window and partition: in all, per series and per distinct stack.

    A profile belongs whole to the windows that hold the middle of its interval.

    Args:
        profiles: Profiles of any services and hosts.
        partitions: The partition each profile came from, parallel to ``profiles``.
        window_s: Width of gCPU windows, in seconds.
        stack_window_s: Width of stack windows, in seconds.
        bounds: Bounds on the stacks that are stored beside the counts of their series.
        vocabulary: Labels of earlier calls, so that they are not processed again; grows.
        room: Room for distinct stacks, reduced by what they take; None for no limit.

    Raises:
        OutOfRoom: the distinct stacks need more room.
    """
    vocabulary = Vocabulary() if vocabulary is None else vocabulary
    distinct = find_stacks(profiles, vocabulary, bounds, room)
    stratum_width_s = STRATUM_STACK_WINDOWS * stack_window_s
    cells, cell_of = _cells(profiles, partitions, window_s)
    stratum_cells, stratum_cell_of = _cells(profiles, partitions, stratum_width_s, by_sender=True)
    stack_cells, stack_cell_of = _cells(profiles, partitions, stack_window_s)

    # First count by triples of cells of the three kinds: they give far fewer entries than stacks.
    triples, triple_of = _distinct_rows(cell_of, stratum_cell_of, stack_cell_of)
    by_triple = _count_matrix(triple_of, distinct.whole, distinct, len(triples))
    by_cell = _in_cells(triples[:, 0]) @ by_triple
    held, labels = _incidence(distinct.elements)
    series = (by_cell @ held).tocoo()
    in_strata = _in_cells(triples[:, 1])
    stratum_stacks = in_strata @ by_triple
    by_stratum = (stratum_stacks @ held).tocoo()
    if distinct.kept is not distinct.whole:
        by_triple = _count_matrix(triple_of, distinct.kept, distinct, len(triples))
        stratum_stacks = in_strata @ by_triple
    stratum_stacks, stacks = stratum_stacks.tocoo(), (_in_cells(triples[:, 2]) @ by_triple).tocoo()
    used, index_of = _numbered(stacks.col, distinct.ids)
    named = [vocabulary.series[label] for label in labels.tolist()]
    return Counts(
        cells=cells,
        total_samples=np.asarray(by_cell.sum(axis=1)).ravel(),
        kinds=tuple(kind for kind, _ in named),
        names=tuple(name for _, name in named),
        series_cell=series.row.astype(np.int64),
        series_index=series.col.astype(np.int64),
        series_samples=series.data,
        stratum_cells=stratum_cells,
        stratum_width_s=stratum_width_s,
        stratum_cell=by_stratum.row.astype(np.int64),
        stratum_index=by_stratum.col.astype(np.int64),
        stratum_samples=by_stratum.data,
        stratum_stack_cell=stratum_stacks.row.astype(np.int64),
        stratum_stack_index=index_of[stratum_stacks.col],
        stratum_stack_samples=stratum_stacks.data,
        stack_cells=stack_cells,
        stack_width_s=stack_window_s,
        stacks=_named(distinct.elements, used, vocabulary.labels),
        stack_ids=distinct.ids[used],
        stack_cell=stacks.row.astype(np.int64),
        stack_index=index_of[stacks.col],
        stack_samples=stacks.data,
        shortened=distinct.shortened,
    )


def stack_ids(stacks: Sequence[Sequence[str]]) -> UIntArray:
    """Return the 64-bit hashes of stacks of elements, as ``count_samples`` identifies them: (stacks,)."""
    vocabulary = Vocabulary()
    flat = [vocabulary[label] for stack in stacks for label in stack]
    starts = np.cumsum([0, *map(len, stacks)], dtype=np.int64)
    return hash_stacks(vocabulary.hashes[np.array(flat, dtype=np.int64)], starts)


def _cells(
    profiles: Sequence[Profile], partitions: Sequence[int], width_s: float, *, by_sender: bool = False
) -> tuple[Cells, IntArray]:
    """Return the distinct (service, window, partition, stratum) and each profile's index among them."""
    index: dict[tuple[str, float, int, int], int] = {}
    windows = [(profile.start + profile.end) / 2 // width_s * width_s for profile in profiles]
    strata = [profile.sender.id if by_sender else 0 for profile in profiles]
    of_profile = np.array(
        [
            index.setdefault((profile.service, window, partition, stratum), len(index))
            for profile, window, partition, stratum in zip(profiles, windows, partitions, strata, strict=True)
        ],
        dtype=np.int64,
    )
    cells = Cells(
        services=tuple(key[0] for key in index),
        windows=np.array([key[1] for key in index], dtype=np.float64),
        partitions=np.array([key[2] for key in index], dtype=np.int64),
        strata=tuple(key[3] for key in index),
    )
    return cells, of_profile


def _distinct_rows(*columns: IntArray) -> tuple[IntArray, IntArray]:
    """Return the distinct rows of parallel arrays, and the index of each row among them."""
    rows: IntArray
    rows, of = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
    return rows, of.reshape(-1).astype(np.int64)


def _in_cells(cell_of: IntArray) -> sparse.csr_array:
    """Return cells × rows with 1 where a row belongs to a cell."""
    ones = np.ones(len(cell_of), dtype=np.int64)
    shape = (int(cell_of.max(initial=-1)) + 1, len(cell_of))
    return sparse.csr_array((ones, (cell_of, np.arange(len(cell_of)))), shape=shape)


def _count_matrix(
    triple_of: IntArray, columns: IntArray, distinct: DistinctStacks, triples: int
) -> sparse.csr_array:
    """Return triples of cells × distinct stacks."""
    rows = np.repeat(triple_of, distinct.per_profile)
    shape = (triples, len(distinct.ids))
    matrix = sparse.csr_array((distinct.counts, (rows, columns)), shape=shape, dtype=np.int64)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    return matrix


def _incidence(stacks: Ragged) -> tuple[sparse.csr_array, IntArray]:
    """Return distinct stacks × series, 1 where a stack holds a series at least once, and the series."""
    labels, column = np.unique(stacks.flat, return_inverse=True)
    width = max(1, len(labels))
    count = len(stacks.starts) - 1
    keys = np.unique(np.repeat(np.arange(count), np.diff(stacks.starts)) * width + column.reshape(-1))
    starts = np.searchsorted(keys, np.arange(count + 1) * width)
    matrix = sparse.csr_array(
        (np.ones(len(keys), dtype=np.int64), keys % width, starts), shape=(count, len(labels))
    )
    return matrix, labels


def _numbered(columns: IntArray, ids: UIntArray) -> tuple[IntArray, IntArray]:
    """Return the stacks that have samples, in the order of their ids, and each stack's index among them.

    The index of a stack without samples is -1.
    """
    used = np.unique(columns)
    ordered = used[np.argsort(ids[used])]
    index_of = np.full(len(ids), -1, dtype=np.int64)
    index_of[ordered] = np.arange(len(ordered))
    return ordered, index_of


def _named(stacks: Ragged, chosen: IntArray, labels: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    return tuple(
        tuple([labels[e] for e in stacks.flat[stacks.starts[s] : stacks.starts[s + 1]].tolist()])
        for s in chosen.tolist()
    )
