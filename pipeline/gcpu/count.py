"""Stack samples of many hosts to gCPU counts, all at once.

gCPU of a subroutine is the share of a service's samples whose stack holds it (FBDetect §5.1), so a
subroutine is counted once per sample, however often it recurs in the stack. With C the counts of cells
(service, window, partition) × distinct stacks, and I the incidence of distinct stacks × series (0 or 1),
the counts of all series are the sparse product C · I. Series are counted from whole stacks; the stacks
that are kept beside them may be shortened.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import xxhash
from numpy.typing import NDArray
from scipy import sparse

from pipeline.frames import frame_elements, series_of
from pipeline.gcpu.bounds import STACK_BOUNDS, Ragged, StackBounds, bounded_stacks
from pipeline.model import FloatArray, IntArray, MetricKind, Profile

UIntArray = NDArray[np.uint64]

STRATUM_STACK_WINDOWS = 12
"""Stack windows in a window of counts by stratum: what strata differ in changes slowly."""


@dataclass(frozen=True, slots=True)
class Cells:
    """Where counts belong: parallel arrays of service, window start (epoch seconds), partition, stratum."""

    services: tuple[str, ...]  # (cells,)
    windows: FloatArray  # (cells,)
    partitions: IntArray  # (cells,)
    strata: tuple[int, ...]  # (cells,) ids; 0 where they are counted together


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts of a batch in coordinate form: entry i says that cell ``*_cell[i]`` holds ``*_samples[i]``."""

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
    stack_cells: Cells  # by stack window
    stack_width_s: float
    stacks: tuple[tuple[str, ...], ...]  # (distinct stacks,) root first
    stack_ids: UIntArray  # (distinct stacks,) 64-bit hashes of their elements
    stack_cell: IntArray
    stack_index: IntArray
    stack_samples: IntArray
    shortened: tuple[int, ...]  # (profiles,) how many stacks of each are not kept as they came

    @property
    def rows(self) -> int:
        """How many rows the largest table receives."""
        return max(
            len(self.series_cell), len(self.stratum_cell), len(self.stack_cell), len(self.total_samples)
        )


def count_samples(
    profiles: Sequence[Profile],
    partitions: Sequence[int],
    *,
    window_s: float,
    stack_window_s: float,
    bounds: StackBounds = STACK_BOUNDS,
) -> Counts:
    """Count samples per service, window and partition: in all, per series and per distinct stack.

    A profile belongs whole to the windows that hold the middle of its interval.

    Args:
        profiles: Profiles of any services and hosts.
        partitions: The partition each profile came from, parallel to ``profiles``.
        window_s: Width of gCPU windows, in seconds.
        stack_window_s: Width of stack windows, in seconds.
        bounds: What is kept of stacks, beside the counts of their series.
    """
    vocabulary: dict[str, int] = {}
    flats, lengths = _flatten(profiles, vocabulary)
    whole = Ragged(flats, np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64))
    counts = np.concatenate([np.empty(0, dtype=np.int64), *(p.counts for p in profiles)])
    per_profile = np.array([len(p.counts) for p in profiles], dtype=np.int64)
    stack_hash = _hash_stacks(_hash_labels(vocabulary)[flats], whole.starts)
    kept, shortened = bounded_stacks(whole, stack_hash, counts, per_profile, vocabulary, bounds)
    labels = list(vocabulary)

    distinct = _distinct(stack_hash)
    cells, cell_of = _cells(profiles, partitions, window_s)
    by_cell = _count_matrix(cell_of, distinct.of, counts, per_profile)
    held = _incidence(whole, distinct.first, len(labels))
    series = (by_cell @ held).tocoo()
    stratum_width_s = STRATUM_STACK_WINDOWS * stack_window_s
    stratum_cells, stratum_cell_of = _cells(profiles, partitions, stratum_width_s, by_sender=True)
    by_stratum = (_count_matrix(stratum_cell_of, distinct.of, counts, per_profile) @ held).tocoo()

    if kept is not whole:
        distinct = _distinct(_hash_stacks(_hash_labels(vocabulary)[kept.flat], kept.starts))
    stack_cells, stack_cell_of = _cells(profiles, partitions, stack_window_s)
    stack_entries = _count_matrix(stack_cell_of, distinct.of, counts, per_profile).tocoo()
    named = [series_of(label) for label in labels]
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
        stack_cells=stack_cells,
        stack_width_s=stack_window_s,
        stacks=_named(kept, distinct.first, labels),
        stack_ids=distinct.ids,
        stack_cell=stack_entries.row.astype(np.int64),
        stack_index=stack_entries.col.astype(np.int64),
        stack_samples=stack_entries.data,
        shortened=shortened,
    )


def stack_ids(stacks: Sequence[Sequence[str]]) -> UIntArray:
    """Return the 64-bit hashes of stacks of elements, as ``count_samples`` identifies them: (stacks,)."""
    vocabulary: dict[str, int] = {}
    flat = [vocabulary.setdefault(label, len(vocabulary)) for stack in stacks for label in stack]
    starts = np.cumsum([0, *map(len, stacks)], dtype=np.int64)
    return _hash_stacks(_hash_labels(vocabulary)[np.array(flat, dtype=np.int64)], starts)


def _flatten(profiles: Sequence[Profile], vocabulary: dict[str, int]) -> tuple[IntArray, IntArray]:
    """Return the elements of all stacks as indexes into ``vocabulary`` (which grows), and stack lengths."""
    flats, lengths = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
    for profile in profiles:
        elements = frame_elements(profile.frames, profile.annotations)
        widths = np.fromiter(map(len, elements), dtype=np.int64, count=len(elements))
        ids = np.array(
            [vocabulary.setdefault(label, len(vocabulary)) for group in elements for label in group],
            dtype=np.int64,
        )
        flat, depth = profile.stack_frames, np.diff(profile.stack_starts)
        if profile.annotations:
            flat, depth = _expand(flat, profile.stack_starts, widths)
        flats.append(ids[flat])
        lengths.append(depth)
    return np.concatenate(flats), np.concatenate(lengths)


def _expand(flat: IntArray, starts: IntArray, widths: IntArray) -> tuple[IntArray, IntArray]:
    """Replace every frame by its elements: ``widths[f]`` consecutive ones for frame f."""
    first = np.cumsum(widths) - widths
    width = widths[flat]
    ends = np.cumsum(width)
    within = np.arange(int(width.sum())) - np.repeat(ends - width, width)
    expanded = np.repeat(first[flat], width) + within
    bounds = np.concatenate([[0], ends])[starts]
    return expanded, np.diff(bounds)


@dataclass(frozen=True, slots=True)
class _Distinct:
    """Distinct stacks: their ids, one position where each stands, and which of them each stack is."""

    ids: UIntArray  # (distinct stacks,)
    first: NDArray[np.intp]  # (distinct stacks,)
    of: NDArray[np.intp]  # (stacks,)


def _distinct(stack_hash: UIntArray) -> _Distinct:
    return _Distinct(*np.unique(stack_hash, return_index=True, return_inverse=True))


def _hash_labels(labels: Iterable[str]) -> UIntArray:
    return np.array([xxhash.xxh3_64_intdigest(label.encode()) for label in labels], dtype=np.uint64)


def _hash_stacks(hashes: UIntArray, starts: IntArray) -> UIntArray:
    """Hash each stack's elements with their positions into 64 bits; equal stacks get equal hashes.

    Each (element, position) is mixed by splitmix64's finaliser and a stack is the sum of its parts, which
    needs no loop over stacks.
    """
    lengths = np.diff(starts)
    position = (np.arange(len(hashes)) - np.repeat(starts[:-1], lengths)).astype(np.uint64)
    mixed = hashes + (position + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    running: UIntArray = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(mixed, dtype=np.uint64)])
    sums: UIntArray = running[starts[1:]] - running[starts[:-1]]
    return sums


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


def _named(stacks: Ragged, chosen: IntArray, labels: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    return tuple(
        tuple(labels[e] for e in stacks.flat[stacks.starts[s] : stacks.starts[s + 1]].tolist())
        for s in chosen.tolist()
    )


def _count_matrix(
    cell_of: IntArray, columns: NDArray[np.intp], counts: IntArray, per_profile: IntArray
) -> sparse.csr_array:
    """Return cells × distinct stacks; ``per_profile`` says how many of the counts each profile has."""
    shape = (int(cell_of.max(initial=-1)) + 1, int(columns.max(initial=-1)) + 1)
    rows = np.repeat(cell_of, per_profile)
    matrix = sparse.csr_array((counts, (rows, columns)), shape=shape, dtype=np.int64)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    return matrix


def _incidence(stacks: Ragged, chosen: IntArray, labels: int) -> sparse.csr_array:
    """Return distinct stacks × series with 1 where a stack holds a series, however often."""
    flats, starts = stacks.flat, stacks.starts
    lengths = (starts[1:] - starts[:-1])[chosen]
    rows = np.repeat(np.arange(len(chosen)), lengths)
    within = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    columns = flats[np.repeat(starts[chosen], lengths) + within]
    matrix = sparse.csr_array(
        (np.ones(len(rows), dtype=np.int64), (rows, columns)), shape=(len(chosen), labels), dtype=np.int64
    )
    matrix.sum_duplicates()
    matrix.data[:] = 1
    return matrix
