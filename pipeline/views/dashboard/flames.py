"""Flame graphs of a service: one span, or two compared; of some stacks or all."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from markupsafe import Markup

from pipeline.model import METRIC_KINDS, StackMatrix
from pipeline.views.dashboard.comparison import StackComparison
from pipeline.views.dashboard.figures import figure_block
from pipeline.views.report.figures import icicle_figure
from pipeline.views.report.flame import FrameShift, icicle, inclusive_shares, largest_shifts

SHIFTS = 15

NOTHING = "(nothing)"
"""No element of a stack."""

_PREFIXES = tuple(measure.prefix for measure in METRIC_KINDS.values() if measure.gcpu and measure.prefix)


@dataclass(frozen=True, slots=True)
class Flames:
    """Stacks on a page; ``before`` is empty if nothing is compared."""

    before: Markup  # JSON of a figure, for a data block of a page
    after: Markup
    shifts: tuple[FrameShift, ...]
    trunk: tuple[str, ...]
    samples: tuple[float, float]  # before, after
    stacks: int
    lacking: str  # a sentence if there are no samples, or too few; else empty


def flames_of(found: StackComparison, service: str, marked: str = NOTHING, only: str = "") -> Flames:
    """Draw two sides, the second coloured by the shift beyond noise; an element is marked in both.

    With ``only`` the stacks that hold an element.
    """
    stacks = within(found.stacks, only) if only else found.stacks
    compared = stacks.total_before > 0
    dispersion = found.dispersion if compared else None
    tree = icicle(stacks, dispersion)
    drawn = len(tree.paths) > 1
    return Flames(
        before=figure_block(icicle_figure(tree, service, marked, "before"))
        if compared and drawn
        else Markup(""),
        after=figure_block(icicle_figure(tree, service, marked, "after" if compared else "alone"))
        if drawn
        else Markup(""),
        shifts=tuple(largest_shifts(stacks, SHIFTS, dispersion)),
        trunk=tree.trunk,
        samples=(stacks.total_before, stacks.total_after),
        stacks=len(stacks.stacks),
        lacking=found.lacking,
    )


def within(stacks: StackMatrix, element_name: str) -> StackMatrix:
    """Return the stacks that hold an element; shares remain those of the whole service."""
    mask = np.array([element_name in stack for stack in stacks.stacks], dtype=np.bool_)
    chosen = tuple(stack for stack, keep in zip(stacks.stacks, mask, strict=True) if keep)
    return replace(stacks, stacks=chosen, before=stacks.before[mask], after=stacks.after[mask])


def annotated(stacks: StackMatrix, *, most: int = 200) -> list[FrameShift]:
    """Return the annotated elements of stacks, such as endpoints, the largest first."""
    shifts = [
        FrameShift(name, *share.tolist())
        for name, share in inclusive_shares(stacks).items()
        if name.startswith(_PREFIXES)
    ]
    return sorted(shifts, key=lambda shift: (-shift.after - shift.before, shift.subroutine))[:most]
