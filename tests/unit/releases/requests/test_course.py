"""What each release's model says of a metric, period by period."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pipeline.model import FloatArray
from pipeline.releases.requests import RequestRollout, model_course

OLD, NEW = 120, 60
COSTS = np.array([0.004, 0.002, 0.001])


def rollout(share: float = 1.0) -> RequestRollout:
    """A rollout of three types, of which the new release gets a share."""
    rng = np.random.default_rng(0)
    counts = rng.poisson([100, 150, 200], size=(OLD + NEW, 3)).astype(np.float64)
    own = np.zeros_like(counts)
    own[OLD:] = share * counts[OLD:]
    starts = 30.0 * np.arange(OLD + NEW, dtype=np.float64)
    return RequestRollout(
        "v1", "v2", 30.0 * OLD, 30.0, starts, ("a", "b", "c"), counts, own, np.full_like(own, np.nan)
    )


def measured(found: RequestRollout, rise: float) -> FloatArray:
    """The metric; requests of the second type cost more in the new release."""
    noise = 0.005 * np.random.default_rng(1).standard_normal(len(found.starts))
    level = 0.1 + found.counts @ COSTS + rise * found.own[:, 1] * COSTS[1]
    return np.asarray(level + noise, np.float64)


def errors(found: RequestRollout, metric: FloatArray) -> tuple[FloatArray, FloatArray]:
    course = model_course(found, metric)
    return metric - course.by_old, metric - course.by_new


@pytest.mark.parametrize("share", [1.0, 0.4])
def test_the_old_model_is_wrong_where_requests_cost_more(share: float) -> None:
    found = rollout(share)
    by_old, by_new = errors(found, measured(found, 0.5))
    extra = 0.5 * share * 150 * COSTS[1]
    assert by_old[:OLD].mean() == pytest.approx(0.0, abs=0.003)
    assert by_old[OLD:].mean() == pytest.approx(extra, rel=0.1)
    assert by_new[OLD:].mean() == pytest.approx(0.0, abs=0.003)


def test_both_models_hold_where_nothing_changed() -> None:
    found = rollout()
    for each in errors(found, measured(found, 0.0)):
        assert np.abs(each).mean() == pytest.approx(0.004, rel=0.5)  # the noise


def test_a_period_says_nothing_of_itself() -> None:
    found = rollout()
    metric = measured(found, 0.0)
    metric[7] += 1.0
    by_old, _ = errors(found, metric)
    assert by_old[7] == pytest.approx(1.0, rel=0.1)


def test_what_is_missing_stays_so() -> None:
    found = rollout()
    metric = measured(found, 0.0)
    metric[OLD + 3 :] = np.nan  # three periods of the new release: too few for a model
    by_old, by_new = errors(found, metric)
    assert np.isfinite(by_old[: OLD + 3]).all()
    assert np.isnan(by_old[OLD + 3 :]).all()
    assert np.isnan(by_new).all()
    constant = replace(found, counts=np.ones_like(found.counts))
    assert np.isfinite(model_course(constant, measured(found, 0.0)).by_old).all()
