"""What stacks say about series: which hold which, how each share changed, how deep a series stands."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pipeline.gcpu.labels import element
from pipeline.model import BoolArray, FloatArray, MetricKind, StackMatrix

Series = tuple[MetricKind, str]


def membership(stacks: Sequence[Sequence[str]], series: Sequence[Series]) -> BoolArray:
    """Return which stacks hold which series: (series, stacks)."""
    rows: dict[str, list[int]] = {}
    for row, (kind, name) in enumerate(series):
        rows.setdefault(element(kind, name), []).append(row)
    holds = np.zeros((len(series), len(stacks)), dtype=np.bool_)
    for column, stack in enumerate(stacks):
        for label in set(stack):
            if label in rows:
                holds[rows[label], column] = True
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
