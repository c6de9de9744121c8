"""The segmentation with the shortest description, over all correlations of the noise at once.

It is searched twice, among levels alone and among all shapes: that a series has slopes at all is as rare as
that it has changes, and is charged once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import ndimage

from pipeline.analysis.detect.offline.lengths import (
    Fits,
    Lengths,
    RunningSums,
    describe,
    fit_segments,
    running_sums,
)
from pipeline.model import FloatArray, IntArray

_ROUNDS = 2  # of partition and variance; a third changed nothing in any family of the zoo
_PASSES = 4  # over all changes, while they move
_AT_ONCE = 4096  # segments: few enough that what is computed of them stays in the processor's cache


@dataclass(frozen=True, slots=True)
class SearchBounds:
    """Bounds of the search in one series."""

    shortest: int  # points of a segment
    price: float  # nats of a change, besides the parameters of its segment
    first: float  # nats that the first change takes beyond that
    slopes: float  # nats of there being lines or parabolas
    least_variance: float  # of the noise, for series without any
    correlations: tuple[float, ...]
    grid: int  # positions of changes that are tried, evenly spaced
    peaks: int  # and where neighbouring levels differ most


@dataclass(frozen=True, slots=True)
class Segmentation:
    """A segmentation: ``bounds`` are 0, the changes and the number of points."""

    bounds: tuple[int, ...]
    flat: bool  # whether every segment is a level
    nats: float
    correlation: float
    variance: float  # of the innovations


def explain(values: FloatArray, time: FloatArray, rules: SearchBounds) -> Segmentation:
    """Find the changes and the correlation that describe a series in the fewest nats.

    Args:
        values: (points,) of size about 1, at least two shortest segments.
        time: (points,) ascending, within a half around 0.
        rules: Bounds of the search.
    """
    sums = running_sums(values, time)
    positions = np.concatenate([[0], _positions(values, rules), [len(values)]])
    start, stop = np.triu_indices(len(positions), 1)
    wide = positions[stop] - positions[start] >= rules.shortest
    room = _Room(len(values), positions, start[wide], stop[wide])
    fits = fit_segments(sums, room.first, room.end, np.array(rules.correlations))
    variances = _first_variances(fits, room.end - room.first, rules)
    total, model, chain = min(
        (_search(sums, fits, variances, room, rules, flat=flat) for flat in (True, False)),
        key=lambda search: search[0],
    )
    bounds = _prune(model, chain, rules)
    nats = total + model.total(bounds, rules) - model.total(chain, rules)
    model, bounds = _doubt(model, values, time, bounds, rules)
    return Segmentation(
        tuple(bounds), model.flat, nats, float(model.correlation[0]), float(model.variance[0])
    )


@dataclass(frozen=True, slots=True)
class _Room:
    """The positions of changes, and all segments between them by their numbers."""

    points: int
    positions: IntArray
    start: IntArray  # (segments,)
    stop: IntArray  # (segments,)

    @property
    def first(self) -> IntArray:
        return self.positions[self.start]

    @property
    def end(self) -> IntArray:
        return self.positions[self.stop]


def _search(
    sums: RunningSums, fits: Fits, variances: FloatArray, room: _Room, rules: SearchBounds, *, flat: bool
) -> tuple[float, _Model, list[int]]:
    """Return the fewest nats over correlations and partitions, the model that has them, and the bounds."""
    correlations = np.array(rules.correlations)
    points = room.end - room.first
    for left in range(_ROUNDS, 0, -1):
        lengths = describe(fits, points, correlations, variances, flat=flat)
        totals, last = _partition(lengths, room, rules)
        if left > 1:
            variances = _variances(lengths, room, last, rules)
    totals += 0.5 * np.log(room.points) * (correlations > 0)  # a coefficient is a parameter, too
    best = int(np.argmin(totals))
    model = _Model(sums, correlations[best : best + 1], variances[best : best + 1], flat)
    chain = [int(room.positions[at]) for at in _walk(last[:, best])]
    return float(totals[best]) + (0.0 if flat else rules.slopes), model, chain


@dataclass(frozen=True, slots=True)
class _Model:
    """The lengths of segments under one correlation, of levels or of all shapes."""

    sums: RunningSums
    correlation: FloatArray  # (1,)
    variance: FloatArray  # (1,)
    flat: bool

    def describe(self, first: IntArray, end: IntArray) -> Lengths:
        fits = fit_segments(self.sums, first, end, self.correlation)
        return describe(fits, end - first, self.correlation, self.variance, flat=self.flat)

    def nats(self, first: IntArray, end: IntArray) -> FloatArray:
        """Return the length of each segment: (segments,) nats, computed in parts that stay in the cache."""
        parts = [slice(at, at + _AT_ONCE) for at in range(0, len(first), _AT_ONCE)]
        return np.concatenate([self.describe(first[part], end[part]).nats[0] for part in parts])

    def total(self, bounds: list[int], rules: SearchBounds) -> float:
        edges = np.array(bounds)
        changes = len(bounds) - 2
        charged = rules.price * changes + rules.first * (changes > 0)
        return float(self.nats(edges[:-1], edges[1:]).sum()) + charged


def _positions(values: FloatArray, rules: SearchBounds) -> IntArray:
    """Return positions to try: all of a short series, else a grid and where levels differ most."""
    points, shortest = len(values), rules.shortest
    if points <= rules.grid + rules.peaks:
        return np.arange(shortest, points - shortest + 1)
    running = np.concatenate([[0.0], np.cumsum(values)])
    at, contrast = [], []
    width = shortest
    while width <= max(shortest, points // 8):
        middle = np.arange(width, points - width + 1)
        differ = np.abs(running[middle + width] - 2 * running[middle] + running[middle - width])
        differ /= np.sqrt(width)
        top = differ >= ndimage.maximum_filter1d(differ, 2 * (width // 2) + 1)
        at.append(middle[top])
        contrast.append(differ[top])
        width *= 2
    best = np.argsort(-np.concatenate(contrast), kind="stable")[: rules.peaks]
    spacing = -(-points // rules.grid)
    positions = np.union1d(np.arange(spacing, points, spacing), np.concatenate(at)[best])
    return positions[(positions >= shortest) & (positions <= points - shortest)]


def _first_variances(fits: Fits, points: IntArray, rules: SearchBounds) -> FloatArray:
    """Return the variance of most short segments around their lines, which few changes touch.

    The median of a chi-squared variable with k degrees of freedom is about k (1 − 2 / 9k)³.
    """
    few = points <= max(int(points.min()), int(1.5 * rules.shortest))
    free = points[few] - 2
    typical = free * (1 - 2 / (9 * free)) ** 3
    variances = np.median(fits.line[:, few] / typical, axis=1)
    floored: FloatArray = np.maximum(variances, rules.least_variance)
    return floored


def _partition(lengths: Lengths, room: _Room, rules: SearchBounds) -> tuple[FloatArray, IntArray]:
    """Return (correlations,) fewest nats and (positions, correlations) the position before each.

    Optimal partitioning (Jackson et al. 2005): exact over the positions.
    """
    models, positions = len(lengths.nats), len(room.positions)
    cost = np.full((positions, positions, models), np.inf)
    cost[room.stop, room.start] = lengths.nats.T
    cost[-1, 1:] += rules.first  # a last segment that is not the only one
    best = np.full((positions, models), np.inf)
    best[0] = -rules.price  # the first segment needs no change
    last = np.zeros((positions, models), dtype=np.int64)
    every = np.arange(models)
    for end in range(1, positions):
        total = best[:end] + cost[end, :end]
        last[end] = total.argmin(axis=0)
        best[end] = total[last[end], every] + rules.price
    return best[-1] - rules.price, last


def _walk(last: IntArray) -> list[int]:
    """Return the chain of positions from the first to the last."""
    chain = [len(last) - 1]
    while chain[-1] > 0:
        chain.append(int(last[chain[-1]]))
    return chain[::-1]


def _variances(lengths: Lengths, room: _Room, last: IntArray, rules: SearchBounds) -> FloatArray:
    """Return the variance that each correlation's best partition leaves."""
    row = np.zeros((len(last), len(last)), dtype=np.int64)
    row[room.stop, room.start] = np.arange(len(room.start))
    variances = np.empty(last.shape[1])
    for model in range(last.shape[1]):
        chain = np.array(_walk(last[:, model]))
        used = row[chain[1:], chain[:-1]]
        parameters = int(lengths.parameters[model, used].sum())
        variances[model] = lengths.squares[model, used].sum() / max(room.points - parameters, 1)
    floored: FloatArray = np.maximum(variances, rules.least_variance)
    return floored


def _refine(model: _Model, bounds: list[int], rules: SearchBounds) -> list[int]:
    """Move each change to its best position between its neighbours, until none moves."""
    bounds = list(bounds)
    for _ in range(_PASSES):
        before = list(bounds)
        for i in range(1, len(bounds) - 1):
            at = np.arange(bounds[i - 1] + rules.shortest, bounds[i + 1] - rules.shortest + 1)
            first, end = np.full_like(at, bounds[i - 1]), np.full_like(at, bounds[i + 1])
            nats = model.nats(np.concatenate([first, at]), np.concatenate([at, end]))
            bounds[i] = int(at[np.argmin(nats[: len(at)] + nats[len(at) :])])
        if bounds == before:
            break
    return bounds


def _prune(model: _Model, bounds: list[int], rules: SearchBounds) -> list[int]:
    """Refine, and leave out changes as long as that shortens the description."""
    bounds = _refine(model, bounds, rules)
    while len(bounds) > 2:
        edges = np.array(bounds)
        apart = model.nats(edges[:-1], edges[1:])
        together = model.nats(edges[:-2], edges[2:])
        saved = apart[:-1] + apart[1:] + rules.price - together
        if len(saved) == 1:
            saved += rules.first
        worst = int(np.argmax(saved))
        if saved[worst] < 0:
            break
        bounds = _refine(model, bounds[: worst + 1] + bounds[worst + 2 :], rules)
    return bounds


def _doubt(
    model: _Model, values: FloatArray, time: FloatArray, bounds: list[int], rules: SearchBounds
) -> tuple[_Model, list[int]]:
    """Leave out changes that the noise explains once its memory beyond one AR coefficient counts.

    The memory is what the innovations' long-run variance exceeds their variance by. Means and slopes of
    segments stray as if there were so many points fewer. With fewer changes more of it shows, so it is
    measured until no change is left out.
    """
    variance = model.variance
    while len(bounds) > 2:
        model = replace(model, variance=variance * _memory(model, values, time, bounds))
        fewer = _prune(model, bounds, rules)
        if len(fewer) == len(bounds):
            break
        bounds = fewer
    return model, bounds


def _memory(model: _Model, values: FloatArray, time: FloatArray, bounds: list[int]) -> float:
    """Return innovations' long-run variance over their variance, or 1 where no larger is significant.

    Bartlett's weights on the autocorrelations up to the root of the number of points; under white noise the
    estimate has a variance of 4/3 lags / points (Priestley 1981, §6.2.4).
    """
    edges = np.array(bounds)
    shapes = model.describe(edges[:-1], edges[1:]).parameters[0]
    noise = np.empty(len(values))
    for first, end, parameters in zip(bounds, bounds[1:], shapes, strict=False):
        middle = time[first:end] - (time[first] + time[end - 1]) / 2
        shape = np.vander(middle / middle[-1], int(parameters))
        part = values[first:end]
        noise[first:end] = part - shape @ np.linalg.lstsq(shape, part, rcond=None)[0]
    innovations = noise[1:] - model.correlation[0] * noise[:-1]
    power = float(innovations @ innovations)
    if power <= 0:
        return 1.0
    lags = int(np.sqrt(len(values)))
    running = np.concatenate([np.zeros(lags + 1), np.cumsum(innovations), np.zeros(lags)])
    running[-lags:] = running[-lags - 1]
    moving = running[lags + 1 :] - running[: -lags - 1]  # sums of lags + 1 neighbours: Bartlett's weights
    ratio = float(moving @ moving) / (lags + 1) / power
    return ratio if ratio > 1 + 2 * np.sqrt(4 / 3 * lags / len(values)) else 1.0
