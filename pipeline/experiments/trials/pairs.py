"""Pairs of points: both sides of a trial served the same request."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipeline.experiments.trials.estimate import Estimates, Experiments
from pipeline.experiments.trials.student import SampleMeans, of_means, paired_t_test
from pipeline.model import FloatArray, IntArray

FEWEST_BATCHES = 50
"""Fewest batches of consecutive pairs, if there are as many pairs; there are at most twice as many."""


_LAG_ERRORS = 0.5  # standard errors: so much more holds 5 % of 60 pairs with a lag of 0.8
_LARGEST_LAG = 0.999


@dataclass(frozen=True, slots=True)
class PairedRequests:
    """Number of requests that both sides served, and one alone."""

    pairs: int
    """Pairs that are compared: neither point is warm-up."""
    only_a: int
    only_b: int


def match_requests(a: IntArray, b: IntArray) -> IntArray:
    """Return for each point of side A the column of side B's point with the same request, -1 without one.

    A request that a side served repeatedly is paired in the order of time: first with first.

    Args:
        a: (trials, points) numbers of requests, not less than 0; -1 where a point has none.
        b: The same of side B, which may have more or fewer points.
    """
    rows, columns = zip(*(np.nonzero(side >= 0) for side in (a, b)), strict=True)
    numbers = 1 + max(int(side.max(initial=0)) for side in (a, b))
    keys = [row * numbers + side[side >= 0] for row, side in zip(rows, (a, b), strict=True)]
    _, dense = np.unique(np.concatenate(keys), return_inverse=True)
    most = max(a.shape[1], b.shape[1])
    keys_a, keys_b = (
        part * most + _occurrence(part) for part in np.split(dense.astype(np.int64), [len(keys[0])])
    )
    result = np.full(a.shape, -1, dtype=np.int64)
    if not len(keys_b):
        return result
    order = np.argsort(keys_b)
    position = order[np.minimum(np.searchsorted(keys_b[order], keys_a), len(order) - 1)]
    result[rows[0], columns[0]] = np.where(keys_b[position] == keys_a, columns[1][position], -1)
    return result


def paired_points(experiments: Experiments) -> tuple[FloatArray, FloatArray]:
    """Return A's and B's points of pairs: (experiments, trials, points of A), NaN where there is no pair."""
    if experiments.match is None:
        nothing = np.full_like(experiments.a, np.nan)
        return nothing, nothing
    b = np.take_along_axis(experiments.b, np.maximum(experiments.match, 0), axis=2)
    paired = (experiments.match >= 0) & ~np.isnan(experiments.a) & ~np.isnan(b)
    return np.where(paired, experiments.a, np.nan), np.where(paired, b, np.nan)


def request_differences(experiments: Experiments) -> FloatArray:
    """Return each trial's mean difference of pairs, relative to side A's mean: (experiments, trials).

    It is NaN of a trial without pairs, and of all where side A's pairs are 0.
    """
    a, b = paired_points(experiments)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean_a, mean_b = (np.nansum(side, axis=2) / (~np.isnan(side)).sum(axis=2) for side in (a, b))
        level = np.nansum(mean_a, axis=1, keepdims=True) / (~np.isnan(mean_a)).sum(axis=1, keepdims=True)
        result: FloatArray = (mean_b - mean_a) / np.where(level > 0, level, np.nan)
    return result


def paired_by_request(experiments: Experiments, alpha: float) -> Estimates:
    """Test whether the points of pairs differ: differences between requests do not count.

    The difference is the mean of pairs' differences over the mean of side A. Of several trials the unit is
    the trial, as its machines and its minutes are the same for all of its pairs: Student's test of trials'
    mean differences. Of a single trial it is the pair, and what is about the trial is not in the interval.

    Pairs of one trial follow one another. Their sums over 50 to 99 batches of consecutive pairs (each pair is
    one if there are fewer than 100) count as a series in which each depends on the last (AR(1)): its
    autocorrelation, corrected for its bias (Kendall, 1954), and half of its standard error more, widens the
    interval and takes degrees of freedom. A correlation that lasts longer than its first lag says is not
    allowed for.

    Args:
        experiments: With ``match``; without, nothing is significant.
        alpha: Chance that equal sides differ significantly.
    """
    if experiments.trials > 1:
        return paired_t_test(request_differences(experiments), alpha)
    a, b = (side[:, 0] for side in paired_points(experiments))
    differences = b - a
    count = (~np.isnan(differences)).sum(axis=1)
    total = np.nansum(a, axis=1)
    level = np.where(total > 0, total, np.inf)  # pairs without cost carry no information
    mean = np.nansum(differences, axis=1) / np.maximum(count, 1)
    sums, batches = batch_sums(differences - mean[:, None])
    inflation = inflation_of(sums, batches)
    with np.errstate(invalid="ignore", divide="ignore"):
        error = np.sqrt((sums**2).sum(axis=1) * batches / (batches - 1.0) * inflation) / level
    scale = np.nan_to_num(np.abs(differences)).max(axis=1, initial=0.0) * count / level
    degrees = np.where(np.isinf(level), 0.0, batches / inflation - 1.0)
    return of_means(SampleMeans(mean * count / level, error, degrees, scale, 2.0 ** (1.0 - count)), alpha)


def count_requests(requests: tuple[IntArray, IntArray], match: IntArray, compared: int) -> PairedRequests:
    """Return the counts of requests of trials.

    Args:
        requests: Numbers of requests of side A and side B: (trials, points) each, -1 for none.
        match: As match_requests returns it.
        compared: Pairs without warm-up.
    """
    both = int((match >= 0).sum())
    only = (int((side >= 0).sum()) - both for side in requests)
    return PairedRequests(compared, *only)


def _occurrence(keys: IntArray) -> IntArray:
    """Return the number of equal keys before each key: (keys,)."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    first = np.searchsorted(ordered, ordered, side="left")
    result = np.empty(len(keys), dtype=np.int64)
    result[order] = np.arange(len(keys)) - first
    return result


def batch_sums(values: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return sums of consecutive values, 0 after the last batch, and the number of batches of each row.

    Args:
        values: (rows, points), NaN where there is no value, which is left out.
    """
    finite = ~np.isnan(values)
    count = finite.sum(axis=1)
    size = np.maximum(1, count // FEWEST_BATCHES)
    batch = (np.cumsum(finite, axis=1) - 1) // size[:, None]
    width = 2 * FEWEST_BATCHES
    flat = (batch + np.arange(len(values))[:, None] * width)[finite]
    sums = np.bincount(flat, values[finite], minlength=len(values) * width).astype(np.float64)
    return sums.reshape(len(values), width), (-(-count // size)).astype(np.int64)


def inflation_of(sums: FloatArray, batches: IntArray) -> FloatArray:
    """Return how much larger a sum's variance is than that of independent values: 1 or more, (rows,)."""
    squares = (sums**2).sum(axis=1)
    following = (sums[:, 1:] * sums[:, :-1]).sum(axis=1)
    first = np.divide(following, squares, out=np.zeros(len(sums)), where=squares > 0)
    number = np.maximum(batches, 4).astype(np.float64)
    lag = np.where(squares > 0, (number * first + 1.0) / (number - 3.0), 0.0)
    lag = np.clip(lag, 0.0, _LARGEST_LAG)
    # Underestimating the lag misleads more than overestimating it: (1 + lag) / (1 - lag) is convex.
    more = _LAG_ERRORS * np.sqrt((1.0 - lag**2) / number)
    lag = np.where(lag > 0, np.minimum(lag + more, _LARGEST_LAG), 0.0)
    result: FloatArray = np.where(batches > 3, (1.0 + lag) / (1.0 - lag), 1.0)
    return result
