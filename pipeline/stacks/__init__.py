"""Stacks as arrays: one index, sums over subtrees, overlap, differences. Pure."""

from pipeline.stacks.difference import ELLIPSIS, StackDifferenceConfig, stack_difference
from pipeline.stacks.index import (
    Series,
    StackIndex,
    index_stacks,
    mean_depths,
    membership,
    rows_of,
    share_changes,
)
from pipeline.stacks.overlap import Group, alike_shares, explained_shares, likeness, shares_given
from pipeline.stacks.subtree import (
    Below,
    Rises,
    measure_rises,
    stands_below,
    sum_below,
    sum_sets_below,
)

__all__ = [
    "ELLIPSIS",
    "Below",
    "Group",
    "Rises",
    "Series",
    "StackDifferenceConfig",
    "StackIndex",
    "alike_shares",
    "explained_shares",
    "index_stacks",
    "likeness",
    "mean_depths",
    "measure_rises",
    "membership",
    "rows_of",
    "share_changes",
    "shares_given",
    "stack_difference",
    "stands_below",
    "sum_below",
    "sum_sets_below",
]
