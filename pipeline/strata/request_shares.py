r"""How much of a series is the work of each type of request, and what their numbers made of it.

With R_t(w) requests of type t in window w, and v_t = R_t over its own mean, the samples of a series and those
of the whole service are

    n_s(w) ∝ Σ_t p_st v_t(w),        N(w) ∝ Σ_t u_t v_t(w)

where p_st is the share of the series that requests of type t make, u_t the same of the service, and one type
more, whose v is 1, stands for work without requests. Shares are not negative and add up to one, so the factor

    f_s(w) = Σ_t p_st v_t(w) / Σ_t u_t v_t(w)

by which the mix raised a gCPU is never beyond what the type that gained most makes of it. Shares are fitted
by weighted least squares to the history alone, as deviations from the mean of their hour of the day: what has
a cycle of its own is not explained by requests that have one, too. Unless the history says otherwise a series
has the shares of the service, and its gCPU follows no mix.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from pipeline.model import BoolArray, FloatArray, IntArray, RequestPeriods, SeriesKey, SeriesMatrix
from pipeline.units import DAY_S, HOUR_S

_TYPES = 24
"""Types of requests that are kept apart, those with most requests; the others are one."""

_LEAST_DAYS = 3
"""Days of history from which on days say how well shares are known."""

_COVERED = 0.9
"""Share of the windows with samples that must have requests, too."""

_GAIN = math.log(1000.0)
"""How much likelier shares must make days that they were not fitted to, as a logarithm."""

ERRORS = 2.576
"""Standard errors by which the mix must have moved a series to be taken out of it."""

_LEAST_SHARE = 1e-3
"""Of a type in the service: what is expected of a series before it is looked at."""

_ROUNDS = 4
"""Rounds after which the noise beside a fit is known well enough."""

_CHUNK = 1000
"""Series that are fitted at once: some hundred megabytes."""


@dataclass(frozen=True, slots=True, eq=False)
class Traffic:
    """Requests of a service by windows, each type relative to its mean over the history."""

    types: tuple[str, ...]  # (types,) the last is "" where it stands for all others
    rates: FloatArray  # (types + 1, windows) 1 on average; the last row is work without requests
    requests: FloatArray  # (types,) a window of the history, on average
    known: BoolArray  # (windows,) whether any request was counted
    history: slice  # windows that shares are fitted to


@dataclass(frozen=True, slots=True, eq=False)
class RequestMix:
    """By how much the mix of requests raised the series that it moved, and how well that is known."""

    series: tuple[SeriesKey, ...]
    factors: FloatArray  # (series, windows) 1 on average over the history
    errors: FloatArray  # (series,) standard error of the mean factor after the history
    shares: FloatArray  # (series, types + 1)
    types: tuple[str, ...]

    def mover(self, row: int, rates: FloatArray, split: int) -> str:
        """Return the type of request that moved a series the most from a window on.

        Args:
            row: Of the series.
            rates: (types + 1, windows) of the traffic.
            split: First window after.
        """
        moved = np.abs(rates[:-1, split:].mean(axis=1) - rates[:-1, :split].mean(axis=1))
        return self.types[int(np.argmax(moved * self.shares[row, :-1]))]


def build_traffic(periods: RequestPeriods, matrix: SeriesMatrix, history: slice) -> Traffic | None:
    """Return the requests of a service by the windows of a matrix; None where they say nothing of its mix.

    That is with a single type, with periods longer than windows, or where a tenth of the windows with samples
    has no request.

    Args:
        periods: Requests by release and type.
        matrix: Series of the service.
        history: Windows before the change that is looked for.
    """
    windows = len(matrix.totals)
    if not periods.types or periods.width_s > 1.001 * matrix.resolution_s:
        return None
    column = np.floor((periods.starts - matrix.start) / matrix.resolution_s + 1e-6).astype(np.int64)
    inside = (column >= 0) & (column < windows)
    names, of = np.unique(np.array(periods.types, dtype=object), return_inverse=True)
    counts = np.zeros((len(names), windows))
    rows = np.broadcast_to(of[:, None], periods.requests.shape)[:, inside]
    np.add.at(counts, (rows, np.broadcast_to(column[inside], rows.shape)), periods.requests[:, inside])
    known = counts.any(axis=0)
    sampled = matrix.totals > 0
    if not sampled.any() or known[sampled].mean() < _COVERED or not known[history].any():
        return None
    usual = counts[:, history][:, known[history]].mean(axis=1)
    order = [row for row in np.argsort(-usual, kind="stable").tolist() if usual[row] > 0]
    if len(order) < 2:
        return None
    kept, rest = order[:_TYPES], order[_TYPES:]
    parts = [counts[kept], counts[rest].sum(axis=0, keepdims=True)][: 2 if rest else 1]
    apart = np.concatenate(parts)
    requests = np.concatenate([usual[kept], [usual[rest].sum()] if rest else []])
    rates = np.concatenate([apart / requests[:, None], np.ones((1, windows))])
    rates[:, ~known] = 1.0
    types = (*(str(names[row]) for row in kept), *([""] if rest else []))
    return Traffic(types, rates, requests, known, history)


def fit_request_mix(traffic: Traffic, matrix: SeriesMatrix, least: float) -> RequestMix | None:
    """Return what the mix of requests made of series after the history; None where it moved none of them.

    A series is in it if shares fitted to all but a day of the history are the better for that day, over all
    days; and if what they make of the time after it is beyond its standard error, by the jackknife over days,
    and as much as a scan may report.

    Args:
        traffic: Requests by the windows of the matrix.
        matrix: Series as they are to be judged.
        least: Change of gCPU that is reported.
    """
    blocks = _blocks(traffic, matrix)
    if blocks is None:
        return None
    service = _service_shares(traffic, blocks, np.ones(len(blocks.totals), dtype=np.bool_))
    whole = service @ traffic.rates
    level = matrix.samples[:, traffic.history].sum(axis=1) / max(matrix.totals[traffic.history].sum(), 1.0)
    later = _later(traffic, matrix)
    # No share can move a series by more than the types that moved most.
    bounds = traffic.rates[:, later] / whole[later] - 1
    reach = float(np.abs(bounds).max(initial=0.0))
    asked = np.flatnonzero((level > 0) & (level * reach >= least))
    found = [_fit_series(traffic, matrix, blocks, service, rows, least) for rows in _chunks(asked)]
    rows = np.concatenate([one.rows for one in found]) if found else np.empty(0, dtype=np.int64)
    if not len(rows):
        return None
    return RequestMix(
        series=tuple(matrix.series[row] for row in rows.tolist()),
        factors=np.concatenate([one.factors for one in found]),
        errors=np.concatenate([one.errors for one in found]),
        shares=np.concatenate([one.shares for one in found]),
        types=traffic.types,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Blocks:
    """Hours of the history."""

    members: FloatArray  # (windows of the history, blocks) 1 where a window with samples and requests is
    totals: FloatArray  # (blocks,) samples of the service
    windows: FloatArray  # (blocks,) how many are in it
    hours: FloatArray  # (hours of the day, blocks) 1 where a block is at this hour
    days: IntArray  # (blocks,)


@dataclass(frozen=True, slots=True, eq=False)
class _Fitted:
    rows: IntArray
    factors: FloatArray
    errors: FloatArray
    shares: FloatArray


def _blocks(traffic: Traffic, matrix: SeriesMatrix) -> _Blocks | None:
    """Return the hours of a history; None of one that is too short."""
    first, last, _ = traffic.history.indices(len(matrix.totals))
    length = max(1, round(HOUR_S / matrix.resolution_s))
    hours_a_day = max(1, round(DAY_S / (length * matrix.resolution_s)))
    number = np.arange(last - first) // length
    usable = traffic.known[first:last] & (matrix.totals[first:last] > 0)
    members = ((number[:, None] == np.arange(number[-1] + 1 if len(number) else 0)) & usable[:, None]).astype(
        np.float64
    )
    present = members.any(axis=0)
    days = np.flatnonzero(present) // hours_a_day
    if len(np.unique(days)) < _LEAST_DAYS:
        return None
    members = members[:, present]
    hour = np.flatnonzero(present) % hours_a_day
    at = (np.unique(hour)[:, None] == hour).astype(np.float64)
    totals = matrix.totals[first:last] @ members
    return _Blocks(members, totals, members.sum(axis=0), at, days)


def _service_shares(traffic: Traffic, blocks: _Blocks, chosen: BoolArray) -> FloatArray:
    """Return the share of the service's samples that each type makes: (types + 1,).

    The hours of the day are part of it: that the service's samples go with the requests is no chance, and how
    far they do says how much is done without requests.

    Args:
        traffic: Requests by windows.
        blocks: Of the history.
        chosen: (blocks,) those that are looked at.
    """
    types = len(traffic.types)
    alone = 1 / (types + 1)
    prior = np.append(traffic.requests / traffic.requests.sum() * (1 - alone), alone)
    counts = blocks.totals / blocks.windows
    values = (counts / counts.mean())[None, :]
    rates = traffic.rates[:, traffic.history] @ blocks.members / blocks.windows
    moments = _moments(chosen.astype(np.float64), np.ones((1, len(counts))), rates, values)
    return np.asarray(_shares(moments, np.ones(1), prior, floor=0.0)[0][0])


def _fit_series(
    traffic: Traffic,
    matrix: SeriesMatrix,
    blocks: _Blocks,
    service: FloatArray,
    rows: IntArray,
    least: float,
) -> _Fitted:
    """Return what the mix made of some series, of those that it moved."""
    rates = traffic.rates[:, traffic.history] @ blocks.members / blocks.windows
    whole = service @ rates
    samples = matrix.samples[np.ix_(rows, np.arange(len(matrix.totals))[traffic.history])] @ blocks.members
    weights = blocks.totals / whole**2
    work = samples / blocks.totals * whole
    levels = (work @ weights) / weights.sum()
    work = work / np.maximum(levels, 1e-300)[:, None]
    prior = np.maximum(service, _LEAST_SHARE)
    prior = prior / prior.sum()
    moments = _moments(weights, blocks.hours, rates, work)
    shares, dispersion = _shares(moments, levels, prior)
    later = _later(traffic, matrix)
    towards = (traffic.rates[:, later] / (service @ traffic.rates[:, later])).mean(axis=1)
    unknown = _posterior_error(moments, levels / dispersion, prior, towards)
    factors = _factors(traffic, matrix, service, shares)
    level = matrix.samples[rows][:, traffic.history].sum(axis=1) / matrix.totals[traffic.history].sum()
    moved = (np.abs(factors[:, later] - 1).max(axis=1, initial=0.0) * level >= least) & (levels > 0)
    rows, work, levels, shares, factors = (each[moved] for each in (rows, work, levels, shares, factors))
    if not len(rows):
        return _Fitted(rows, factors, np.empty(0), shares)
    gains, spread, errors = _left_out(traffic, matrix, blocks, prior, (weights, rates, work, levels))
    strayed = ((factors[:, later] - 1) ** 2).mean(axis=1)
    known = (gains > _GAIN) & (strayed >= ERRORS**2 * (spread + unknown[moved] ** 2))
    errors = np.hypot(errors, unknown[moved])
    return _Fitted(rows[known], factors[known], errors[known], shares[known])


def _left_out(
    traffic: Traffic,
    matrix: SeriesMatrix,
    blocks: _Blocks,
    prior: FloatArray,
    data: tuple[FloatArray, FloatArray, FloatArray, FloatArray],
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return what shares gain on days that they were not fitted to, and how far they stray without a day.

    Returns:
        (series,) gain in log likelihood; (series,) mean variance of the factors after the history; (series,)
        standard error of their mean.
    """
    weights, rates, work, levels = data
    later = _later(traffic, matrix)
    days = np.unique(blocks.days)
    squares, plain = np.zeros((2, len(work)))
    factors = []
    for day in days.tolist():
        out = blocks.days == day
        moments = _moments(np.where(out, 0.0, weights), blocks.hours, rates, work)
        shares, _ = _shares(moments, levels, prior)
        at = blocks.hours[:, out]
        apart = work[:, out] - moments.work @ at
        left = apart - shares @ (rates[:, out] - moments.rates @ at)
        plain += levels * (apart**2 @ weights[out])
        squares += levels * (left**2 @ weights[out])
        without = _service_shares(traffic, blocks, ~out)
        factors.append(_factors(traffic, matrix, without, shares)[:, later])
    dispersion = np.maximum(squares / len(weights), 1.0)
    parts = np.stack(factors)
    scale = (len(days) - 1) / len(days)
    spread = scale * ((parts - parts.mean(axis=0)) ** 2).sum(axis=0)
    means = parts.mean(axis=2)
    error = np.sqrt(scale * ((means - means.mean(axis=0)) ** 2).sum(axis=0))
    return (plain - squares) / (2 * dispersion), spread.mean(axis=1), error


@dataclass(frozen=True, slots=True, eq=False)
class _Moments:
    """Sums over blocks of deviations from the mean of their hour of the day."""

    squares: FloatArray  # (types + 1, types + 1)
    products: FloatArray  # (series, types + 1)
    own: FloatArray  # (series,) of the series themselves
    blocks: float  # less the hours that were fitted
    rates: FloatArray  # (types + 1, hours) means
    work: FloatArray  # (series, hours) means


def _moments(weights: FloatArray, hours: FloatArray, rates: FloatArray, work: FloatArray) -> _Moments:
    mass = np.maximum(hours @ weights, 1e-300)
    mean_rates, mean_work = (rates * weights) @ hours.T / mass, (work * weights) @ hours.T / mass
    apart, left = rates - mean_rates @ hours, work - mean_work @ hours
    used = float((weights > 0).sum() - ((hours @ (weights > 0)) > 0).sum())
    weighted = apart * weights
    return _Moments(
        squares=weighted @ apart.T,
        products=left @ weighted.T,
        own=left**2 @ weights,
        blocks=max(used, 1.0),
        rates=mean_rates,
        work=mean_work,
    )


def _shares(
    moments: _Moments, levels: FloatArray, prior: FloatArray, floor: float = 1.0
) -> tuple[FloatArray, FloatArray]:
    """Return the shares of types in series: (series, types + 1), and the dispersion of the series' counts.

    The prior has the variance of a series that is all of one type, as likely as its share in the service.

    Args:
        moments: Of the history.
        levels: (series,) a count of 1 has a variance of 1 / (weight × level).
        prior: (types + 1,) what is expected of a series.
        floor: Least dispersion.
    """
    shares = np.broadcast_to(prior, (len(levels), len(prior)))
    dispersion = np.maximum(levels * moments.own / moments.blocks, max(floor, 1e-12))
    # What shares explain is no noise: it is known once they are.
    for _ in range(_ROUNDS):
        precision = levels / dispersion
        matrix = precision[:, None, None] * moments.squares + np.diag(1 / prior)
        shares = _on_simplex(matrix, precision[:, None] * moments.products + 1.0)
        left = (
            moments.own
            - 2 * (shares * moments.products).sum(axis=1)
            + np.einsum("st,tu,su->s", shares, moments.squares, shares)
        )
        dispersion = np.maximum(levels * left / moments.blocks, max(floor, 1e-12))
    return shares, dispersion


def _posterior_error(
    moments: _Moments, precision: FloatArray, prior: FloatArray, towards: FloatArray
) -> FloatArray:
    """Return the standard error of a sum of shares, as far as the history leaves it open: (series,).

    Args:
        moments: Of the history.
        precision: (series,) of its squares.
        prior: (types + 1,) what is expected of a series.
        towards: (types + 1,) what the shares are multiplied with.
    """
    matrix = precision[:, None, None] * moments.squares + np.diag(1 / prior)
    both = np.broadcast_to(np.stack([towards, np.ones(len(prior))], axis=1), (len(precision), len(prior), 2))
    solved = np.linalg.solve(matrix, both)
    along, across = (solved * towards[:, None]).sum(axis=1).T
    whole = solved[:, :, 1].sum(axis=1)
    return np.asarray(np.sqrt(np.maximum(along - across**2 / whole, 0.0)))


def _on_simplex(matrix: FloatArray, linear: FloatArray) -> FloatArray:
    """Return the p ≥ 0 that add up to 1 and minimise p·A·p / 2 − b·p, negative ones left out in turn.

    Args:
        matrix: (series, types, types) A.
        linear: (series, types) b.
    """
    series, types = linear.shape
    held = np.ones((series, types), dtype=np.bool_)
    found = np.zeros((series, types))
    for _ in range(types):
        system = np.zeros((series, types + 1, types + 1))
        system[:, :types, :types] = matrix * (held[:, :, None] & held[:, None, :])
        system[:, np.arange(types), np.arange(types)] += ~held
        system[:, types, :types] = system[:, :types, types] = held
        right = np.concatenate([np.where(held, linear, 0.0), np.ones((series, 1))], axis=1)
        found = np.linalg.solve(system, right[:, :, None])[:, :types, 0]
        negative = held & (found < 0)
        if not negative.any():
            break
        held &= ~negative
    found = np.maximum(np.where(held, found, 0.0), 0.0)
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def _factors(traffic: Traffic, matrix: SeriesMatrix, service: FloatArray, shares: FloatArray) -> FloatArray:
    """Return by how much the mix raised each series: (series, windows), 1 where no request is known."""
    factors = (shares @ traffic.rates) / (service @ traffic.rates)
    weights = np.where(traffic.known, matrix.totals, 0.0)[traffic.history]
    usual = factors[:, traffic.history] @ weights / weights.sum()
    factors = factors / usual[:, None]
    factors[:, ~traffic.known] = 1.0
    return np.asarray(factors)


def _later(traffic: Traffic, matrix: SeriesMatrix) -> IntArray:
    """Return the windows after the history that have samples and requests."""
    last = traffic.history.indices(len(matrix.totals))[1]
    return last + np.flatnonzero(traffic.known[last:] & (matrix.totals[last:] > 0))


def _chunks(rows: IntArray) -> Iterator[IntArray]:
    for first in range(0, len(rows), _CHUNK):
        yield rows[first : first + _CHUNK]
