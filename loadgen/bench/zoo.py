"""Plain series with known changes, and with patterns that are none, for detectors of changes.

Each family draws a series of a given length. Sizes of changes are in standard deviations of the noise;
positions and directions are drawn; a change lasts at least a twelfth of the series. The truth is as a person
would mark it: a slope, a cycle or a single outlier is no change.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from scipy.signal import lfilter

from pipeline.model import FloatArray

Changes = tuple[int, ...]
Family = Callable[[Generator, int], tuple[FloatArray, Changes]]


@dataclass(frozen=True, slots=True)
class Specimen:
    """One series with its truth: the first point of each new regime, in order."""

    family: str
    values: FloatArray
    changes: Changes


def draw(family: str, points: int, seed: int) -> Specimen:
    """Return a series of the family; the same arguments give the same series.

    Raises:
        KeyError: If there is no such family.
        ValueError: If there are fewer than 16 points, too few for two changes.
    """
    if points < 16:
        raise ValueError(f"16 points or more, not {points}")
    rng = np.random.default_rng([seed, points, sum(map(ord, family))])
    values, changes = FAMILIES[family](rng, points)
    return Specimen(family, values, changes)


def autocorrelated(rng: Generator, points: int, correlation: float) -> FloatArray:
    """Return (points,) values of a stationary AR(1) process with mean 0 and variance 1."""
    white = rng.standard_normal(points + 200)
    values: FloatArray = lfilter([np.sqrt(1 - correlation**2)], [1, -correlation], white)[200:]
    return values


def positions(rng: Generator, points: int, changes: int) -> Changes:
    """Return ``changes`` positions in order, at least a twelfth of the series apart and from the ends."""
    apart = max(6, points // 12)
    room = points - (changes + 1) * apart
    spots = np.sort(rng.integers(0, max(room, 0) + 1, changes)) + apart * np.arange(1, changes + 1)
    return tuple(int(spot) for spot in spots)


def steps(rng: Generator, points: int, changes: Changes, low: float, high: float) -> FloatArray:
    """Return (points,) levels that move by low to high, up or down, at each change."""
    sizes = rng.uniform(low, high, len(changes)) * rng.choice([-1, 1], len(changes))
    jumps = np.zeros(points)
    jumps[list(changes)] = sizes
    return np.cumsum(jumps)


def _steps_in(correlation: float, low: float, high: float) -> Family:
    def family(rng: Generator, points: int) -> tuple[FloatArray, Changes]:
        changes = positions(rng, points, int(rng.integers(1, 5 if points >= 100 else 3)))
        return autocorrelated(rng, points, correlation) + steps(rng, points, changes, low, high), changes

    return family


def _steady(correlation: float) -> Family:
    return lambda rng, points: (autocorrelated(rng, points, correlation), ())


def _wander(rng: Generator, points: int) -> tuple[FloatArray, Changes]:
    return np.cumsum(rng.standard_normal(points)), ()


def _slope(rng: Generator, points: int) -> tuple[FloatArray, Changes]:
    rise = rng.uniform(3, 30) * rng.choice([-1, 1]) * np.linspace(0, 1, points)
    return rise + autocorrelated(rng, points, rng.uniform(0, 0.5)), ()


def _cycle(rng: Generator, points: int) -> FloatArray:
    period = rng.uniform(points / 12, points / 3.5)
    phase = 2 * np.pi * (np.arange(points) / period + rng.random())
    wave: FloatArray = rng.uniform(1.5, 5) * np.sin(phase)
    return wave


def _wave(rng: Generator, points: int) -> tuple[FloatArray, Changes]:
    return _cycle(rng, points) + rng.standard_normal(points), ()


def _pattern(rng: Generator, points: int) -> FloatArray:
    """Return a jagged season, as of months or days of the week, repeated."""
    season = rng.standard_normal(int(rng.choice([7, 12])))
    repeated: FloatArray = np.resize(3 * season, points)
    return repeated


def _season(rng: Generator, points: int) -> tuple[FloatArray, Changes]:
    return _pattern(rng, points) + rng.standard_normal(points), ()


def _season_steps(rng: Generator, points: int) -> tuple[FloatArray, Changes]:
    values, changes = _steps_in(0.2, 3, 8)(rng, points)
    return values + _pattern(rng, points), changes


def _heavy(rng: Generator, points: int) -> tuple[FloatArray, Changes]:
    return rng.standard_t(3, points), ()


def _spikes(rng: Generator, points: int) -> tuple[FloatArray, Changes]:
    values = rng.standard_normal(points)
    values[rng.random(points) < 0.02] += rng.choice([-1, 1]) * rng.uniform(6, 30)
    return values, ()


def _bursts(rng: Generator, points: int) -> tuple[FloatArray, Changes]:
    values = autocorrelated(rng, points, 0.3)
    for start in rng.integers(0, points, int(rng.integers(1, 4))):
        values[start : start + int(rng.integers(1, 4))] += rng.choice([-1, 1]) * rng.uniform(6, 20)
    return values, ()


def _heavy_steps(rng: Generator, points: int) -> tuple[FloatArray, Changes]:
    changes = positions(rng, points, int(rng.integers(1, 4 if points >= 100 else 3)))
    return rng.standard_t(3, points) + steps(rng, points, changes, 4, 10), changes


def _steps_on_slope(rng: Generator, points: int) -> tuple[FloatArray, Changes]:
    values, changes = _steps_in(0.2, 5, 10)(rng, points)
    return values + rng.uniform(-20, 20) * np.linspace(0, 1, points), changes


def _kinks(rng: Generator, points: int) -> tuple[FloatArray, Changes]:
    changes = positions(rng, points, int(rng.integers(1, 3)))
    apart = np.diff([0, *changes, points])
    # Up, then down, then up: between two bends the series moves by ten to thirty deviations.
    rises = rng.uniform(10, 30, len(apart)) * (-1.0) ** np.arange(len(apart)) * rng.choice([-1, 1])
    return np.cumsum(np.repeat(rises / apart, apart)) + rng.standard_normal(points), changes


def _multiplied(rng: Generator, points: int) -> tuple[FloatArray, Changes]:
    changes = positions(rng, points, int(rng.integers(1, 3)))
    level = np.exp(steps(rng, points, changes, 0.7, 1.5))
    return level * (1 + 0.15 * autocorrelated(rng, points, 0.2)), changes


def _counts(rng: Generator, points: int) -> tuple[FloatArray, Changes]:
    changes = positions(rng, points, int(rng.integers(1, 3)))
    rate = 3 * np.exp(np.abs(steps(rng, points, changes, 1.0, 1.8)))
    return rng.poisson(rate).astype(np.float64), changes


def _rare_counts(rng: Generator, points: int) -> tuple[FloatArray, Changes]:
    return rng.poisson(rng.uniform(0.2, 3), points).astype(np.float64), ()


def _rounded(rng: Generator, points: int) -> tuple[FloatArray, Changes]:
    values, changes = _steps_in(0.0, 3, 8)(rng, points)
    return np.round(values), changes


def _runs(rng: Generator, points: int) -> tuple[FloatArray, Changes]:
    """Draw a price list: constant for long, then another constant."""
    changes = positions(rng, points, int(rng.integers(1, 5 if points >= 100 else 3)))
    return steps(rng, points, changes, 1, 5), changes


def _spread(rng: Generator, points: int) -> tuple[FloatArray, Changes]:
    return rng.standard_normal(points) * np.linspace(0.5, rng.uniform(1, 3), points), ()


def _skewed(rng: Generator, points: int) -> tuple[FloatArray, Changes]:
    return np.exp(0.8 * autocorrelated(rng, points, 0.3)), ()


def _growing(rng: Generator, points: int) -> FloatArray:
    """Return a path that grows or falls at a rate with its own noise, as an economy does."""
    rate = rng.uniform(np.log(2), np.log(10)) / points * rng.choice([-1, 1])
    return np.cumsum(rate + rng.uniform(0.05, 0.7) * abs(rate) * rng.standard_normal(points))


def _growth(rng: Generator, points: int) -> tuple[FloatArray, Changes]:
    level = rng.uniform(1, 1000)
    return level * np.exp(_growing(rng, points)), ()


def _noisy_growth(rng: Generator, points: int) -> tuple[FloatArray, Changes]:
    rate = rng.uniform(np.log(2), np.log(10)) * rng.choice([-1, 1])
    noise = rng.uniform(0.02, 0.08) * autocorrelated(rng, points, rng.uniform(0, 0.5))
    return rng.uniform(1, 1000) * np.exp(rate * np.linspace(0, 1, points) + noise), ()


def _seasonal_growth(rng: Generator, points: int) -> tuple[FloatArray, Changes]:
    values, _ = _noisy_growth(rng, points)
    return values * np.exp(0.05 * _pattern(rng, points)), ()


def _growth_steps(rng: Generator, points: int) -> tuple[FloatArray, Changes]:
    changes = positions(rng, points, int(rng.integers(1, 3)))
    values, _ = _noisy_growth(rng, points)
    return values * np.exp(steps(rng, points, changes, 0.4, 0.8)), changes


FAMILIES: dict[str, Family] = {
    "white noise": _steady(0.0),
    "AR(0.3)": _steady(0.3),
    "AR(0.6)": _steady(0.6),
    "AR(0.8)": _steady(0.8),
    "AR(0.9)": _steady(0.9),
    "random walk": _wander,
    "heavy tails": _heavy,
    "skewed": _skewed,
    "rare counts": _rare_counts,
    "growing spread": _spread,
    "odd points": _spikes,
    "bursts of 1 to 3": _bursts,
    "slope": _slope,
    "wave": _wave,
    "season": _season,
    "growth that wanders": _growth,
    "growth": _noisy_growth,
    "growth with a season": _seasonal_growth,
    "small steps": _steps_in(0.0, 1.5, 3),
    "steps": _steps_in(0.0, 3, 10),
    "steps in AR(0.5)": _steps_in(0.5, 3, 8),
    "steps in AR(0.8)": _steps_in(0.8, 4, 10),
    "steps in heavy tails": _heavy_steps,
    "steps on a slope": _steps_on_slope,
    "steps in a season": _season_steps,
    "kinks": _kinks,
    "multiplied": _multiplied,
    "counts": _counts,
    "rounded": _rounded,
    "constant runs": _runs,
    "steps in growth": _growth_steps,
}
"""Name → generator; the first eighteen hold no change."""
