"""Requests and CPU of two releases with truth: types that come together, load that differs between them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from pipeline.model import FloatArray
from pipeline.model.units import DAY_S
from pipeline.releases.requests import ReleasePeriods, Releases

SEGMENTS = 5
"""Mixes of load in a release (Liao et al., §6: four and five)."""

BUSY = 0.5
"""Mean of the metric without its base."""

IDLE = 0.05

PERIOD_S = 30.0

WARM_UP_PERIODS = 8.0
"""Periods after which a warm-up is down to 37 %."""

REQUEST_SPREAD = 0.7
"""Deviation of the logarithm of response times of one type."""


@dataclass(frozen=True, slots=True)
class Preset:
    """Behaviour of a service.

    Args:
        about: Description in one sentence.
        types: Number of types of requests.
        scenarios: Number of scenarios of users; each is a mix of types, so that types come together.
        old: Number of periods of the old release.
        new: Number of periods of the new release.
        drift: Deviation of the logarithm of each scenario's load between the releases.
        noise: Relative deviation of the metric.
        memory: Autocorrelation of the noise from one period to the next.
        bend: By how much of itself the metric grows faster than the load.
        interaction: Cost of two types together, as a share of the whole.
        cache: By how much of itself a request gets cheaper as more of its type come.
        machine: By how much of itself everything costs more in the new release.
        daily: By how much of itself everything costs more or less as the day goes.
        warm_up: By how much of itself everything costs more as the new release begins; it fades.
        tail: Whether noise has Student's tails with three degrees.
        timed: Whether response times are known.
        after: Whether the extra cost of a changed type comes after its answer.
        shifted: Deviation by which response times of each type differ between the releases for other reasons.
    """

    about: str
    types: int = 12
    scenarios: int = 6
    old: int = 480
    new: int = 480
    drift: float = 0.0
    noise: float = 0.03
    memory: float = 0.0
    bend: float = 0.0
    interaction: float = 0.0
    cache: float = 0.0
    machine: float = 0.0
    daily: float = 0.0
    warm_up: float = 0.0
    tail: bool = False
    timed: bool = False
    after: bool = False
    shifted: float = 0.02


_PLAIN = Preset("The load of both releases is similar.")

PRESETS = MappingProxyType(
    {
        "plain": _PLAIN,
        "other-load": replace(_PLAIN, about="Each scenario has another load in the new release.", drift=0.5),
        "correlated": replace(_PLAIN, about="Twenty types of three scenarios.", types=20, scenarios=3),
        "short": replace(_PLAIN, about="The new release has run for half an hour.", new=60),
        "few": replace(_PLAIN, about="Both releases have 60 periods.", old=60, new=60),
        "busy": replace(_PLAIN, about="CPU grows faster than the load.", bend=0.6, drift=0.3),
        "caches": replace(_PLAIN, about="Many requests of a type are cheaper each.", cache=0.3, drift=0.3),
        "together": replace(_PLAIN, about="Two types cost more if they come together.", interaction=0.1),
        "background": replace(_PLAIN, about="Noise that lasts for minutes.", memory=0.9, noise=0.05),
        "tails": replace(_PLAIN, about="Rare large deviations.", tail=True),
        "machine": replace(_PLAIN, about="The new release runs on a slower machine.", machine=0.05),
        "warm-up": replace(
            _PLAIN, about="The new release uses half as much again at first, for minutes.", warm_up=0.5
        ),
        "daily": replace(_PLAIN, about="The same costs more by day than at night.", old=2880, daily=0.03),
        "timed": replace(_PLAIN, about="Response times are known.", timed=True),
        "after": replace(
            _PLAIN, about="Likewise; what costs more comes after the answer.", timed=True, after=True
        ),
        "shifted": replace(
            _PLAIN,
            about="Likewise; response times of all types change for other reasons.",
            timed=True,
            shifted=0.2,
        ),
        "many-types": replace(_PLAIN, about="A hundred types.", types=100, scenarios=20, old=960, new=960),
        "large": replace(
            _PLAIN, about="Two hundred types for a week.", types=200, scenarios=40, old=20_000, new=20_000
        ),
    }
)
"""Name → preset."""

USUAL = tuple(name for name in PRESETS if name != "large")
"""Those that are tried unless one is named."""


@dataclass(frozen=True, slots=True)
class ReleasePair:
    """Two releases, and their difference.

    Args:
        releases: The releases as observed.
        type: Type whose cost rose.
        share: The rise as a share of the new release's metric.
    """

    releases: Releases
    type: str
    share: float


def simulate(preset: Preset, rng: np.random.Generator, share: float = 0.0) -> ReleasePair:
    """Draw two releases; in the new one requests of one type cost more.

    Args:
        preset: How the service behaves.
        rng: Random numbers.
        share: The rise as a share of the metric at the old release's load; 0 for equal releases.
    """
    service = _Service.drawn(preset, rng)
    old = service.counts(preset.old, np.zeros(preset.scenarios), rng)
    new = service.counts(preset.new, preset.drift * rng.standard_normal(preset.scenarios), rng)
    # A type with a tenth of a percent of the metric cannot make it rise by five percent.
    heavy = np.flatnonzero(service.costs * service.typical >= np.median(service.costs * service.typical))
    slow = int(rng.choice(heavy))
    risen = service.costs.copy()
    risen[slow] += share * (BUSY + IDLE) / service.typical[slow]
    before, after = (
        service.metric(counts, costs, rng) for counts, costs in ((old, service.costs), (new, risen))
    )
    starts = PERIOD_S * np.arange(preset.old + preset.new, dtype=np.float64)
    begun = rng.random() if preset.daily else 0.0
    hours = 1.0 + preset.daily * np.sin(2.0 * np.pi * (starts / DAY_S + begun))
    before, after = before * hours[: preset.old], after * hours[preset.old :]
    after *= 1.0 + preset.machine
    after *= 1.0 + preset.warm_up * np.exp(-np.arange(preset.new) / WARM_UP_PERIODS)
    names = tuple(f"GET /{number}" for number in range(preset.types))
    times = service.times((old, new), risen, rng) if preset.timed else (None, None)
    rise = float(new[:, slow].mean() * (risen - service.costs)[slow] / after.mean())
    sides = (
        ReleasePeriods(old, before, times=times[0], starts=starts[: preset.old]),
        ReleasePeriods(new, after, times=times[1], starts=starts[preset.old :]),
    )
    return ReleasePair(Releases(names, *sides), names[slow], rise)


@dataclass(frozen=True, slots=True)
class _Service:
    """A service: the scenarios of its users, and the costs of its requests.

    Args:
        preset: Behaviour of the service.
        mixes: (scenarios, types) requests of each scenario, which sum to 1 over scenarios.
        typical: (types,) typical requests of a period.
        costs: (types,) cost of one request.
    """

    preset: Preset
    mixes: FloatArray
    typical: FloatArray
    costs: FloatArray

    @classmethod
    def drawn(cls, preset: Preset, rng: np.random.Generator) -> _Service:
        mixes = rng.gamma(1.0, 1.0, (preset.scenarios, preset.types))
        mixes *= rng.random(mixes.shape) < 0.5
        mixes += 0.02
        typical = rng.lognormal(3.0, 0.8, preset.types)
        costs = rng.lognormal(0.0, 0.8, preset.types)
        return cls(preset, mixes / mixes.sum(axis=0), typical, BUSY * costs / (costs @ typical))

    def counts(self, periods: int, load: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Return (periods, types) requests under SEGMENTS mixes of load, which wander within each."""
        segment = np.arange(periods) * SEGMENTS // periods
        level = rng.normal(0.0, 0.4, (SEGMENTS, self.preset.scenarios))[segment] + load
        wander = _wandering(rng, (periods, self.preset.scenarios), 0.9)
        rates = np.exp(level + 0.3 * wander) @ self.mixes * self.typical
        return rng.poisson(rates).astype(np.float64)

    def metric(self, counts: FloatArray, costs: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Return (periods,) CPU."""
        preset = self.preset
        type_costs = counts * costs
        if preset.cache:
            type_costs = type_costs * (1.0 - preset.cache * counts / (counts + self.typical))
        load = IDLE + type_costs.sum(axis=1)
        if preset.interaction:
            pair = counts[:, 0] * counts[:, 1] / (self.typical[0] * self.typical[1])
            load = load + preset.interaction * BUSY * pair
        load = load * (1.0 + preset.bend * load)
        noise = _wandering(rng, (len(counts), 1), preset.memory)[:, 0]
        if preset.tail:
            noise = noise * np.sqrt(1.0 / rng.chisquare(3.0, len(counts)))
        return np.asarray(load * (1.0 + preset.noise * noise))

    def times(
        self, sides: tuple[FloatArray, FloatArray], risen: FloatArray, rng: np.random.Generator
    ) -> tuple[FloatArray, FloatArray]:
        """Return (periods, types) response times of both releases, as means of their logarithms.

        All requests wait longer in a period of high load.

        Args:
            sides: (periods, types) requests of each release.
            risen: (types,) costs in the new release.
            rng: Random numbers.
        """
        preset = self.preset
        waits = self.costs * rng.lognormal(0.0, 1.0, preset.types)
        shift = preset.shifted * rng.standard_normal(preset.types)
        of_each = (self.costs, np.zeros(preset.types)), (self.costs if preset.after else risen, shift)
        log_times = []
        for counts, (costs, shifted) in zip(sides, of_each, strict=True):
            load = np.log1p(counts @ self.costs / BUSY) + 0.2 * _wandering(rng, (len(counts), 1), 0.9)[:, 0]
            spread = REQUEST_SPREAD * rng.standard_normal(counts.shape) / np.sqrt(np.maximum(counts, 1.0))
            logs = np.log(costs + waits) + shifted + load[:, None] + spread
            log_times.append(np.where(counts > 0.0, logs, np.nan))
        return log_times[0], log_times[1]


def _wandering(rng: np.random.Generator, shape: tuple[int, int], memory: float) -> FloatArray:
    """Return standard normal AR(1) series of shape (periods, series), with autocorrelation ``memory``."""
    fresh = rng.standard_normal(shape)
    if not memory:
        return fresh
    for period in range(1, shape[0]):
        fresh[period] = memory * fresh[period - 1] + np.sqrt(1.0 - memory**2) * fresh[period]
    return fresh
