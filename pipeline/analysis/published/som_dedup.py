"""SOMDedup: similar candidates of one scan and metric type are one regression (FBDetect §5.4.7)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from pipeline.analysis.published.importance import ImportanceConfig, importance_scores
from pipeline.analysis.published.som import SomConfig, cluster_items
from pipeline.analysis.published.som_features import BLOCKS, FeatureConfig, candidate_features
from pipeline.analysis.stacks import Group
from pipeline.model import BoolArray, Change, FloatArray


@dataclass(frozen=True, slots=True)
class SomDedupConfig:
    """Settings of each part."""

    features: FeatureConfig = field(default_factory=FeatureConfig)
    som: SomConfig = field(default_factory=SomConfig)
    importance: ImportanceConfig = field(default_factory=ImportanceConfig)


def potential_causes(names: Sequence[str], changes: Sequence[Sequence[Change]]) -> BoolArray:
    """Return which changes may be the root cause of which candidates: (candidates, changes).

    In §5.4.7 these are the changes that modify the regressed subroutine and were deployed just before.

    Args:
        names: (candidates,) subroutines.
        changes: (candidates,) the changes deployed just before each.
    """
    ids = sorted({change.id for own in changes for change in own})
    column = {change: position for position, change in enumerate(ids)}
    causes = np.zeros((len(names), len(ids)), dtype=np.bool_)
    for row, (name, own) in enumerate(zip(names, changes, strict=True)):
        for change in own:
            causes[row, column[change.id]] |= name in change.subroutines
    return causes


def group_by_som(
    values: FloatArray,
    names: Sequence[str],
    change_times: FloatArray,
    before: FloatArray,
    after: FloatArray,
    causes: BoolArray,
    *,
    config: SomDedupConfig | None = None,
) -> list[Group]:
    """Group candidates by a self-organising map of their features.

    The order of candidates changes only the order of the groups. ``explained`` is the similarity of a member
    and its representative: 1 less half their squared distance, on average over the blocks.

    Args:
        values: (candidates, windows) gCPU as the scan saw it, NaN where there is no data.
        names: (candidates,) metric ids.
        change_times: (candidates,) epoch seconds.
        before: (candidates,) gCPU.
        after: (candidates,) gCPU.
        causes: (candidates, changes) from ``potential_causes``.
        config: Settings.
    """
    config = config or SomDedupConfig()
    # A fixed order, since the rounding of sums depends on it.
    order = np.array(
        sorted(range(len(names)), key=lambda i: (names[i], change_times[i], before[i], after[i]))
    )
    order = order.astype(np.int64)
    features = candidate_features(
        values[order],
        [names[i] for i in order],
        change_times[order],
        causes[order],
        config=config.features,
    )
    clusters = cluster_items(features, config=config.som)
    scores = importance_scores(
        before[order], after[order], causes[order].any(axis=1), clusters, config=config.importance
    )
    groups = []
    for number in range(int(clusters.max(initial=-1)) + 1):
        rows = np.flatnonzero(clusters == number)
        chosen = int(rows[scores[rows].argmax()])
        rest = rows[rows != chosen]
        apart = np.square(features[rest] - features[chosen]).sum(axis=1)
        similarity = np.clip(1.0 - apart / (2.0 * BLOCKS), 0.0, 1.0)
        members = tuple(int(i) for i in order[rest])
        groups.append(Group(int(order[chosen]), members, tuple(map(float, similarity))))
    return groups
