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
from dataclasses import dataclass, replace

import numpy as np

from pipeline.analysis.statistics.simplex import fit_shares, moments, posterior_error, shares_given
from pipeline.model import BoolArray, FloatArray, IntArray, RequestPeriods, SeriesKey, SeriesMatrix
from pipeline.model.units import DAY_S, HOUR_S

_TYPES = 16
"""Types of requests that are kept apart, those with most requests; the others are one."""

_LEAST_DAYS = 3
"""Days of history from which on days say how well shares are known."""

_COVERED = 0.9
"""Share of the windows with samples that must have requests, too."""

_FAR, _LEAST_APART = 5.0, 0.1
"""Standard deviations, and logarithm at least, by which samples of a window are too many for its requests."""

_GAIN = math.log(1000.0)
"""How much likelier shares must make days that they were not fitted to, as a logarithm."""

ERRORS = 2.576
"""Standard errors by which the mix must have moved a series to be taken out of it."""

_LEAST_SHARE = 1e-3
"""Of a type in the service: what is expected of a series before it is looked at."""

_CHUNK = 1000
"""Series that are fitted at once: some hundred megabytes."""


@dataclass(frozen=True, slots=True, eq=False)
class RequestTraffic:
    """Requests of a service by windows, each type relative to its mean over the history."""

    types: tuple[str, ...]  # (types,) the last is "" where it stands for all others
    rates: FloatArray  # (types + 1, windows) 1 on average; the last row is work without requests
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


def build_traffic(periods: RequestPeriods, matrix: SeriesMatrix, history: slice) -> RequestTraffic | None:
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
    known = counts.sum(axis=0) > 0
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
    return RequestTraffic(types, rates, known, history)


def fit_request_mix(traffic: RequestTraffic, matrix: SeriesMatrix, least: float) -> RequestMix | None:
    """Return what the mix of requests made of series after the history; None where it moved none of them.

    A series is in it if shares fitted to all but a day of the history are the better for that day, over all
    days; and if what they make of the time after it is beyond its standard error (the jackknife over days,
    and what data leave open), and as much as a scan may report.

    Args:
        traffic: Requests by the windows of the matrix.
        matrix: Series as they are to be judged.
        least: Change of gCPU that is reported.
    """
    covered = _covered(traffic, matrix)
    blocks = None if covered is None else _blocks(covered, matrix)
    if covered is None or blocks is None:
        return None
    traffic = covered
    service = _Service(traffic, matrix.totals, blocks, _service_shares(blocks, blocks.days >= 0))
    if not len(service.later):
        return None
    history = traffic.history
    levels = matrix.samples[:, history].sum(axis=1) / max(float(matrix.totals[history].sum()), 1.0)
    # No share can move a series by more than the types that moved most.
    reach = float(np.abs(service.relative[:, service.later] - 1).max())
    asked = np.flatnonzero((levels > 0) & (levels * reach >= least))
    found = [
        _fit(service, matrix.samples[rows], rows, least / levels[rows])
        for rows in (asked[first : first + _CHUNK] for first in range(0, len(asked), _CHUNK))
    ]
    if not any(len(one.rows) for one in found):
        return None
    return RequestMix(
        series=tuple(matrix.series[row] for one in found for row in one.rows.tolist()),
        factors=np.concatenate([one.factors for one in found]),
        errors=np.concatenate([one.errors for one in found]),
        shares=np.concatenate([one.shares for one in found]),
        types=traffic.types,
    )


def factors_at(factors: FloatArray, whole: SeriesMatrix, matrix: SeriesMatrix) -> FloatArray:
    """Return the factors of a scan's windows by those of another read: (series, windows), 1 outside of it.

    Args:
        factors: (series, windows of ``whole``).
        whole: All windows of the scan.
        matrix: The other read; where a window of it holds several of the scan, it has their mean by samples.
    """
    windows = len(matrix.totals)
    step = min(whole.resolution_s, matrix.resolution_s)
    many = round(windows * matrix.resolution_s / step)
    begins = matrix.start + np.arange(many) * step
    column = np.floor((begins - whole.start) / whole.resolution_s + 1e-6).astype(np.int64)
    of = np.minimum(((begins - matrix.start) / matrix.resolution_s + 1e-6).astype(np.int64), windows - 1)
    inside = (column >= 0) & (column < len(whole.totals))
    weights = np.zeros((many, windows))
    weights[np.flatnonzero(inside), of[inside]] = np.maximum(whole.totals[column[inside]], 1e-9)
    sums = factors[:, np.where(inside, column, 0)] @ weights
    mass = weights.sum(axis=0)
    return np.where(mass > 0, sums / np.maximum(mass, 1e-300), 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class _Blocks:
    """Hours of the history, of which windows with samples and requests count."""

    members: FloatArray  # (windows of the history, blocks) 1 where a window is in a block
    totals: FloatArray  # (blocks,) samples of the service
    rates: FloatArray  # (types + 1, blocks)
    hours: FloatArray  # (hours of the day, blocks) 1 where a block is at this hour
    days: IntArray  # (blocks,)


@dataclass(frozen=True, slots=True, eq=False)
class _Service:
    """A service with the shares of types in all its samples."""

    traffic: RequestTraffic
    totals: FloatArray  # (windows,)
    blocks: _Blocks
    shares: FloatArray  # (types + 1,)

    @property
    def relative(self) -> FloatArray:
        """By how much a series that is all of one type rises with the mix: (types + 1, windows)."""
        return self.traffic.rates / (self.shares @ self.traffic.rates)

    @property
    def later(self) -> IntArray:
        """The windows after the history that have samples and requests."""
        last = self.traffic.history.indices(len(self.totals))[1]
        return last + np.flatnonzero(self.traffic.known[last:] & (self.totals[last:] > 0))

    def factors(self, shares: FloatArray) -> FloatArray:
        """Return by how much the mix raised series of some shares: (series, windows), 1 without requests."""
        history, known = self.traffic.history, self.traffic.known
        factors = shares @ self.relative
        weights = np.where(known, self.totals, 0.0)[history]
        factors /= (factors[:, history] @ weights / weights.sum())[:, None]
        factors[:, ~known] = 1.0
        return np.asarray(factors)


@dataclass(frozen=True, slots=True, eq=False)
class _Fitted:
    rows: IntArray
    factors: FloatArray
    errors: FloatArray
    shares: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class _Work:
    """What series do in blocks of the history, relative to their mean, at the service's usual samples."""

    values: FloatArray  # (series, blocks)
    levels: FloatArray  # (series,)
    weights: FloatArray  # (blocks,)


def _blocks(traffic: RequestTraffic, matrix: SeriesMatrix) -> _Blocks | None:
    """Return the hours of a history; None of one that is too short."""
    first, last, _ = traffic.history.indices(len(matrix.totals))
    length = max(1, round(HOUR_S / matrix.resolution_s))
    hours_a_day = max(1, round(DAY_S / (length * matrix.resolution_s)))
    usable = traffic.known[first:last] & (matrix.totals[first:last] > 0)
    number = np.where(usable, np.arange(last - first) // length, -1)
    present = np.unique(number[usable])
    days, hours = np.divmod(present, hours_a_day)
    if len(np.unique(days)) < _LEAST_DAYS:
        return None
    members = (number[:, None] == present).astype(np.float64)
    return _Blocks(
        members=members,
        totals=matrix.totals[first:last] @ members,
        rates=traffic.rates[:, first:last] @ members / members.sum(axis=0),
        hours=(np.unique(hours)[:, None] == hours).astype(np.float64),
        days=days,
    )


def _covered(traffic: RequestTraffic, matrix: SeriesMatrix) -> RequestTraffic | None:
    """Return traffic without the windows whose requests are not those that samples are of.

    Some of a host's lines may be missing, or not be there yet. Then the service has more samples for its
    requests than at any other time. None where that is so in a tenth of the windows.
    """
    blocks = _blocks(traffic, matrix)
    if blocks is None:
        return None
    sampled = traffic.known & (matrix.totals > 0)
    expected = _service_shares(blocks, blocks.days >= 0) @ traffic.rates
    strays = np.log(np.where(sampled, matrix.totals, 1.0) / expected)
    usual = strays[traffic.history][sampled[traffic.history]]
    apart = np.abs(strays - np.median(usual))
    sd = np.median(np.abs(usual - np.median(usual))) / 0.6745
    known = sampled & (apart <= max(_FAR * float(sd), _LEAST_APART))
    if known.sum() < _COVERED * (matrix.totals > 0).sum():
        return None
    return replace(traffic, known=known, rates=np.where(known, traffic.rates, 1.0))


def _service_shares(blocks: _Blocks, chosen: BoolArray) -> FloatArray:
    """Return the share of the service's samples that each type makes: (types + 1,).

    The hours of the day are part of it: that the service's samples go with the requests is no chance, and how
    far they do says how much is done without requests.

    Args:
        blocks: Of the history.
        chosen: (blocks,) those that are looked at.
    """
    types = len(blocks.rates) - 1
    prior = np.full(types + 1, 1 / (types + 1))
    counts = blocks.totals / blocks.members.sum(axis=0)
    found = moments(
        chosen.astype(np.float64), np.ones((1, len(counts))), blocks.rates, (counts / counts.mean())[None, :]
    )
    shares = fit_shares(found, np.ones(1), prior, least=0.0).shares[0]
    shares = np.maximum(shares, _LEAST_SHARE)
    return np.asarray(shares / shares.sum())


def _fit(service: _Service, samples: FloatArray, rows: IntArray, least: FloatArray) -> _Fitted:
    """Return what the mix made of some series, of those that it moved.

    Args:
        service: Whose series.
        samples: (series, windows).
        rows: (series,) of the matrix.
        least: (series,) relative change that is reported.
    """
    blocks = service.blocks
    work = _work(service, samples)
    found = moments(work.weights, blocks.hours, blocks.rates, work.values)
    fitted = fit_shares(found, work.levels, service.shares)
    factors, later = service.factors(fitted.shares), service.later
    moved = np.abs(factors[:, later] - 1).max(axis=1) >= least
    gains, spread, errors = _left_out(
        service, _Work(work.values[moved], work.levels[moved], work.weights), fitted.scale[moved]
    )
    towards = service.relative[:, later].mean(axis=1)
    unknown = posterior_error(fitted.precision[moved], towards)
    strayed = ((factors[moved][:, later] - 1) ** 2).mean(axis=1)
    known = np.flatnonzero(moved)[(gains > _GAIN) & (strayed >= ERRORS**2 * (spread + unknown**2))]
    every = np.zeros(len(rows))
    every[moved] = np.hypot(errors, unknown)
    return _Fitted(rows[known], factors[known], every[known], fitted.shares[known])


def _work(service: _Service, samples: FloatArray) -> _Work:
    blocks = service.blocks
    whole = service.shares @ blocks.rates
    weights = blocks.totals / whole**2
    values = samples[:, service.traffic.history] @ blocks.members / blocks.totals * whole
    levels = np.maximum(values @ weights / weights.sum(), 1e-300)
    return _Work(values / levels[:, None], levels, weights)


def _left_out(service: _Service, work: _Work, scale: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return what shares gain on days that they were not fitted to, and how far they stray without a day.

    Args:
        service: Whose series.
        work: Of the series.
        scale: (series,) a block with weight w has a variance of 1 / (w × scale).

    Returns:
        (series,) gain in log likelihood; (series,) mean variance of the factors after the history; (series,)
        standard error of their mean.
    """
    blocks, weights = service.blocks, work.weights
    days = np.unique(blocks.days)
    squares, plain = np.zeros((2, len(work.levels)))
    every = []
    for day in days.tolist():
        out = blocks.days == day
        found = moments(np.where(out, 0.0, weights), blocks.hours, blocks.rates, work.values)
        shares = shares_given(found, scale, service.shares).shares
        at = blocks.hours[:, out]
        apart = work.values[:, out] - found.values @ at
        left = apart - shares @ (blocks.rates[:, out] - found.parts @ at)
        plain += work.levels * (apart**2 @ weights[out])
        squares += work.levels * (left**2 @ weights[out])
        without = replace(service, shares=_service_shares(blocks, ~out))
        every.append(without.factors(shares)[:, service.later])
    dispersion = np.maximum(squares / len(weights), 1.0)
    factors = np.stack(every)
    jackknife = (len(days) - 1) / len(days)
    spread = jackknife * ((factors - factors.mean(axis=0)) ** 2).sum(axis=0).mean(axis=1)
    means = factors.mean(axis=2)
    error: FloatArray = np.sqrt(jackknife * ((means - means.mean(axis=0)) ** 2).sum(axis=0))
    return (plain - squares) / (2 * dispersion), spread, error
