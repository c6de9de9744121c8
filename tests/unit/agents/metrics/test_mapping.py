from __future__ import annotations

from pathlib import Path

import pytest

from agents.metrics import load_metric_map
from agents.metrics.conventions import kind_of, rate_unit, unit_of
from agents.metrics.mapping import MetricMap, Targets
from pipeline.model.errors import ConfigError


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("metrics: [{take: x, colour: red}]", "colour"),
        ("metrics: [{name: x}]", "take"),
        ("metrics: [{take: []}]", "take"),
        ("metrics: [{take: x, over_hosts: median}]", "over_hosts"),
        ("metrics: [{take: x, quantiles: [1.5]}]", "quantiles"),
        ("metrics: [{take: x, direction: left}]", "direction"),
        ("defaults: false", "takes nothing"),
        ("interval: 0s", "interval"),
        ("interval: 1.5s", "whole seconds"),
        ("wait: 2d", "wait"),
        ("series_per_service: 0", "series_per_service"),
    ],
)
def test_a_mistake_is_named_in_one_line(tmp_path: Path, content: str, problem: str) -> None:
    path = tmp_path / "metrics.yaml"
    path.write_text(content)
    with pytest.raises(ConfigError, match=problem) as raised:
        load_metric_map(path)
    assert "\n" not in str(raised.value)


def test_defaults_follow_what_a_file_says(tmp_path: Path) -> None:
    path = tmp_path / "metrics.yaml"
    path.write_text("metrics: [{take: http_requests_total, name: own, labels: [pod]}]")
    targets = Targets(load_metric_map(path))
    found = targets.find("http_requests_total", (("pod", "p"), ("service", "shop")))
    assert found
    assert (found.name, found.values, found.service) == ("own", "{p}", "shop")
    assert targets.is_taken("http.server.request.duration")
    assert not targets.is_taken("go_gc_duration_seconds")


@pytest.mark.parametrize(
    ("labels", "service"),
    [
        ({"job": "prod/shop"}, "shop"),
        ({"job": "shop", "service.name": "cart"}, "cart"),
        ({"service": "", "job": "shop"}, "shop"),
        ({"service": "no spaces"}, ""),
        ({}, ""),
    ],
)
def test_services_by_labels(labels: dict[str, str], service: str) -> None:
    assert MetricMap().service_of(labels) == service


@pytest.mark.parametrize(
    ("name", "said", "unit"),
    [
        ("x_seconds", "", "s"),
        ("x_seconds_total", "", "s"),
        ("x_bytes", "", "By"),
        ("x", "seconds", "s"),
        ("x", "ms", "ms"),
        ("x", "", ""),
    ],
)
def test_units_by_name_and_by_what_is_said(name: str, said: str, unit: str) -> None:
    assert unit_of(name, said) == unit


def test_kinds_by_unit() -> None:
    assert kind_of("s", is_distribution=True) == "latency"
    assert kind_of("By", is_distribution=False) == "usage"
    assert kind_of("By", is_distribution=True) == ""
    assert (rate_unit("s"), rate_unit("By"), rate_unit("")) == ("{cpu}", "By/s", "1/s")
