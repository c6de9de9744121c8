"""Jensen-Shannon divergence of two profiles, and the part of it that is sampling noise (Atys §5.2)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from pipeline.model import FloatArray, IntArray

TOP = 10
"""Functions whose shares are compared (Atys §5.2)."""

_LEAST_EXPECTED = 5.0
"""Least samples of a function that is compared by itself."""


@dataclass(frozen=True, slots=True)
class Divergence:
    """Divergence of two samples of stacks, in bits from 0 to 1."""

    measured: float  # of the samples, biased upwards from that of the profiles
    bias: float  # mean bias by sampling
    p_value: float  # share of sample pairs of one profile at least as far apart

    @property
    def corrected(self) -> float:
        """The divergence without its bias by sampling; 0 on average for equal profiles."""
        return self.measured - self.bias


def js_divergence(first: FloatArray, second: FloatArray) -> float:
    """Return the Jensen-Shannon divergence of two distributions, in bits (Lin 1991).

    Args:
        first: Shares of functions, adding up to 1: (functions,).
        second: Shares of the same functions.
    """
    middle = (first + second) / 2
    halves = special.rel_entr(first, middle).sum() + special.rel_entr(second, middle).sum()
    return float(halves) / (2 * math.log(2))


def top_divergence(first: FloatArray, second: FloatArray, top: int = TOP) -> float:
    """Return the divergence of the top functions' shares among themselves, as in Atys' Algorithm 1.

    Args:
        first: Samples of each function in the earlier profile: (functions,).
        second: Samples of each function in the later one, which may hold further functions at its end.
        top: How many functions are compared: those of the largest shares in both together.

    Returns:
        0 if either has no samples of them.
    """
    both = _aligned(first, second)
    chosen = both[:, _leading(both, top)]
    totals = chosen.sum(axis=1, keepdims=True)
    if not totals.all():
        return 0.0
    shares = chosen / totals
    return js_divergence(shares[0], shares[1])


def compare_samples(first: FloatArray, second: FloatArray, top: int = TOP) -> Divergence:
    """Compare two samples of stacks by their top functions and all others together, which are one more.

    Two samples of n1 and n2 stacks of one profile of k functions diverge, though nothing changed, by about

        (k - 1) (1/n1 + 1/n2) / (8 ln 2)

    bits: entropies of samples are too low by their variance (Miller 1955). The bias is computed for two
    profiles that may differ; the formula is its value for equal ones. The p-value is that of
    Pearson's chi-square, of which the divergence is 1 / (8 ln 2) times the value at equal profiles.

    Functions of which less than five samples are expected in the smaller sample go with the others (Cochran
    1954), without which the p-value would not hold for the few samples of a low rate.

    Args:
        first: Samples of each function in the one profile: (functions,); need not be integers.
        second: Those in the other; the shorter of both has no samples of what is missing at its end.
        top: How many functions are compared by themselves.

    Returns:
        No divergence, at a p-value of 1, if either is empty.
    """
    both = _aligned(first, second)
    totals = both.sum(axis=1)
    if not totals.all():
        return Divergence(0.0, 0.0, 1.0)
    leading = _leading(both, top)
    expected = both[:, leading].sum(axis=0) * (totals.min() / totals.sum())
    chosen = both[:, leading[expected >= _LEAST_EXPECTED]]
    rest = np.maximum(totals - chosen.sum(axis=1), 0.0)
    cells = np.column_stack([chosen, rest])
    cells = cells[:, cells.any(axis=0)]
    degrees = cells.shape[1] - 1
    if not degrees:
        return Divergence(0.0, 0.0, 1.0)
    shares, spread = cells / totals[:, None], 1 / totals
    measured = js_divergence(shares[0], shares[1])
    squares = 8 * math.log(2) * measured / spread.sum()
    return Divergence(measured, _bias(shares, spread), float(special.chdtrc(degrees, squares)))


def expected_divergence(samples: float, functions: int = TOP) -> float:
    """Return the mean divergence, in bits, of a sample of this many stacks from its own profile."""
    return functions / (8 * math.log(2) * samples)


def _bias(shares: FloatArray, spread: FloatArray) -> float:
    """Return the bias of second order: half the variance of each share by the curvature of the divergence."""
    middle = shares.mean(axis=0)
    variance = shares * (1 - shares) * spread[:, None]
    own = np.divide(variance, shares, out=np.zeros_like(shares), where=shares > 0).sum()
    return float(own - (variance / (2 * middle)).sum()) / (4 * math.log(2))


def _aligned(first: FloatArray, second: FloatArray) -> FloatArray:
    """Return both samples as rows of one length: (2, functions)."""
    rows = np.zeros((2, max(len(first), len(second))))
    rows[0, : len(first)] = first
    rows[1, : len(second)] = second
    return rows


def _leading(both: FloatArray, top: int) -> IntArray:
    """Return the functions of the largest shares in both together."""
    shares = (both / np.maximum(both.sum(axis=1, keepdims=True), 1e-300)).sum(axis=0)
    return np.argsort(-shares, kind="stable")[:top]
