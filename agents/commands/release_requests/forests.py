"""Liao et al.'s random forests beside costs, as text and as JSON (2021, §5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pipeline.commands.tables import Column, print_table
from pipeline.commands.terminal import print_lines, print_note
from pipeline.files.listing import listed
from pipeline.releases.requests import NotCompared, Releases, Selection, choose_types, seen_load, spelt
from pipeline.settings.extras import require

if TYPE_CHECKING:
    from pipeline.analysis.published.liao2021.forest import Effect, ForestComparison

_SHOWN = 10
"""Most types of each kind that are shown."""


@dataclass(frozen=True, slots=True)
class Forests:
    """Comparison of both releases by forests, for each metric.

    Args:
        comparisons: Name of the metric → what they say, and which types they know.
        alpha: Level at which the R² of deviance counts.
    """

    comparisons: Mapping[str, tuple[ForestComparison, Selection] | NotCompared]
    alpha: float

    @classmethod
    def of(cls, metrics: Mapping[str, Releases], alpha: float, seed: int) -> Forests:
        """Fit the forests to each metric's periods; takes at most a minute for a metric.

        Raises:
            ConfigError: scikit-learn is not installed.
        """
        require("sklearn")
        return cls({name: _compared(releases, seed) for name, releases in metrics.items()}, alpha)

    def to_json(self, name: str) -> dict[str, Any]:
        """Return a metric's comparison as JSON; ``left_out`` maps a type to the types that stand for it."""
        comparison = self.comparisons[name]
        if isinstance(comparison, NotCompared):
            return {"compared": False, "why": str(comparison)}
        forests, selection = comparison
        return {
            "compared": True,
            "differ": forests.p <= self.alpha,
            "r_squared": forests.r_squared,
            "p": forests.p,
            "effects": [asdict(effect) for effect in forests.effects],
            "left_out": {type_: list(substitutes) for type_, substitutes in selection.left_out.items()},
        }

    def show(self, name: str) -> None:
        """Print a metric's comparison, the types that go with deviance, and the types that are left out."""
        comparison = self.comparisons[name]
        if isinstance(comparison, NotCompared):
            print_note(f"{name}: no forests: {comparison}")
            return
        forests, selection = comparison
        verdict = f"{'differ' if forests.p <= self.alpha else 'no change'}, p {forests.p:.2g}"
        print_lines([f"{name}, forests: {verdict}; requests explain {forests.r_squared:.0%} of deviance"])
        if forests.effects:
            print_table(_effect_columns(selection), forests.effects[:_SHOWN])
        if alone := [spelt(type_) for type_, substitutes in selection.left_out.items() if not substitutes]:
            print_note(f"{name}, forests: too rare to vary: {listed(alone)}")


def _compared(releases: Releases, seed: int) -> tuple[ForestComparison, Selection] | NotCompared:
    # scikit-learn is an extra, and takes a second to import.
    from pipeline.analysis.published.liao2021.forest import ReleaseLoad, compare_forests

    try:
        seen, _ = seen_load(releases)
        selection = choose_types(seen)
    except NotCompared as error:
        return error
    selected = seen.of_types(selection.kept)
    old, new = (ReleaseLoad(side.counts, side.metric) for side in (selected.old, selected.new))
    return compare_forests(selected.types, old, new, seed, np.random.default_rng(seed)), selection


def _effect_columns(selection: Selection) -> tuple[Column[Effect], ...]:
    """Return the columns of types that may be the cause, with those they stand for (§5, steps 2 and 5)."""

    def represented(effect: Effect) -> str:
        types = [name for name, substitutes in selection.left_out.items() if effect.type in substitutes]
        return ", ".join(map(spelt, types[:_SHOWN]))

    return (
        Column("request", lambda effect: spelt(effect.type)),
        Column("10 % more: deviance", "effect", "+.1%"),
        Column("p", form=".2g"),
        Column("stands for", represented),
    )
