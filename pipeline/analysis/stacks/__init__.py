"""Stacks as arrays: one index, sums over subtrees, overlap, differences. Pure."""

from pipeline.analysis.stacks.callers import Beside, beside_callers, callees_beside, caller_nodes, deepest_of
from pipeline.analysis.stacks.control import ControlConfig, against_control, usual_factors
from pipeline.analysis.stacks.difference import ELLIPSIS, stack_difference
from pipeline.analysis.stacks.index import (
    NO_STACKS,
    StackIndex,
    index_stacks,
    mean_depths,
    membership,
    rows_of,
    share_changes,
)
from pipeline.analysis.stacks.inserted_frames import (
    CarriedOver,
    InsertedFramesConfig,
    Moves,
    carry_over,
    moves_between,
)
from pipeline.analysis.stacks.overlap import Group, explained_shares, shares_in_step
from pipeline.analysis.stacks.subtree import measure_rises, sum_descendant_sets

__all__ = [
    "ELLIPSIS",
    "Beside",
    "CarriedOver",
    "ControlConfig",
    "InsertedFramesConfig",
    "Moves",
    "NO_STACKS",
    "Group",
    "StackIndex",
    "against_control",
    "beside_callers",
    "callees_beside",
    "caller_nodes",
    "deepest_of",
    "carry_over",
    "explained_shares",
    "index_stacks",
    "mean_depths",
    "measure_rises",
    "membership",
    "moves_between",
    "rows_of",
    "share_changes",
    "shares_in_step",
    "stack_difference",
    "sum_descendant_sets",
    "usual_factors",
]
