"""Service whose samples are the work of its requests, with the truth about both."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.signal import lfilter

from pipeline.model import FloatArray, RequestPeriods, SeriesKey, SeriesMatrix

WINDOW_S = 600.0
DAY = 144
HISTORY = 10 * DAY
AT = HISTORY + 36
"""Window from which on the mix of requests, or the cost of a subroutine, is another."""

END = 11 * DAY


@dataclass(frozen=True, slots=True)
class Served:
    """A service over eleven days, ten of which are history.

    Args:
        matrix: Counts of series: a third of one type each, a third of several, a third as the service.
        requests: Requests of the types.
        moved: (series,) factors by which the mix raised each series from AT on.
        levels: (series,) usual gCPU.
    """

    matrix: SeriesMatrix
    requests: RequestPeriods
    moved: FloatArray
    levels: FloatArray

    def with_steps(self, rows: list[int], gains: FloatArray, seed: int) -> Served:
        """Return the same service with series that cost more by some factors from AT on."""
        rng, samples = np.random.default_rng((seed, 1)), self.matrix.samples.copy()
        samples[rows, AT:] += rng.poisson(samples[rows, AT:] * gains[:, None])
        samples = np.minimum(samples, self.matrix.totals)
        return replace(self, matrix=replace(self.matrix, samples=samples))


def serve(seed: int, *, gain: float, types: int = 8, series: int = 60, wander: float = 0.05) -> Served:
    """Draw a service whose first type of request gains some traffic at AT.

    Args:
        seed: Seed of all draws.
        gain: Relative gain of traffic.
        types: Number of types of requests; a tenth of the work belongs to no request.
        series: Number of subroutines.
        wander: Standard deviation of the logarithm of each type's traffic over hours.
    """
    rng = np.random.default_rng(seed)
    time = np.arange(END)
    keeps = np.exp(-1 / 36)
    noise = rng.standard_normal((types, END)) * wander * np.sqrt(1 - keeps**2)
    own = 1 + 0.1 * np.cos(2 * np.pi * (time / DAY - rng.random((types, 1))))
    traffic = (1 + 0.3 * np.cos(2 * np.pi * time / DAY)) * own * np.exp(lfilter([1], [1, -keeps], noise))
    traffic[0, AT:] *= 1 + gain
    requests = rng.poisson(600 * traffic).astype(np.float64)
    rates = np.concatenate([requests / 600, np.ones((1, END))])
    cost = np.exp(rng.standard_normal(types) / 2)
    cost = np.append(0.9 * cost / cost.sum(), 0.1)
    work = cost @ rates
    totals = rng.poisson(60_000 * work / work.mean()).astype(np.float64)
    shares = np.tile(cost, (series, 1))
    shares[::3] = np.eye(types + 1)[np.arange(len(shares[::3])) % types]
    shares[1::3] = rng.dirichlet(np.full(types + 1, 0.5), len(shares[1::3]))
    factors = shares @ rates / work
    names = [SeriesKey("subroutine", f"f{row:04d}") for row in range(series)]
    levels = np.exp(rng.uniform(np.log(0.0005), np.log(0.05), series))
    samples = rng.poisson(totals * np.minimum(levels[:, None] * factors, 1.0)).astype(np.float64)
    return Served(
        SeriesMatrix(
            start=0.0,
            resolution_s=WINDOW_S,
            kinds=tuple(key.kind for key in names),
            names=tuple(key.name for key in names),
            samples=np.minimum(samples, totals),
            totals=totals,
        ),
        RequestPeriods(
            releases=("v1",) * types,
            types=tuple(f"GET /{row}" for row in range(types)),
            starts=np.asarray(time * WINDOW_S, np.float64),
            width_s=WINDOW_S,
            requests=requests,
            timed=np.zeros(requests.shape),
            log_times=np.zeros(requests.shape),
        ),
        factors[:, AT:].mean(axis=1) / factors[:, :HISTORY].mean(axis=1),
        levels,
    )


def keys(rows: list[int]) -> set[SeriesKey]:
    """Return the keys of some series."""
    return {SeriesKey("subroutine", f"f{row:04d}") for row in rows}
