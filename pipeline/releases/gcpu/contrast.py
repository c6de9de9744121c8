r"""Difference of two releases in each series, with the variance between senders.

The share of series s in the samples of unit h (a host) in cell c (an hour in which both releases ran, and a
combination of labels) is

    y_hc = μ_c + δ · [h ran the candidate] + α_h + ε_hc,   var α = d φ v,   var ε_hc = d v / N_hc

with v = p (1 - p), N_hc the samples, d the over-dispersion of samples of one host, and φ the variance between
hosts. δ is estimated by generalised least squares, so that hosts that ran both releases count against
themselves, others against each other, and nothing is compared across cells. d and φ are estimated from all
series together (Henderson's method 3: quadratic forms set to what is expected of them; hosts differ by the
same factor of a share), as a working model. The variance of each series' δ is then that of a sandwich over
units, divided by what the model expects of it (Bell and McCaffrey, 2002: so are its degrees of freedom), and
drawn towards that of the other series (Smyth, Statistical Applications in Genetics 3, 2004, §6).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from scipy.special import digamma, polygamma

from pipeline.model import BoolArray, FloatArray, IntArray

_LEVELS = 12
"""Number of values of φ for which weights are computed; a series takes the next one."""

_LEAST_COUNT = 20.0
"""Smallest count, with a series and without it, to estimate the variance of series from."""

_INDEPENDENT = 30
"""Largest number of series with independent variances: callers and callees vary together."""


_ALL = 0.99
"""Share of a release's weight from which on a unit stands for the whole release."""


@dataclass(frozen=True, slots=True, eq=False)
class Observations:
    """Samples of two releases: one observation is a unit in a cell while it ran one release."""

    counts: csr_array  # (series, observations)
    totals: FloatArray  # (observations,) all samples, positive
    cell: IntArray  # (observations,) cell within which releases are compared: numbers from 0 without gaps
    unit: IntArray  # (observations,) unit that varies as one: numbers from 0 without gaps
    candidate: BoolArray  # (observations,) whether it is of the new release


@dataclass(frozen=True, slots=True)
class Contrast:
    """Difference of the candidate from the baseline in each series: (series,) each."""

    share: FloatArray  # gCPU where both ran
    baseline: FloatArray  # gCPU of the baseline in the cells that make the change, as they weigh in it
    change: FloatArray  # of gCPU
    error: FloatArray  # standard error of the change
    sampling: FloatArray  # share of its variance that goes away with more samples
    exposure: FloatArray  # (series, 2) independent samples that would say as much, of baseline and candidate
    degrees_of_freedom: FloatArray
    without: FloatArray  # change without the unit that contributes most to it
    unit: IntArray  # this unit
    dispersion: float  # over-dispersion of the samples of one unit; 1: none
    spread: float  # standard deviation of units, as a share of a series' level


@dataclass(frozen=True, slots=True, eq=False)
class _Design:
    """Matrices that all series share."""

    fixed: csr_array  # (observations, cells + 1) 1 where an observation has a cell, or is the candidate's
    units: csr_array  # (observations, units)
    cross: FloatArray  # (cells + 1, units) samples
    gram: FloatArray  # (cells + 1, cells + 1) samples
    totals: FloatArray  # (observations,)
    of_unit: FloatArray  # (units,) samples
    candidate: BoolArray  # (observations,)


def measure(observed: Observations) -> Contrast:
    """Return the difference of releases; errors are infinite where nothing can be compared."""
    design = _design(observed)
    sums_fixed, sums_units = observed.counts @ design.fixed, observed.counts @ design.units
    both = _in_both(observed)
    share = np.asarray(observed.counts @ both.astype(np.float64)) / max(observed.totals[both].sum(), 1.0)
    variance = np.maximum(share * (1.0 - share), 1e-12)
    sums = _Sums(np.asarray(sums_fixed.todense()), np.asarray(sums_units.todense()))
    squares = observed.counts.multiply(observed.counts) @ (1.0 / observed.totals)
    enough = variance * observed.totals[both].sum() >= _LEAST_COUNT
    dispersion, spread = _components(design, sums, np.asarray(squares), variance, enough)
    return _estimate(observed, design, sums, _Model(share, variance, enough, dispersion, spread))


@dataclass(frozen=True, slots=True, eq=False)
class _Model:
    """Parameters, estimated from the series, that weigh their samples."""

    share: FloatArray  # (series,)
    variance: FloatArray  # (series,) v
    enough: BoolArray  # (series,) whether there are enough samples to estimate the variance
    dispersion: float  # d
    spread: float


@dataclass(frozen=True, slots=True, eq=False)
class _Sums:
    fixed: FloatArray  # (series, cells + 1) samples by cell, and of the candidate
    units: FloatArray  # (series, units)


def _design(observed: Observations) -> _Design:
    rows = np.arange(len(observed.totals))
    cells = int(observed.cell.max(initial=-1)) + 1
    new = np.flatnonzero(observed.candidate)
    where = np.concatenate([rows, new]), np.concatenate([observed.cell, np.full(len(new), cells)])
    fixed = csr_array((np.ones(len(where[0])), where), shape=(len(rows), cells + 1))
    units = csr_array((np.ones(len(rows)), (rows, observed.unit)))
    weighted = fixed.multiply(observed.totals[:, None]).tocsr()
    return _Design(
        fixed=fixed,
        units=units,
        cross=np.asarray((weighted.T @ units).todense()),
        gram=np.asarray((weighted.T @ fixed).todense()),
        totals=observed.totals,
        of_unit=np.asarray(units.T @ observed.totals),
        candidate=observed.candidate,
    )


def _in_both(observed: Observations) -> BoolArray:
    """Return the observations in cells in which both releases ran; all if there is none."""
    new = np.bincount(observed.cell, observed.candidate)
    old = np.bincount(observed.cell, ~observed.candidate)
    shared: BoolArray = ((new > 0) & (old > 0))[observed.cell]
    return shared if shared.any() else np.ones(len(shared), dtype=np.bool_)


def _components(
    design: _Design, sums: _Sums, squares: FloatArray, variance: FloatArray, enough: BoolArray
) -> tuple[float, float]:
    """Return the over-dispersion of samples of a unit, and the variance of units, as shares of a level."""
    inverse = np.linalg.pinv(design.gram, hermitian=True)
    within = np.diag(design.of_unit) - design.cross.T @ inverse @ design.cross  # (units, units)
    left = sums.units - sums.fixed @ inverse @ design.cross  # (series, units)
    weights = 1.0 / design.of_unit
    between = (left**2 @ weights) / variance
    total = (squares - np.einsum("si,ij,sj->s", sums.fixed, inverse, sums.fixed)) / variance
    rank = np.linalg.matrix_rank(design.gram, hermitian=True)
    expected_total = np.array([len(design.totals) - rank, np.trace(within)])
    expected_between = np.array([weights @ np.diag(within), weights @ (within**2).sum(axis=1)])
    if not enough.any() or expected_between[1] <= 1e-9 * expected_total[1]:
        return 1.0, 0.0
    system = np.stack([expected_total, expected_between])
    if abs(np.linalg.det(system)) <= 1e-6 * system[0, 0] * system[1, 1]:  # one observation a unit
        dispersion = 1.0
        units = (between - expected_between[0]) / expected_between[1]
    else:
        components = np.linalg.solve(system, np.stack([total, between]))
        dispersion = max(1.0, float(np.median(components[0][enough])))
        units = components[1]
    return dispersion, _spread(units[enough], variance[enough], float(np.median(design.of_unit)))


def _spread(units: FloatArray, variance: FloatArray, samples: float) -> float:
    """Return the common standard deviation of units, from the variance of each series in units of its own.

    Least squares; a series is weighted by how precisely its variance is known.
    """
    squared = 0.0
    for _ in range(3):
        weights = 1.0 / (1.0 / samples + squared * variance) ** 2
        squared = max(0.0, float((weights * units * variance).sum() / (weights * variance**2).sum()))
    return float(np.sqrt(squared))


def _estimate(
    observed: Observations,
    design: _Design,
    sums: _Sums,
    model: _Model,
) -> Contrast:
    """Return the contrast, for each tried value of φ in turn."""
    variance, dispersion, spread = model.variance, model.dispersion, model.spread
    levels = spread**2 * 0.25 / dispersion * np.append(4.0 ** -np.arange(_LEVELS), 0.0)
    units = spread**2 * variance / dispersion
    nearest = np.abs(np.log(units[:, None] + 1e-30) - np.log(levels + 1e-30)).argmin(axis=1)
    size = len(variance)
    change, sampling, degrees = np.zeros(size), np.ones(size), np.zeros(size)
    unit_error, least, ratio = np.full(size, np.inf), np.full(size, np.inf), np.ones(size)
    old = observed.totals * ~observed.candidate
    baseline = np.asarray(observed.counts @ (old / observed.totals)) / max(old.sum(), 1.0)
    parts, without, unit = np.full((size, 2), 0.5), np.zeros(size), np.zeros(size, dtype=np.int64)
    for level in np.unique(nearest).tolist():
        rows = np.flatnonzero(nearest == level)
        weights = _Weights.of(design, float(levels[level]))
        if weights is None:
            continue
        change[rows], influence = weights.apply(observed.counts[rows], sums, rows)
        baseline[rows] = observed.counts[rows] @ (weights.of_baseline / observed.totals)
        unit[rows], without[rows] = weights.leave_one_out(change[rows], influence)
        parts[rows], sampling[rows] = weights.parts, weights.sampling
        unit_error[rows], least[rows] = weights.variance, weights.least
        degrees[rows] = weights.degrees_of_freedom
        if weights.degrees_of_freedom:
            expected = variance[rows] * dispersion * weights.expected
            ratio[rows] = (influence**2).sum(axis=1) / expected
    ratio, degrees_of_freedom = _drawn_together(ratio, degrees, model.enough & (degrees > 0))
    error_variance = np.maximum(variance * dispersion * unit_error * ratio, variance * least)
    with np.errstate(divide="ignore", invalid="ignore"):
        exposure = variance[:, None] / (parts * error_variance[:, None])
    return Contrast(
        share=model.share,
        baseline=baseline,
        change=change,
        error=np.sqrt(error_variance),
        sampling=sampling,
        exposure=np.nan_to_num(exposure, nan=0.0),
        degrees_of_freedom=degrees_of_freedom,
        without=without,
        unit=unit,
        dispersion=dispersion,
        spread=spread,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Weights:
    """The estimator for one value of φ: weights of observations, and its expected variance."""

    design: _Design
    solved: FloatArray  # (cells + 1, cells + 1) covariance of the fixed effects, in units of d v
    drawn: FloatArray  # (units,) factor by which a unit's mean is subtracted
    own: FloatArray  # (units,) what that takes from the weights of its observations
    direct: FloatArray  # (observations,) weight of a sample's own cell and release
    loads: FloatArray  # (units, cells + 1) what units say of the fixed effects
    variance: float  # of the change, in units of d v
    least: float  # the same if units did not differ
    sampling: float  # share of it that is chance in sampling
    parts: FloatArray  # (2,) shares of baseline and candidate in it
    of_baseline: FloatArray  # (observations,) what each says of the baseline's level; the sum is 1
    expected: float  # sum of the squares of influences of units, in units of d v
    degrees_of_freedom: float

    @classmethod
    def of(cls, design: _Design, level: float) -> _Weights | None:
        """Return the estimator; None where no cell has both releases and no unit ran both."""
        drawn = level / (1.0 + level * design.of_unit)
        information = design.gram - (design.cross * drawn) @ design.cross.T
        solved: FloatArray = np.linalg.pinv(information, hermitian=True).astype(np.float64)
        change = solved[:, -1]
        if not np.isclose((information @ change)[-1], 1.0, atol=1e-4):
            return None
        direct = np.asarray(design.fixed @ change)
        own = drawn * (design.cross.T @ change)
        weights = design.totals * (direct - np.asarray(design.units @ own))
        loads = np.asarray((design.units.T @ design.fixed.multiply(weights[:, None])).todense())
        covariance = np.diag(loads @ change) - loads @ solved @ loads.T
        expected, squares = float(np.trace(covariance)), float((covariance**2).sum())
        variance = float(change[-1])
        degrees = expected**2 / squares if expected > 1e-6 * variance else 0.0
        of_new = float((weights * direct)[design.candidate].sum()) / variance
        of_new = min(max(of_new, 0.02), 0.98)
        flat = np.linalg.pinv(design.gram, hermitian=True)
        return cls(
            design=design,
            solved=solved,
            drawn=drawn,
            own=own,
            direct=direct,
            loads=loads,
            variance=variance,
            least=float(flat[-1, -1]),
            sampling=float((weights**2 / design.totals).sum()) / variance,
            parts=np.array([1.0 - of_new, of_new]),
            of_baseline=_of_baseline(design, weights),
            expected=expected,
            degrees_of_freedom=degrees,
        )

    def apply(self, counts: csr_array, sums: _Sums, rows: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return the change of each series, and each unit's contribution beyond the fit: (series, units)."""
        fixed, units = sums.fixed[rows], sums.units[rows]
        effects = (fixed - (units * self.drawn) @ self.design.cross.T) @ self.solved
        weighted = self.design.units.multiply(self.direct[:, None]).tocsr()
        influence = np.asarray((counts @ weighted).todense()) - units * self.own - effects @ self.loads.T
        return effects[:, -1], influence

    def leave_one_out(self, change: FloatArray, influence: FloatArray) -> tuple[IntArray, FloatArray]:
        """Return the unit that contributes most to each change, and the change without that unit.

        A unit that stands for a whole release is not left out.
        """
        of_new = self.loads[:, -1]
        of_old = of_new - self.loads[:, :-1].sum(axis=1)
        leverage = np.maximum(of_new, of_old)
        weight = np.where(leverage < _ALL, 1.0 / np.maximum(1.0 - leverage, 1.0 - _ALL), 0.0)
        less = influence * weight * np.sign(change)[:, None]
        unit = less.argmax(axis=1)
        return unit, change - np.sign(change) * less[np.arange(len(unit)), unit]


def _of_baseline(design: _Design, weights: FloatArray) -> FloatArray:
    """Return the weights of the baseline's observations in its level, given their weights in the change.

    In the change, candidate less baseline, both weigh the same in each cell. Hosts that ran both make some
    weights negative, which would put the level beyond all that was sampled: these are left out.
    """
    cells = design.fixed[:, :-1]
    of_cell = np.maximum(cells.T @ (weights * design.candidate), 0.0)
    inside = np.where(design.candidate, 0.0, np.maximum(-weights, 0.0))
    of_old = cells.T @ inside
    per_cell = np.where(of_old > 0, of_cell / np.maximum(of_old, 1e-300), 0.0)
    weights_in_level = inside * np.asarray(cells @ per_cell)
    return np.asarray(weights_in_level / weights_in_level.sum(), dtype=np.float64)


def _drawn_together(
    ratio: FloatArray, degrees: FloatArray, enough: BoolArray
) -> tuple[FloatArray, FloatArray]:
    """Return ratios of variances shrunk towards those of all series, and their degrees of freedom.

    Ratios are χ² over their degrees of freedom, times what varies between series as an inverse χ² does;
    the logarithms of those of ``enough`` say how much.
    """
    if enough.sum() < 3:
        return np.where(degrees > 0, ratio, 1.0), degrees
    half = degrees[enough] / 2.0
    logs = np.log(np.maximum(ratio[enough], 1e-12)) - digamma(half) + np.log(half)
    by_chance = float(polygamma(1, half).mean())
    # The difference is uncertain: one standard error more is taken to be real.
    error = by_chance * np.sqrt(2.0 / min(int(enough.sum()), _INDEPENDENT))
    prior = 2.0 * _inverse_trigamma(max(float(logs.var(ddof=1)) - by_chance, 0.0) + error)
    usual = float(np.exp(logs.mean() + digamma(prior / 2.0) - np.log(prior / 2.0)))
    shrunk = (prior * usual + degrees * ratio) / (prior + degrees)
    return shrunk, prior + degrees


def _inverse_trigamma(value: float) -> float:
    """Return x with ψ'(x) = value > 0, by Newton's method (Smyth 2004, appendix)."""
    if value > 1e7:
        return float(1.0 / np.sqrt(value))
    if value < 1e-6:
        return 1.0 / value
    x = 0.5 + 1.0 / value
    for _ in range(50):
        slope = float(polygamma(1, x))
        step = slope * (1.0 - slope / value) / float(polygamma(2, x))
        x += step
        if -step / x < 1e-8:
            break
    return float(x)
