"""The gCPU attribution of a regression to a change (FBDetect §5.4.9, Table 4)."""

from __future__ import annotations

from collections.abc import Collection

from pipeline.gcpu.stacks import holding_any, share_changes
from pipeline.model import BoolArray, StackMatrix


def attributed_fraction(
    matrix: StackMatrix, regressed: BoolArray, subroutines: Collection[str]
) -> float | None:
    """Return L/R: the fraction of a regression from stacks that hold a modified subroutine.

    R is the rise of the regressed series; L the rise of those of its stacks that also hold one of
    ``subroutines``. In the paper's Table 4 a change of A and E explains 80 % of B's regression.

    Args:
        matrix: Stack counts before and after the change point.
        regressed: (stacks,) which stacks hold the regressed series.
        subroutines: Names that the change modified.

    Returns:
        The fraction, above 1 where other stacks fell, negative where the change's stacks fell; None where
        the stacks show no rise that could be attributed.
    """
    rise = share_changes(matrix)
    whole = float(rise[regressed].sum())
    if whole <= 0:
        return None
    touched = holding_any(matrix.stacks, set(subroutines))
    return float(rise[regressed & touched].sum()) / whole
