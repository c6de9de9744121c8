"""The windows of a scan by when its service has data, in every store."""

from __future__ import annotations

import pytest

from pipeline.model import Scan
from pipeline.settings.workloads import Workload, load_workloads
from pipeline.stages.gather.scan_series import fit_workload
from pipeline.storage.arrays import ArrayStore
from tests.support.fleets import BASE, LIVE, START, as_dataset, record

(PRESET,) = load_workloads(["live"])


def fitted(seconds: int, *, every: int = 1) -> Workload:
    """Return the workload of a scan that ends so long after a service began, data coming so often."""
    dataset = as_dataset(record("shop", [(seconds, BASE)], metrics=False))
    for window in range(seconds):
        if window % every:
            dataset.samples[:, window] = dataset.totals[window] = 0
    return fit_workload(ArrayStore(dataset), "shop", PRESET, START + seconds)


@pytest.mark.parametrize(
    ("seconds", "every", "resolution_s", "historical_s"),
    [
        pytest.param(10, 1, 1.0, 30.0, id="least history"),
        pytest.param(95, 1, 1.0, 60.0, id="all there is"),
        pytest.param(700, 1, 1.0, 600.0, id="most history"),
        pytest.param(200, 2, 2.0, 130.0, id="every two seconds"),
        pytest.param(200, 5, 5.0, 150.0, id="every five, with the least history"),
        pytest.param(800, 20, 10.0, 450.0, id="seldom"),
    ],
)
def test_history_and_resolution(seconds: int, every: int, resolution_s: float, historical_s: float) -> None:
    found = fitted(seconds, every=every)
    times = resolution_s / PRESET.resolution_s
    assert (found.resolution_s, found.historical_s) == (resolution_s, historical_s)
    assert (found.analysis_s, found.extended_s) == (times * PRESET.analysis_s, times * PRESET.extended_s)


def test_a_scan_says_which_windows_it_had() -> None:
    found = fitted(200, every=2)
    start = START + 200 - found.span_s
    windows = (start, start + found.historical_s, start + found.historical_s + found.analysis_s, START + 200)
    scan = Scan("shop", "live", *windows, series=5, resolution_s=2.0)
    assert PRESET.as_scanned(scan) == found
    assert LIVE.as_scanned(scan) is LIVE


def test_only_workloads_that_ask_for_it_are_fitted() -> None:
    presets = load_workloads(["frontfaas-small", "ct-supply-short", "live"])
    assert [workload.name for workload in presets if workload.is_fitted] == ["live"]
