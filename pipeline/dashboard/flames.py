"""Flame graphs of a service: one span, or two held against each other; of some stacks or all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from markupsafe import Markup

from pipeline.dashboard.figures import figure_json
from pipeline.model import StackMatrix
from pipeline.report.figures import icicle_figure
from pipeline.report.flame import Shift, icicle, largest_shifts

SHIFTS = 15

NOTHING = "(nothing)"
"""No element of a stack."""


@dataclass(frozen=True, slots=True)
class Flames:
    """What a page shows of stacks; ``before`` is empty where nothing is compared."""

    before: Markup  # JSON of a figure, as it stands in a data block of a page
    after: Markup
    shifts: tuple[Shift, ...]
    trunk: tuple[str, ...]
    samples: tuple[float, float]  # before, after
    stacks: int


def flames_of(stacks: StackMatrix, service: str, marked: str = NOTHING) -> Flames:
    """Draw the stacks of two spans, the second coloured by the shift; an element is marked in both."""
    tree = icicle(stacks)
    compared = stacks.total_before > 0
    drawn = len(tree.paths) > 1
    return Flames(
        before=_block(figure_json(icicle_figure(tree, service, marked, "before")))
        if compared and drawn
        else Markup(""),
        after=_block(figure_json(icicle_figure(tree, service, marked, "after"))) if drawn else Markup(""),
        shifts=tuple(largest_shifts(stacks, SHIFTS)),
        trunk=tree.trunk,
        samples=(stacks.total_before, stacks.total_after),
        stacks=len(stacks.stacks),
    )


def within(stacks: StackMatrix, element_name: str) -> StackMatrix:
    """Return the stacks that hold an element: shares stay those of the whole service."""
    kept = np.array([element_name in stack for stack in stacks.stacks], dtype=np.bool_)
    chosen = tuple(stack for stack, keep in zip(stacks.stacks, kept, strict=True) if keep)
    return replace(stacks, stacks=chosen, before=stacks.before[kept], after=stacks.after[kept])


def annotated(stacks: StackMatrix, prefixes: Sequence[str], *, most: int = 200) -> list[str]:
    """Return the annotated elements of stacks, those with most samples first."""
    counts: dict[str, float] = {}
    for stack, count in zip(stacks.stacks, (stacks.before + stacks.after).tolist(), strict=True):
        for name in set(stack):
            if name.startswith(tuple(prefixes)):
                counts[name] = counts.get(name, 0.0) + count
    return sorted(counts, key=lambda name: (-counts[name], name))[:most]


def _block(text: str) -> Markup:
    # A data block of a page ends with </script>; plotly escapes < > & in its JSON.
    return Markup(text.replace("<", "\\u003c"))  # noqa: S704
