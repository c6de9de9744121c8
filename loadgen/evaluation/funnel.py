"""Funnel in the form of FBDetect's Table 5: change points after each step, and their share of all."""

from __future__ import annotations

from dataclasses import dataclass

from loadgen.evaluation.model import RunFunnel

TITLES = {
    "detected": "Change points detected (§5.4.2, §5.4.5)",
    "went_away": "After went-away detection (§5.4.3)",
    "seasonality": "After seasonality detection (§5.4.4)",
    "threshold": "After threshold filtering (Table 3)",
    "significance": "After significance for the scan's size",
    "same_regression": "After SameRegressionMerger",
    "som_dedup": "After grouping (§5.4.7)",
    "cost_shift": "After cost-shift analysis (§5.4.6)",
    "pairwise_dedup": "After PairwiseDedup (§5.4.8)",
}
"""Steps by the names that the ledger has for them; others are shown by their name."""


@dataclass(frozen=True, slots=True)
class FunnelLine:
    """One line of the table; ``one_in`` is n of the ratio 1/n, None if there are none."""

    step: str
    title: str
    remaining: int
    one_in: float | None


def funnel_lines(funnel: RunFunnel) -> tuple[FunnelLine, ...]:
    """Return the table's lines; ratios are to the first line."""
    first = funnel.steps[0].remaining if funnel.steps else 0
    return tuple(
        FunnelLine(
            step=step.step,
            title=TITLES.get(step.step, f"After {step.step.replace('_', ' ')}"),
            remaining=step.remaining,
            one_in=first / step.remaining if step.remaining else None,
        )
        for step in funnel.steps
    )


def short_count(count: int) -> str:
    """Write a count as the paper does: 582, 8.46K, 3.96M."""
    for size, unit in ((1_000_000, "M"), (1_000, "K")):
        if count >= size:
            return f"{count / size:.2f}".rstrip("0").rstrip(".") + unit
    return str(count)


def ratio(line: FunnelLine) -> str:
    """Write a line's ratio as 1/n: n is whole from ten on, and has one decimal below."""
    if line.one_in is None:
        return "–"
    return f"1/{line.one_in:.0f}" if line.one_in >= 10 else f"1/{line.one_in:.3g}"
