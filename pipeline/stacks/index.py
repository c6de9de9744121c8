"""What stacks say about series: which hold which, how each share changed, how deep a series stands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from pipeline.model import BoolArray, FloatArray, IntArray, MetricKind, StackMatrix
from pipeline.stacks.labels import element

Series = tuple[MetricKind, str]


@dataclass(frozen=True, slots=True, eq=False)
class StackIndex:
    """Stacks as numbers, and the way back from a label to the stacks that hold it.

    Labels are numbered in the order in which they are met. ``flat[starts[i]:starts[i + 1]]`` are the labels
    of stack i, root first. ``standing[label_starts[k]:label_starts[k + 1]]`` are the places in ``flat``
    where label k stands, in ascending order.
    """

    names: tuple[str, ...]  # (labels,)
    labels: Mapping[str, int]
    flat: IntArray  # (elements of all stacks,)
    starts: IntArray  # (stacks + 1,)
    stack_of: IntArray  # (elements,) the stack that an element is of
    standing: IntArray  # (elements,)
    label_starts: IntArray  # (labels + 1,)

    @property
    def stacks(self) -> int:
        """How many stacks there are."""
        return len(self.starts) - 1

    def by_label(self, values: FloatArray) -> FloatArray:
        """Return the sums over the stacks that hold each label: (rows, labels) from (rows, stacks).

        As gCPU does, they count a stack once for a label, however often it recurs there.
        """
        width = max(self.stacks, 1)
        label, stack = np.divmod(np.unique(self.flat * width + self.stack_of), width)
        found = [np.bincount(label, weights=row[stack], minlength=len(self.names)) for row in values]
        return np.array(found, dtype=np.float64).reshape(len(values), len(self.names))

    def places(self, label: str) -> IntArray:
        """Return where a label stands, as indexes into ``flat``; empty for one that no stack holds."""
        number = self.labels.get(label)
        if number is None:
            return np.empty(0, dtype=np.int64)
        return self.standing[self.label_starts[number] : self.label_starts[number + 1]]

    def holding(self, labels: Iterable[str]) -> BoolArray:
        """Return which stacks hold at least one of the labels: (stacks,)."""
        holds = np.zeros(self.stacks, dtype=np.bool_)
        for label in labels:
            holds[self.stack_of[self.places(label)]] = True
        return holds


def index_stacks(stacks: Sequence[Sequence[str]]) -> StackIndex:
    """Index stacks by their labels, in time proportional to their elements."""
    labels: dict[str, int] = {}
    lengths = np.fromiter(map(len, stacks), dtype=np.int64, count=len(stacks))
    flat = np.fromiter(
        (labels.setdefault(label, len(labels)) for label in chain.from_iterable(stacks)),
        dtype=np.int64,
        count=int(lengths.sum()),
    )
    return StackIndex(
        names=tuple(labels),
        labels=labels,
        flat=flat,
        starts=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        stack_of=np.repeat(np.arange(len(stacks)), lengths),
        standing=np.argsort(flat, kind="stable"),
        label_starts=np.concatenate([[0], np.cumsum(np.bincount(flat, minlength=len(labels)))]).astype(
            np.int64
        ),
    )


def membership(stacks: Sequence[Sequence[str]], series: Sequence[Series]) -> BoolArray:
    """Return which stacks hold which series: (series, stacks)."""
    holds = np.zeros((len(series), len(stacks)), dtype=np.bool_)
    if len(series) == 1:  # one series is found faster than an index is made
        name = element(*series[0])
        holds[0] = [name in stack for stack in stacks]
        return holds
    index = index_stacks(stacks)
    for row, (kind, name) in enumerate(series):
        holds[row, index.stack_of[index.places(element(kind, name))]] = True
    return holds


def holding_any(stacks: Sequence[Sequence[str]], labels: set[str]) -> BoolArray:
    """Return which stacks hold at least one of the labels: (stacks,)."""
    return np.array([not labels.isdisjoint(stack) for stack in stacks], dtype=np.bool_)


def share_changes(matrix: StackMatrix) -> FloatArray:
    """Return by how much each stack's share of all samples grew: (stacks,); 0 where a span has no samples."""
    if not matrix.total_before or not matrix.total_after:
        return np.zeros(len(matrix.stacks))
    return matrix.after / matrix.total_after - matrix.before / matrix.total_before


def mean_depths(stacks: Sequence[Sequence[str]], weights: FloatArray, series: Sequence[Series]) -> FloatArray:
    """Return how deep each series stands on average, from 0 at the root: (series,); 0 where it never does."""
    labels = {element(kind, name): row for row, (kind, name) in enumerate(series)}
    depth, mass = np.zeros(len(series)), np.zeros(len(series))
    for stack, weight in zip(stacks, weights.tolist(), strict=True):
        last_at = {label: place for place, label in enumerate(stack) if label in labels}
        for label, place in last_at.items():
            depth[labels[label]] += weight * place
            mass[labels[label]] += weight
    return np.divide(depth, mass, out=np.zeros(len(series)), where=mass > 0)
