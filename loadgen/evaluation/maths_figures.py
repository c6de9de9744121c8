"""Figures of docs/maths, drawn from the detectors' own computations: ``make figures``."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.signal import lfilter

from loadgen.terminal import new_figure
from pipeline.analysis.detect.change_point import log_odds_span, p_values, signed_roots, split_sums
from pipeline.analysis.detect.offline.segment import segment
from pipeline.analysis.filters import ChangeSpans
from pipeline.analysis.filters.went_away import judge_went_away
from pipeline.analysis.statistics.long_run_noise.batch_means import NoiseConfig, unit_variance
from pipeline.model import FloatArray

RED, BLUE, GREY = "#c0392b", "#2c6fad", "#8a8a8a"

Draw = Callable[[Any], None]
"""Draws into a figure of matplotlib."""


def draw_split(figure: Any) -> None:
    """Draw a rare subroutine with a step, and the likelihood ratio of each split."""
    rng = np.random.default_rng(4)
    total, step = 500, 430
    rate = np.where(np.arange(total) < step, 3.0, 5.0)
    observed = rng.poisson(rate)[None].astype(np.float64)
    exposure = np.ones((1, total))
    first, last = 60, total - 3
    sums = split_sums(observed, exposure, first=first, last=last)
    roots = signed_roots(sums, "counts")
    best = int(roots[0].argmax()) + first
    span = log_odds_span(sums, np.ones(roots.shape, dtype=np.bool_))
    splits = np.array([last - first + 1])
    p_value = float(p_values(roots.max(axis=1), np.array([200.0]), span, splits)[0])

    upper, lower = figure.subplots(2, 1, sharex=True)
    upper.plot(observed[0], color=GREY, linewidth=0.6)
    upper.hlines(observed[0, :best].mean(), 0, best, color=BLUE)
    upper.hlines(observed[0, best:].mean(), best, total, color=RED)
    upper.set_ylabel("samples a window")
    lower.plot(np.arange(first, last + 1), roots[0], color="black", linewidth=1)
    lower.axvline(best, color=RED, linewidth=0.8)
    lower.set_ylabel("r of each split")
    lower.set_xlabel(f"window; the step is at {step}, the best split at {best}, p = {p_value:.1g}")


def draw_noise(figure: Any) -> None:
    """Draw how the variance of a mean, times its length, grows with the length."""
    rng = np.random.default_rng(1)
    windows, widths = 1440, np.array([1, 2, 4, 8, 15, 30, 60])
    axes = figure.subplots(1, 1)
    white = rng.standard_normal((200, windows))
    for hours, color in ((0, BLUE), (2, RED), (12, GREY)):
        values = white
        if hours:
            correlation = float(np.exp(-1 / (6 * hours)))
            drift = lfilter(
                [np.sqrt(1 - correlation**2)], [1, -correlation], rng.standard_normal((200, windows))
            )
            values = white + drift
        variances = [_variance_at(values, int(width)) for width in widths]
        label = f"white and drift of {hours} h" if hours else "white"
        axes.plot(widths / 6, variances, "o-", color=color, label=label, markersize=3)
    axes.set(xscale="log", yscale="log", xlabel="hours compared", ylabel="variance of one window's worth")
    axes.legend(frameon=False)


def draw_went_away(figure: Any) -> None:
    """Draw three rises and the decision of the sequential test on each."""
    rng = np.random.default_rng(7)
    total, analysis, extended, change = 660, 600, 624, 605
    window = np.arange(total)
    rises = {
        "a lasting step": window >= change,
        "a transient": (window >= change) & (window < 626),
        "a dip within a lasting step": (window >= change) & ~((window >= 622) & (window < 630)),
    }
    for axes, (title, risen) in zip(figure.subplots(3, 1, sharex=True), rises.items(), strict=True):
        values = 10 + rng.standard_normal(total) + 2.5 * risen
        judged = judge_went_away(
            values[None],
            np.ones((1, total)),
            ChangeSpans(
                change_index=np.array([change]),
                analysis_index=analysis,
                extended_index=extended,
                resolution_s=600.0,
                rising=True,
            ),
        )[0]
        axes.plot(window[540:], values[540:], color=GREY, linewidth=0.8)
        axes.axvspan(analysis, extended, color=BLUE, alpha=0.08)
        axes.axvspan(extended, total, color=RED, alpha=0.06)
        if judged.returned_index is not None:
            axes.axvline(judged.returned_index, color=RED, linewidth=1)
        gone = judged.gone_away
        evidence = f"evidence of a return {gone.statistic:.1f}, bound {gone.bound:.1f}"
        axes.set_title(f"{title}: {evidence}", fontsize=8, loc="left")
    axes.set_xlabel("window; the analysis window is blue, the extended one red; a line marks the return")


def draw_explanations(figure: Any) -> None:
    """Draw plain series and the changes in the shortest description of each."""
    rng = np.random.default_rng(11)
    points = np.arange(160)
    correlation = 0.6
    noise = [
        lfilter([np.sqrt(1 - correlation**2)], [1, -correlation], rng.standard_normal(160)) for _ in range(4)
    ]
    series = {
        "two steps in AR(0.6)": 3.0 * (points >= 60) - 4.0 * (points >= 110) + noise[0],
        "a slope": points / 12 + noise[1],
        "a wave": 4 * np.sin(points / 12) + noise[2],
        "a slope with a step": points / 20 + 5.0 * (points >= 90) + noise[3],
    }
    for axes, (title, values) in zip(figure.subplots(2, 2).flat, series.items(), strict=True):
        axes.plot(points, values, color=GREY, linewidth=0.8)
        shifts = segment(values)
        for shift in shifts:
            axes.axvline(shift.index, color=RED, linewidth=1)
        change_points = ", ".join(str(shift.index) for shift in shifts) or "none"
        axes.set_title(f"{title}: change points {change_points}", fontsize=8, loc="left")


FIGURES: dict[str, tuple[Draw, tuple[float, float]]] = {
    "split": (draw_split, (7.0, 3.6)),
    "noise": (draw_noise, (5.0, 3.0)),
    "went-away": (draw_went_away, (7.0, 4.2)),
    "explanations": (draw_explanations, (7.0, 3.8)),
}
"""Name of the file → how it is drawn, and its size in inches."""


def write_figures(folder: Path) -> list[Path]:
    """Draw all figures as SVG, the same bytes each time, and return their paths."""
    import matplotlib as mpl

    mpl.use("svg")
    settings: Any = {"svg.hashsalt": "smidgen", "svg.fonttype": "none", "font.size": 8, "path.simplify": True}
    written = []
    with mpl.rc_context(settings):
        for name, (draw, size) in FIGURES.items():
            figure = new_figure(*size, layout="constrained")
            draw(figure)
            for axes in figure.axes:
                axes.spines[["top", "right"]].set_visible(False)
            path = folder / f"{name}.svg"
            figure.savefig(path, metadata={"Date": None}, facecolor="white")
            written.append(path)
    return written


def _variance_at(values: FloatArray, width: int) -> float:
    """Return the typical variance, by blocks of one width, of a mean of one window's exposure."""
    blocks = values[:, : values.shape[1] // width * width].reshape(len(values), -1, width)
    config = NoiseConfig(min_blocks=blocks.shape[1])  # this scale alone
    variance, _ = unit_variance(
        blocks.sum(axis=2),
        np.full(blocks.shape[:2], float(width)),
        longest=1,
        apart=2,
        counts=False,
        config=config,
    )
    return float(np.median(variance))


if __name__ == "__main__":
    for path in write_figures(Path(sys.argv[1])):
        print(path)
