"""Stacks as arrays: one index, sums over subtrees, overlap, differences. Pure."""

from pipeline.stacks.difference import ELLIPSIS, StackDifferenceConfig, stack_difference
from pipeline.stacks.index import (
    NO_STACKS,
    Series,
    StackIndex,
    index_stacks,
    mean_depths,
    membership,
    rows_of,
    share_changes,
)
from pipeline.stacks.overlap import Group, explained_shares, shares_in_step
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
    "NO_STACKS",
    "Below",
    "Group",
    "Rises",
    "Series",
    "StackDifferenceConfig",
    "StackIndex",
    "explained_shares",
    "index_stacks",
    "mean_depths",
    "measure_rises",
    "membership",
    "rows_of",
    "share_changes",
    "shares_in_step",
    "stack_difference",
    "stands_below",
    "sum_below",
    "sum_sets_below",
]
