"""Mixed linear models beside costs one by one, as text and as JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from pipeline.commands.tables import NONE, Column, print_table
from pipeline.commands.terminal import print_lines, print_note
from pipeline.releases.requests import NotCompared, ReleaseComparison, Releases, RequestCompareConfig, spelt
from pipeline.releases.requests.mixed import MixedChange, MixedComparison, compare_mixed_releases

_SHOWN = 10
"""Types whose cost is shown."""

Costs = ReleaseComparison | NotCompared


@dataclass(frozen=True, slots=True)
class MixedModels:
    """A mixed model of each metric.

    Args:
        comparisons: Name of the metric → its model.
        alpha: Level at which costs count as changed.
    """

    comparisons: Mapping[str, MixedComparison | NotCompared]
    alpha: float

    @classmethod
    def of(cls, metrics: Mapping[str, Releases], config: RequestCompareConfig) -> MixedModels:
        """Fit a mixed model to each metric's periods."""
        return cls(compare_mixed_releases(metrics, config), config.alpha)

    def slower(self, name: str) -> bool | None:
        """Return whether the new release costs more; None if that cannot be said."""
        comparison = self.comparisons[name]
        return comparison.slower(self.alpha) if isinstance(comparison, MixedComparison) else None

    def to_json(self, name: str, costs: Costs) -> dict[str, Any]:
        """Return a metric's model as JSON; ``decides`` says whether it determines the exit code."""
        comparison = self.comparisons[name]
        if isinstance(comparison, NotCompared):
            return {"compared": False, "why": str(comparison)}
        changes = [asdict(change) | {"type": spelt(change.type)} for change in comparison.changes]
        return {
            "compared": True,
            "decides": too_few(costs),
            "slower": comparison.slower(self.alpha),
            "p": comparison.p,
            "share": comparison.share,
            "changes": changes,
        }

    def show(self, name: str, costs: Costs) -> None:
        """Print a metric's model, and the costs of both methods if one found a change."""
        comparison = self.comparisons[name]
        if isinstance(comparison, NotCompared):
            print_note(f"{name}: no mixed model: {comparison}")
            return
        changed = comparison.p <= self.alpha
        verdict = "slower" if comparison.slower(self.alpha) else "changed" if changed else "no change"
        print_lines(
            [f"{name}, mixed model: {verdict}, p {comparison.p:.2g}; {comparison.share:+.2%} of the metric"]
        )
        if isinstance(costs, NotCompared) and not too_few(costs):
            print_note(f"{name}: not judged by the mixed model either: {costs}")
        if changed or (isinstance(costs, ReleaseComparison) and costs.changed):
            _show_costs(comparison, costs)


def too_few(costs: Costs) -> bool:
    """Return whether there are too few periods to compare costs."""
    return isinstance(costs, NotCompared) and costs.code == "few_periods"


def _show_costs(comparison: MixedComparison, costs: Costs) -> None:
    """Print changes of cost by both methods, with 95 % intervals, for types that either method names."""
    by_costs, missing = {}, NONE
    if isinstance(costs, ReleaseComparison):
        changes = costs.costs.changes if costs.changed else ()
        by_costs = {change.type: _interval(change.change, change.error) for change in changes}
        missing = "no change"
    likely = comparison.likely
    named = [row for row in comparison.changes if row.type in likely or row.type in by_costs]
    named.sort(key=lambda row: row.type not in by_costs)
    columns: tuple[Column[MixedChange], ...] = (
        Column("request", lambda row: spelt(row.type)),
        Column("cost, one by one", lambda row: by_costs.get(row.type, missing), str),
        Column("cost, mixed model", lambda row: _interval(row.change, row.error), str),
        Column("rose most", "chance", ".0%"),
    )
    print_table(columns, named[:_SHOWN])
    if len(named) > _SHOWN:
        print_lines([f"and {len(named) - _SHOWN} more"])


def _interval(change: float, error: float) -> str:
    return f"{change:+.3g} ± {1.96 * error:.2g}" if math.isfinite(change) else NONE
