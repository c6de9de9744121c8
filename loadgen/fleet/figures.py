"""Figures 1, 8 and 9 of FBDetect's paper, reproduced from the paper's parameters (§1.2, §5.1)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.stats import norm

from loadgen.fleet.streams import Streams
from loadgen.fleet.timeline import Timeline
from loadgen.terminal import new_figure
from pipeline.model import FloatArray
from pipeline.model.errors import ConfigError

POINTS = 1000
SUBROUTINES = 1000  # k
PROCESS_SERVERS = (500_000, 5_000_000, 50_000_000)  # Figure 8; the last is the text's
SUBROUTINE_SERVERS = (500, 5_000, 50_000)  # Figure 9: 1,000 times fewer
_HALVES = ((0.40, 0.01, 0.00003), (0.60, 0.02, 0.00007))  # mean, variance, regression of each generation


@dataclass(frozen=True, slots=True)
class Panel:
    """One plot: values per point in time, and their mean."""

    title: str
    values: FloatArray  # (points,)
    mean: FloatArray  # (points,)
    unit: str = "%"


def moments(mean: float, variance: float, *, keep_negative: bool) -> tuple[float, float]:
    """Return mean and variance of a normal variable brought into its natural range.

    With ``keep_negative`` values are capped into [0, 1], as a process's CPU usage in Figure 1(a); without,
    negative ones are dropped, as a subroutine's in Figure 9 (footnote 3 of the paper).
    """
    sd = float(np.sqrt(variance))
    low, high = -mean / sd, (1 - mean) / sd
    if not keep_negative:
        hazard = float(norm.pdf(low) / norm.sf(low))
        return mean + sd * hazard, variance * (1 + low * hazard - hazard**2)
    inside = float(norm.cdf(high) - norm.cdf(low))
    density_low, density_high = float(norm.pdf(low)), float(norm.pdf(high))
    above = float(norm.sf(high))
    first = mean * inside + sd * (density_low - density_high) + above
    second = (
        (mean**2 + variance) * inside
        + 2 * mean * sd * (density_low - density_high)
        + variance * (low * density_low - high * density_high)
        + above
    )
    return first, second - first**2


def averaged(servers: int, subroutines: int, rng: np.random.Generator) -> Panel:
    """Average the series of ``servers`` servers of two generations, one regression midway (Figures 8, 9).

    With ``subroutines`` above 1 the series is that of one of so many equal subroutines: mean and variance of
    the process are divided by their number, and it has all of the regression. The mean over the servers is
    drawn from its normal distribution, whose moments are exact, instead of from every server.
    """
    after = np.arange(POINTS) >= POINTS // 2
    mean = np.zeros(POINTS)
    variance = np.zeros(POINTS)
    for level, spread, regression in _HALVES:
        for regressed in (False, True):
            moments_of_one = moments(
                level / subroutines + regression * regressed,
                spread / subroutines,
                keep_negative=subroutines == 1,
            )
            mean[after == regressed] += moments_of_one[0] / 2
            variance[after == regressed] += moments_of_one[1] / 2 / servers
    values = mean + rng.standard_normal(POINTS) * np.sqrt(variance)
    return Panel(f"m = {servers:,} servers", 100 * values, 100 * mean)


def figure_1(streams: Streams) -> list[Panel]:
    """Return a tiny regression in noise, a cost shift, and a transient dip of throughput.

    The paper gives parameters for (a) alone; (b) and (c) show what their captions describe.
    """
    rng = streams.of("figure", "1")
    after = np.arange(POINTS) >= POINTS // 2
    mean = np.where(after, 0.50005, 0.5)
    usage = np.clip(mean + rng.standard_normal(POINTS) * 0.1, 0, 1)
    shifted = np.where(after, 0.0014, 0.0008)
    samples = 2_000_000
    gcpu = rng.poisson(shifted * samples) / samples
    timeline = Timeline(0.0, 1.0, POINTS)
    dip = 1 - 0.25 * timeline.pulse(550, 700, rise_s=10, fall_s=60)
    throughput = 500 * dip * np.exp(rng.standard_normal(POINTS) * 0.02)
    return [
        Panel("(a) process CPU: regressed by 0.005 %", 100 * usage, 100 * mean),
        Panel("(b) a subroutine's gCPU: cost shift", 100 * gcpu, 100 * shifted),
        Panel("(c) throughput: transient", throughput, 500 * dip, "requests/s"),
    ]


def draw_figures(folder: Path, seed: int) -> list[Path]:
    """Write the three figures as PNG files and return their paths.

    Raises:
        ConfigError: matplotlib is not installed, or the folder cannot be written.
    """
    streams = Streams(seed)
    figures = {
        "figure-1": figure_1(streams),
        "figure-8": [averaged(m, 1, streams.of("figure", "8", str(m))) for m in PROCESS_SERVERS],
        "figure-9": [averaged(m, SUBROUTINES, streams.of("figure", "9", str(m))) for m in SUBROUTINE_SERVERS],
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return [_draw(folder / f"{name}.png", panels) for name, panels in figures.items()]
    except OSError as error:
        raise ConfigError(f"{folder}: {error.strerror or error}") from None


def _draw(path: Path, panels: list[Panel]) -> Path:
    figure = new_figure(11, 3.1, layout="constrained")
    for column, panel in enumerate(panels, start=1):
        axes = figure.add_subplot(1, len(panels), column)
        axes.plot(panel.values, ".", markersize=2, color="#7a8ca3")
        axes.plot(panel.mean, color="#c0392b", linewidth=1.6)
        axes.set_title(panel.title, fontsize=10)
        axes.set_ylabel(panel.unit, fontsize=9)
        axes.set_xlabel("time", fontsize=9)
        axes.ticklabel_format(axis="y", useOffset=False)
        axes.tick_params(labelsize=8)
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=90)
    return path
