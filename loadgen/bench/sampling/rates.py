"""Cost against error of sampling policies, by simulated services whose truth is known (Atys §6.4)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from agents.sampling.rates import (
    FrequencyConfig,
    FrequencyState,
    adjust,
    adjust_as_published,
    config_for,
    first_state,
)
from loadgen.bench.sampling.services import WINDOW_S, ServiceProfiles, draw_service
from pipeline.model import FloatArray

FIXED, POOLED, PUBLISHED, CORRECTED = "fixed", "fixed, pooled", "FDA as published", "FDA, noise taken out"
POLICIES = (FIXED, POOLED, PUBLISHED, CORRECTED)

FIXED_HZ = (5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0)
POOLED_HZ = (5.0, 10.0, 20.0, 50.0, 100.0)
THETAS = (0.003, 0.01, 0.03, 0.1, 0.3)
SAMPLES = (300.0, 1000.0, 3000.0, 10_000.0)

TOP = 10
_POOLED_SAMPLES = 10_000.0


@dataclass(frozen=True, slots=True)
class PolicyPoint:
    """Cost and error of one policy at one setting."""

    kind: str  # kind of service
    policy: str
    setting: float  # Hz, θ, or the number of samples that is accurate enough
    mean_hz: float
    error: float  # mean absolute error of the top functions' shares in each window
    whole_error: float  # error of the shares over the whole run, samples weighted by 1 / rate
    plain_error: float  # the same without weights


@dataclass(frozen=True, slots=True)
class _Policy:
    """Rule that sets the rate from window to window."""

    config: FrequencyConfig
    rule: Callable[[FrequencyState, FloatArray, float, FrequencyConfig], FrequencyState]


def measure_rates(
    kinds: Sequence[str], seeds: Sequence[int], windows: int, advance: Callable[[], None]
) -> list[PolicyPoint]:
    """Run every policy at every setting on services of every kind.

    Args:
        kinds: Kinds of services, see ``draw_service``.
        seeds: Each seed draws one service of each kind.
        windows: Length of each service.
        advance: Called after each service.

    Returns:
        Means over the seeds.
    """
    points = []
    for kind in kinds:
        runs = []
        for seed in seeds:
            runs.append(_measure(draw_service(kind, windows, seed), seed))
            advance()
        points += [_mean(same) for same in zip(*runs, strict=True)]
    return points


def equal_rate_hz(points: Sequence[PolicyPoint], error: float) -> float:
    """Return the fixed rate of the same error, interpolated between those measured.

    Args:
        points: Points of one kind of service.
        error: Error of another policy; beyond the measured errors the nearest rate counts.
    """
    fixed = sorted((point.error, point.mean_hz) for point in points if point.policy == FIXED)
    errors, rates = np.log(np.array(fixed)).T
    return float(np.exp(np.interp(np.log(error), errors, rates)))


def saved(points: Sequence[PolicyPoint], point: PolicyPoint) -> float:
    """Return the share of the samples that a policy saves, against the fixed rate of the same error."""
    same = [candidate for candidate in points if candidate.kind == point.kind]
    return 1 - point.mean_hz / equal_rate_hz(same, point.error)


def _policies() -> list[tuple[str, float, _Policy]]:
    """Return all policies: name, setting and rule."""
    pooled = config_for(_POOLED_SAMPLES, WINDOW_S)
    return [
        *((POOLED, hz, _Policy(replace(pooled, lowest_hz=hz, highest_hz=hz), adjust)) for hz in POOLED_HZ),
        *((PUBLISHED, theta, _Policy(FrequencyConfig(theta=theta), adjust_as_published)) for theta in THETAS),
        *((CORRECTED, samples, _Policy(config_for(samples, WINDOW_S), adjust)) for samples in SAMPLES),
    ]


def _measure(service: ServiceProfiles, seed: int) -> list[PolicyPoint]:
    """Return a point of each policy and setting."""
    fixed = [_at_fixed_rate(service, hz, np.random.default_rng([seed, 1])) for hz in FIXED_HZ]
    adaptive = [
        _followed(service, policy, setting, rule, np.random.default_rng([seed, 2]))
        for policy, setting, rule in _policies()
    ]
    return fixed + adaptive


def _at_fixed_rate(service: ServiceProfiles, hz: float, rng: np.random.Generator) -> PolicyPoint:
    """Return the point of a fixed rate: each window's shares come from its own samples."""
    counts = np.array([service.sample(rng, window, hz) for window in range(len(service.shares))])
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    whole = _whole_error(service, counts.sum(axis=0))
    return PolicyPoint(service.kind, FIXED, hz, hz, _error(service, shares), whole, whole)


def _followed(
    service: ServiceProfiles, name: str, setting: float, policy: _Policy, rng: np.random.Generator
) -> PolicyPoint:
    """Return the point of a policy: each window's shares come from all samples that count for its profile."""
    state = first_state(policy.config)
    spent = 0.0
    shares = np.empty(service.shares.shape)
    weighed, plain = np.zeros((2, service.shares.shape[1]))
    for window in range(len(service.shares)):
        counts = service.sample(rng, window, state.rate_hz)
        spent += state.rate_hz
        plain += counts
        weighed += counts / state.rate_hz
        state = policy.rule(state, counts, WINDOW_S, policy.config)
        shares[window] = state.shares
    mean_hz = spent / len(service.shares)
    error = _error(service, shares)
    return PolicyPoint(
        service.kind,
        name,
        setting,
        mean_hz,
        error,
        _whole_error(service, weighed),
        _whole_error(service, plain),
    )


def _error(service: ServiceProfiles, estimated: FloatArray) -> float:
    """Return the mean absolute error of the shares of each window's top functions."""
    top = np.argsort(-service.shares, axis=1)[:, :TOP]
    missed = np.abs(np.take_along_axis(estimated, top, 1) - np.take_along_axis(service.shares, top, 1))
    return float(missed.mean())


def _whole_error(service: ServiceProfiles, counts: FloatArray) -> float:
    """Return the mean absolute error of the top functions' shares over the whole run."""
    truth = service.shares.mean(axis=0)
    top = np.argsort(-truth)[:TOP]
    return float(np.abs(counts / counts.sum() - truth)[top].mean())


def _mean(points: Sequence[PolicyPoint]) -> PolicyPoint:
    return replace(
        points[0],
        mean_hz=float(np.mean([point.mean_hz for point in points])),
        error=float(np.mean([point.error for point in points])),
        whole_error=float(np.mean([point.whole_error for point in points])),
        plain_error=float(np.mean([point.plain_error for point in points])),
    )
