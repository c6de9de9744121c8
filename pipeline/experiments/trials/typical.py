"""Difference of a typical pair: a trimmed mean of ratios, for requests whose noise has long tails."""

from __future__ import annotations

import numpy as np

from pipeline.experiments.trials.estimate import Estimates, Experiments
from pipeline.experiments.trials.pairs import batch_sums, inflation_of, paired_points
from pipeline.experiments.trials.signed_rank import signed_rank_test
from pipeline.experiments.trials.student import SampleMeans, of_means
from pipeline.model import FloatArray, IntArray

TRIMMED = 0.2
"""Share of pairs that is left out at each end, as Yuen (1974) and Wilcox advise."""


def paired_by_request_trimmed(experiments: Experiments, alpha: float) -> Estimates:
    """Test whether a typical pair differs: the mean of logarithms of ratios, without a fifth at each end.

    Interference of other programs makes some requests much dearer, on one side or the other, and such pairs
    decide the plain mean. What side B changes for less than a fifth of the requests is not seen: that is for
    ``paired_by_request``. Of several trials the unit is the trial, as there, and trials are compared by
    ranks, since some are disturbed as a whole; six are the fewest for 5 %. Of one trial the unit is the pair,
    with the variance of winsorised values (Yuen), widened for what pairs have in common with those before.
    Pairs with a 0 have no ratio and are left out.

    Args:
        experiments: With ``match``; without, nothing is significant.
        alpha: Chance that equal sides differ significantly.
    """
    a, b = paired_points(experiments)
    with np.errstate(invalid="ignore", divide="ignore"):
        ratios = np.log(b) - np.log(a)
    ratios[~np.isfinite(ratios)] = np.nan
    if experiments.trials > 1:
        means, _ = trimmed(ratios.reshape(-1, ratios.shape[2]))
        return _of_logarithms(signed_rank_test(means.reshape(ratios.shape[:2]), alpha))
    values = ratios[:, 0]
    mean, capped = trimmed(values)
    count = (~np.isnan(values)).sum(axis=1)
    remaining = count - 2 * cut_of(count)
    with np.errstate(invalid="ignore"):
        centred = capped - (np.nansum(capped, axis=1) / np.maximum(count, 1))[:, None]
    sums, batches = batch_sums(centred)
    inflation = inflation_of(sums, batches)
    with np.errstate(invalid="ignore", divide="ignore"):
        error = np.sqrt((sums**2).sum(axis=1) * batches / (batches - 1.0) * inflation) / remaining
        degrees = np.where(count > 0, remaining / np.maximum(count, 1) * batches / inflation - 1.0, 0.0)
    scale = np.nan_to_num(np.abs(values)).max(axis=1, initial=0.0)
    sample_means = SampleMeans(
        np.nan_to_num(mean), np.nan_to_num(error), degrees, scale, 2.0 ** (1.0 - count)
    )
    return _of_logarithms(of_means(sample_means, alpha))


def cut_of(count: IntArray) -> IntArray:
    """Return the number of values to leave out at each end."""
    result: IntArray = np.floor(TRIMMED * count).astype(np.int64)
    return result


def trimmed(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the trimmed mean of each row, NaN of one without values, and its winsorised values in order.

    Args:
        values: (rows, points), NaN where there is no value, which stays so.
    """
    ordered = np.sort(values, axis=1)  # NaN last
    count = (~np.isnan(values)).sum(axis=1)
    cut = cut_of(count)
    index = np.arange(values.shape[1])
    inner = (index >= cut[:, None]) & (index < (count - cut)[:, None])
    remaining = inner.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean: FloatArray = np.where(inner, ordered, 0.0).sum(axis=1) / np.where(
            remaining > 0, remaining, np.nan
        )
    least, most = (
        np.take_along_axis(ordered, np.clip(at, 0, values.shape[1] - 1)[:, None], axis=1)
        for at in (cut, count - cut - 1)
    )
    return mean, np.clip(values, least, most)


def _of_logarithms(estimates: Estimates) -> Estimates:
    """Return relative differences of logarithms of ratios."""
    difference, low, high = (
        np.expm1(figure) for figure in (estimates.difference, estimates.low, estimates.high)
    )
    return Estimates(difference, low, high, estimates.p_value)
