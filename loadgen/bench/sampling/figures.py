"""Figure of the sampling benchmark: cost against error, and time against error of pruning."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from loadgen.bench.sampling.rates import CORRECTED, FIXED, POLICIES, POOLED, PUBLISHED, PolicyPoint
from loadgen.bench.sampling.stacks import MOST_ERROR, THINNING, THREAD_PRUNING, PruningResult
from loadgen.terminal import new_figure

_COLORS = {FIXED: "#8a8a8a", POOLED: "#7fb069", PUBLISHED: "#2c6fad", CORRECTED: "#c0392b"}
_MARKERS = {FIXED: "o", POOLED: "^", PUBLISHED: "s", CORRECTED: "D"}
_PRUNED = {THREAD_PRUNING: "#2c6fad", THINNING: "#c0392b"}
_LABEL_HEIGHT = {THREAD_PRUNING: 0.3, THINNING: 0.74}  # of the panel
_PAPER = (0.068, 0.0058)
"""Results of Atys at P99 (§6.3): time saved, and MAPE of the top 50 functions."""


def draw_sampling(points: Sequence[PolicyPoint], pruned: Sequence[PruningResult]) -> Any:
    """Return a figure with a panel for each kind of service and one for pruning."""
    import matplotlib as mpl

    settings: Any = {"svg.hashsalt": "smidgen", "svg.fonttype": "none", "font.size": 8}
    with mpl.rc_context(settings):
        kinds = list(dict.fromkeys(point.kind for point in points))
        figure = new_figure(9.0, 5.4, layout="constrained")
        panels = figure.subplots(2, 3).flat
        for axes, kind in zip(panels, kinds, strict=False):
            _draw_rates(axes, [point for point in points if point.kind == kind])
            axes.set_title(kind, loc="left", fontsize=9)
        last = list(figure.axes)[len(kinds)]
        _draw_pruning(last, pruned)
        for axes in figure.axes:
            axes.spines[["top", "right"]].set_visible(False)
        handles, labels = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=len(labels), frameon=False)
    return figure


def save_figure(figure: Any, path: Any) -> None:
    """Write a figure as SVG, the same bytes each time."""
    import matplotlib as mpl

    settings: Any = {"svg.hashsalt": "smidgen", "svg.fonttype": "none"}
    with mpl.rc_context(settings):
        figure.savefig(path, format="svg", metadata={"Date": None}, facecolor="white")


def _draw_rates(axes: Any, points: Sequence[PolicyPoint]) -> None:
    for policy in POLICIES:
        own = sorted((point.mean_hz, point.error * 100) for point in points if point.policy == policy)
        rates, errors = np.array(own).T
        axes.plot(
            rates,
            errors,
            color=_COLORS[policy],
            marker=_MARKERS[policy],
            markersize=3.5,
            linewidth=1,
            label=policy,
        )
    axes.set(xscale="log", yscale="log", xlabel="samples a second, mean", ylabel="error of shares, % of CPU")
    axes.set_yticks([0.2, 0.5, 1, 2], ["0.2", "0.5", "1", "2"])
    axes.set_yticks([], minor=True)
    axes.set_xticks([10, 100, 1000], ["10", "100", "1,000"])
    axes.grid(color="#e8e8e8", linewidth=0.6)


def _draw_pruning(axes: Any, pruned: Sequence[PruningResult]) -> None:
    for result in pruned:
        whole = result.trials[0].time_s
        saved = [(1 - trial.time_s / whole) * 100 for trial in result.trials]
        errors = [trial.error * 100 for trial in result.trials]
        color = _PRUNED[result.method]
        axes.plot(errors, saved, color=color, marker="o", markersize=3.5, linewidth=1)
        axes.text(
            0.97,
            _LABEL_HEIGHT[result.method],
            result.method,
            transform=axes.transAxes,
            ha="right",
            color=color,
        )
    axes.plot([_PAPER[1] * 100], [_PAPER[0] * 100], "*", color="black", markersize=8)
    axes.annotate(
        "Atys, P99",
        (_PAPER[1] * 100, _PAPER[0] * 100),
        xytext=(7, -3),
        textcoords="offset points",
        fontsize=7,
    )
    axes.axvline(MOST_ERROR * 100, color="#8a8a8a", linewidth=0.7, linestyle=":")
    axes.set_xlim(-0.1, 4)
    axes.set(xlabel="MAPE of the top 50 functions, %", ylabel="aggregation time saved, %")
    axes.set_title("pruning", loc="left", fontsize=9)
    axes.grid(color="#e8e8e8", linewidth=0.6)
