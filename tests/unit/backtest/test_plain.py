"""Plain series as datasets: windows, sums and totals by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipeline.backtest.plain import build_datasets, common_window_s
from pipeline.backtest.seriesfile import Series
from pipeline.model.errors import ConfigError
from pipeline.settings.workloads import load_workloads

FILE = Path("points.csv")


def counted(
    metric: str, times: list[float], samples: list[float], totals: list[float], service: str = "shop"
) -> Series:
    return Series(
        service, "subroutine", metric, np.array(times), np.array(samples), np.array(totals, dtype=np.float64)
    )


def plain(metric: str, times: list[float], values: list[float], service: str = "shop") -> Series:
    return Series(service, "service", metric, np.array(times), np.array(values), None)


@pytest.mark.parametrize(
    ("resolutions", "window_s"),
    [([60.0], 60.0), ([600.0, 1800.0], 600.0), ([60.0, 90.0], 30.0), ([0.25, 1.0], 0.25)],
)
def test_the_widest_window_that_divides_every_resolution(resolutions: list[float], window_s: float) -> None:
    (live,) = load_workloads(["live"])
    workloads = [live.model_copy(update={"resolution_s": each}) for each in resolutions]
    assert common_window_s(workloads) == window_s


def test_samples_of_a_window_add_up_and_totals_count_a_time_once() -> None:
    (data,) = build_datasets(
        [
            counted("a", [130.0, 190.0, 250.0], [1, 2, 4], [10, 20, 40]),
            counted("b", [130.0, 170.0], [3, 5], [10, 15]),
        ],
        FILE,
        window_s=60.0,
    )
    # From 120 on, windows of a minute: 130 and 170 lie in the first, 190 in the second, 250 in the third.
    assert (data.start, data.end, data.window_s) == (120.0, 300.0, 60.0)
    assert data.names == ("a", "b")
    assert data.samples.tolist() == [[1, 2, 4], [8, 0, 0]]
    assert data.totals.tolist() == [25, 20, 40]
    assert (data.stacks, data.stack_samples.shape) == ((), (0, 3))
    assert (data.metrics, data.changes) == ((), ())


def test_a_time_on_an_edge_begins_a_window() -> None:
    (data,) = build_datasets([counted("a", [120.0, 180.0], [1, 2], [9, 9])], FILE, window_s=60.0)
    assert data.samples.tolist() == [[1, 2]]


def test_values_stay_points() -> None:
    (data,) = build_datasets([plain("latency", [125.0, 185.0], [7.5, 8.5])], FILE, window_s=60.0)
    (metric,) = data.metrics
    assert (metric.service, metric.metric) == ("shop", "latency")
    assert metric.timestamps.tolist() == [125.0, 185.0]
    assert metric.values.tolist() == [7.5, 8.5]
    assert (data.samples.shape, data.totals.tolist()) == ((0, 2), [0, 0])


def test_one_dataset_a_service_in_the_order_of_names() -> None:
    series = [
        plain("latency", [60.0], [1.0], service="web"),
        counted("a", [600.0], [1], [5], service="api"),
        counted("a", [60.0], [2], [6], service="web"),
    ]
    api, web = build_datasets(series, FILE, window_s=60.0)
    assert (api.service, api.start, api.totals.tolist()) == ("api", 600.0, [5])
    assert (web.service, web.start, web.totals.tolist()) == ("web", 60.0, [6])
    assert [metric.metric for metric in web.metrics] == ["latency"]


def test_two_totals_at_one_time_are_refused() -> None:
    series = [counted("a", [60.0], [1], [10]), counted("b", [60.0], [1], [11])]
    with pytest.raises(
        ConfigError, match=r"points\.csv: total: service 'shop' has both 10 and 11 at 1970-01-01"
    ):
        build_datasets(series, FILE, window_s=60.0)
    build_datasets([series[0], replace(series[1], service="other")], FILE, window_s=60.0)


def test_a_wrong_year_is_refused_before_it_takes_all_memory() -> None:
    with pytest.raises(ConfigError, match="timestamp: 1970-01-01.*more than fit into memory"):
        build_datasets([counted("a", [0.0, 1.7e10], [1, 1], [1, 1])], FILE, window_s=1.0)
