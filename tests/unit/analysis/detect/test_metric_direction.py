"""The direction in which a metric gets worse: what is said of it, in the order in which it counts."""

from __future__ import annotations

import pytest

from pipeline.analysis.detect.metric_direction import Worse, worse_direction
from pipeline.model import MetricMetadata


@pytest.mark.parametrize(
    ("unit", "kind", "direction", "worse"),
    [
        pytest.param("", "", "", None, id="nothing said"),
        pytest.param("s", "latency", "down", "down", id="direction before kind and unit"),
        pytest.param("s", "availability", "", "down", id="kind before unit"),
        pytest.param("s", "heartbeat", "", "up", id="unit where the kind is unknown"),
        pytest.param("", "heartbeat", "", None, id="unknown kind"),
        pytest.param("ms", "", "", "up", id="duration"),
        pytest.param("By", "", "", "up", id="bytes"),
        pytest.param("MiBy", "", "", "up", id="mebibytes"),
        pytest.param("{error}", "", "", "up", id="errors"),
        pytest.param("{timeout}/s", "", "", "up", id="rate of timeouts"),
        pytest.param("{retries}/min", "", "", "up", id="retries"),
        pytest.param("{request}/s", "", "", None, id="requests: supply or demand"),
        pytest.param("By/s", "", "", None, id="bytes a second: supply or demand"),
        pytest.param("1", "", "", None, id="share of hits or of errors"),
        pytest.param("%", "", "", None, id="percentage"),
        pytest.param("1", "utilization", "", "up", id="utilization"),
        pytest.param("1", "Utilisation", "", "up", id="spelt otherwise"),
        pytest.param("1", "hit_ratio", "", "down", id="hit ratio"),
        pytest.param("{request}/s", "throughput", "", "down", id="throughput"),
        pytest.param("{request}/s", "demand", "", "up", id="demand"),
        pytest.param("{request}/s", "traffic", "", "none", id="traffic"),
        pytest.param("s", "", "none", "none", id="neither"),
    ],
)
def test_directions(unit: str, kind: str, direction: str, worse: Worse | None) -> None:
    assert worse_direction(MetricMetadata(unit, kind, direction)) == worse
