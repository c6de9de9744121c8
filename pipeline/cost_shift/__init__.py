"""Cost that only moved between subroutines: pure functions over stacks (FBDetect §5.4.6)."""

from pipeline.cost_shift.daily_noise import MIN_DAYS, DailyNoise
from pipeline.cost_shift.decision import CostShiftConfig, judge_cost_shift
from pipeline.cost_shift.domains import (
    REGEX,
    Domain,
    LabelGroup,
    compile_pattern,
    find_domains,
    find_members,
    match_labels,
)
from pipeline.cost_shift.refactorings import (
    Refactorings,
    StackSimilarity,
    compare_stacks,
    find_refactorings,
)
from pipeline.cost_shift.scan import LabelGroups, StackEvidence, judge_cost_shifts
from pipeline.cost_shift.stack_history import StackHistory, stack_history

__all__ = [
    "MIN_DAYS",
    "REGEX",
    "CostShiftConfig",
    "DailyNoise",
    "Domain",
    "LabelGroup",
    "LabelGroups",
    "Refactorings",
    "StackEvidence",
    "StackHistory",
    "StackSimilarity",
    "compare_stacks",
    "compile_pattern",
    "find_domains",
    "find_members",
    "find_refactorings",
    "judge_cost_shift",
    "judge_cost_shifts",
    "match_labels",
    "stack_history",
]
