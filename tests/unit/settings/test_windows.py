"""Widths of the counted windows: the defaults, what workloads need, and what was given."""

from __future__ import annotations

import pytest

from pipeline.model.errors import ConfigError
from pipeline.settings.config import Settings
from pipeline.settings.windows import check_windows, fitted_windows
from pipeline.settings.workloads import Workload, load_workloads


def workload(resolution: str, *, extended: str | None = None, rerun: str = "1h") -> Workload:
    raw = {
        "name": "mine",
        "resolution": resolution,
        "rerun_interval": rerun,
        "historical": "90h",
        "analysis": "9h",
        "extended": extended or 0,
        "threshold": {"absolute": 0.01},
    }
    return Workload.model_validate(raw)


@pytest.mark.parametrize(
    ("workloads", "window_s", "stack_window_s"),
    [
        pytest.param(load_workloads(Settings().workloads), 60.0, 300.0, id="the default ones"),
        pytest.param(load_workloads(["live"]), 1.0, 5.0, id="live"),
        pytest.param(load_workloads(["live", "frontfaas-large"]), 1.0, 5.0, id="the finest counts"),
        pytest.param((workload("90s"),), 30.0, 60.0, id="it divides"),
        pytest.param((), 60.0, 300.0, id="none"),
    ],
)
def test_windows_follow_the_workloads(
    workloads: tuple[Workload, ...], window_s: float, stack_window_s: float
) -> None:
    fitted = fitted_windows(Settings(), workloads)
    assert (fitted.window_s, fitted.stack_window_s) == (window_s, stack_window_s)
    check_windows(fitted, workloads)


def test_what_was_given_stays_and_is_refused_if_it_does_not_fit() -> None:
    given = Settings.model_validate({"window": 60.0})
    fitted = fitted_windows(given, load_workloads(["live"]))
    assert (fitted.window_s, fitted.stack_window_s) == (60.0, 5.0)
    with pytest.raises(ConfigError, match=r"window: 1m does not divide .* live, 1s: leave it out, to fit"):
        check_windows(fitted, load_workloads(["live"]))
