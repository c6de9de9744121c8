"""Stacks to counts per subroutine and window: pure functions over arrays."""

from pipeline.gcpu.bounds import STACK_BOUNDS, StackBounds
from pipeline.gcpu.count import Cells, Counts, count_samples, stack_ids

__all__ = ["STACK_BOUNDS", "Cells", "Counts", "StackBounds", "count_samples", "stack_ids"]
