from __future__ import annotations

import numpy as np
import pytest

from pipeline.analysis.detect.ramp import best_split, find_rise
from pipeline.model import FloatArray

WINDOWS = 400
TIME = np.arange(WINDOWS)


def noise() -> FloatArray:
    return np.random.default_rng(3).normal(0.0, 0.05, WINDOWS)


def test_a_step_is_found_where_it_is() -> None:
    values = (TIME >= 250) + noise()
    assert find_rise(values, np.ones(WINDOWS), shortest=24).start == 250
    assert best_split(values, np.ones(WINDOWS)) == 250


def test_a_slope_is_found_where_it_begins() -> None:
    values = np.clip((TIME - 150) / 150, 0.0, 1.0) + noise()
    assert find_rise(values, np.ones(WINDOWS), shortest=24).start == pytest.approx(150, abs=20)


def test_what_is_over_soon_is_no_step() -> None:
    values = (TIME >= 250) + noise()
    values[100:104] += 9.0
    assert find_rise(values, np.ones(WINDOWS), shortest=48).start == 250


def test_windows_without_data_are_not_looked_at() -> None:
    values, weights = (TIME >= 250) + noise(), np.ones(WINDOWS)
    values[300:310], weights[300:310] = np.nan, 0.0
    assert best_split(values, weights) == 250
    assert find_rise(values, np.zeros(WINDOWS), shortest=24).start == 0
