"""Cycles that repeat through a whole series, which are offered for removal, as they are no change.

Harmonics of one period are fitted where a periodogram peaks: that of the series without its linear trend,
which shows long smooth waves, and that of its differences with large ones clipped, in which a step is one odd
value and a wandering level is flat, so that the seasons of jagged, stepwise or drifting series show.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import ndimage

from pipeline.analysis.statistics.robust import quantile_deviation
from pipeline.model import FloatArray

_CYCLES = 3  # at least so many in the series: twice may be chance
_HARMONICS = 6  # describe every season of up to twelve points, and smoother ones of any length
_DIVISORS = 12  # the peak may be such a multiple of the fundamental frequency
_OVERSAMPLING = 4


@dataclass(frozen=True, slots=True)
class Season:
    """A cycle with mean 0, (points,), and the nats of its parameters."""

    period: float  # points
    component: FloatArray
    nats: float


def find_seasons(values: FloatArray, *, bound: float) -> list[Season]:
    """Return up to one cycle from each periodogram, where it shortens the description of the series.

    The comparison is with AR(1) noise alone, whose innovations may be as small as with the cycle where the
    series wanders. A cycle whose size changes linearly is tried too. Each coefficient takes ½ log n nats, and
    the period 2 log n, as a change takes.

    Args:
        values: (points,) finite.
        bound: Standard deviations at which differences are clipped.
    """
    points = len(values)
    if points < 4 * _CYCLES:
        return []
    trend = np.stack([np.ones(points), np.arange(points) / points - 0.5], axis=1)
    ends = np.sort(values)[[_CYCLES - 1, -_CYCLES]]
    level = np.clip(values, *ends)  # what fewer points than cycles reach is no season, but may hide one
    level -= trend @ np.linalg.lstsq(trend, level, rcond=None)[0]
    steps = np.diff(values) - np.median(np.diff(values))
    limit = bound * quantile_deviation(steps)
    steps = np.clip(steps, -limit, limit)
    seasons = []
    for signal, differenced in ((level, False), (steps - steps.mean(), True)):
        peak = _peak(signal)
        if peak is None:
            continue
        fits = [_fit(signal, points, *peak, growing, differenced) for growing in (False, True)]
        best = max((fit for fit in fits if fit), key=lambda fit: fit[0], default=None)
        if best and best[0] > 0:
            seasons.append(best[1])
    return seasons


def _peak(signal: FloatArray) -> tuple[float, int] | None:
    """Return the period and the number of harmonics that explain most for their number, if worth a fit."""
    points = len(signal)
    total = float(signal @ signal)
    length = _OVERSAMPLING * points
    power = np.abs(np.fft.rfft(signal, length)) ** 2
    lowest = _CYCLES * _OVERSAMPLING
    if total <= 0 or len(power) <= lowest:
        return None
    at = lowest + int(np.argmax(power[lowest:]))
    strongest = ndimage.maximum_filter1d(
        power, 3
    )  # a multiple of a rounded frequency lies beside its position
    best: tuple[float, int, int] | None = None
    for divisor in range(1, at // lowest + 1 if at < _DIVISORS * lowest else _DIVISORS + 1):
        most = min(length * divisor // (2 * at), _HARMONICS)
        harmonics = np.arange(1, most + 1)
        explained = np.cumsum(strongest[np.rint(harmonics * at / divisor).astype(np.int64)]) * 2 / points
        left = np.maximum(total - explained, 1e-9 * total)
        gain = points / 2 * np.log(total / left) - (harmonics + 2) * np.log(points)
        enough = int(np.argmax(gain))
        if gain[enough] > 0 and (best is None or gain[enough] > best[0]):
            best = float(gain[enough]), divisor, enough + 1
    if best is None:
        return None
    near = np.clip((at + np.linspace(-1, 1, 17)) / length, _CYCLES / points, 0.5)
    waves = np.exp(-2j * np.pi * np.outer(near, np.arange(points)))
    return best[1] / float(near[np.argmax(np.abs(waves @ signal))]), best[2]


def _fit(
    signal: FloatArray, points: int, period: float, harmonics: int, growing: bool, differenced: bool
) -> tuple[float, Season] | None:
    """Return the nats that a cycle saves and the cycle, or None where there are too few points."""
    time = np.arange(points)
    angles = np.outer(time, 2 * np.pi / period * np.arange(1, harmonics + 1))
    waves = np.concatenate([np.cos(angles), np.sin(angles)], axis=1)
    waves = waves[:, np.abs(waves).max(axis=0) > 1e-6]  # the sine of two points a cycle is 0
    if growing:
        waves = np.concatenate([waves, waves * (time / points - 0.5)[:, None]], axis=1)
    if 3 * waves.shape[1] > points:
        return None
    if differenced:
        seen = np.diff(waves, axis=0)
        seen -= seen.mean(axis=0)
    else:
        seen = np.concatenate([waves, np.stack([np.ones(points), time / points - 0.5], axis=1)], axis=1)
    weights = np.linalg.lstsq(seen, signal, rcond=None)[0]
    left = signal - seen @ weights
    before, after = (_innovations(part, differenced) for part in (signal, left))
    nats = 0.5 * waves.shape[1] * np.log(points) + 2 * np.log(points)
    gain = points / 2 * np.log(before / max(after, 1e-12 * before)) - nats if before > 0 else -np.inf
    component = waves @ weights[: waves.shape[1]]
    return float(gain), Season(period, component - component.mean(), float(nats))


def _innovations(noise: FloatArray, differenced: bool) -> float:
    """Return the variance of AR(1) innovations; differences count as white."""
    if differenced:
        return float(np.mean(noise**2))
    size = float(noise[:-1] @ noise[:-1])
    correlation = min(max(float(noise[1:] @ noise[:-1]) / size, 0.0), 0.99) if size > 0 else 0.0
    return float(np.mean((noise[1:] - correlation * noise[:-1]) ** 2))
