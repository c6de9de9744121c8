"""By which metrics releases are compared: the rules there are, and those of a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.analysis.detect.metric_direction import worse_direction
from pipeline.model import MetricMetadata
from pipeline.model.errors import ConfigError
from pipeline.releases.requests import ReleaseMetrics
from pipeline.settings.config import Settings
from pipeline.settings.release_metrics import read_release_metrics
from pipeline.stages.factory import StageNeeds, build_stage
from pipeline.stages.gather.streams import one_stream
from pipeline.storage.arrays import ArrayStore


@pytest.mark.parametrize(
    ("name", "unit", "kind", "direction", "taken"),
    [
        pytest.param("process.cpu.time", "{cpu}", "usage", "", True, id="CPU of the gateway"),
        pytest.param("cores", "{core}", "", "", True, id="CPU by unit alone"),
        pytest.param("work", "ms/s", "", "", True, id="time per second"),
        pytest.param("disk.read", "By/s", "usage", "", True, id="bytes per second"),
        pytest.param("disk.write", "MiBy/s", "", "", True, id="and their prefixes"),
        pytest.param("disk.operations", "{operation}/s", "", "", True, id="operations"),
        pytest.param("system.cpu.utilization", "1", "Utilisation", "", True, id="a share"),
        pytest.param("host CPU", "", "", "", True, id="a name, where nothing is said"),
        pytest.param("db", "", "", "", False, id="nothing is said, and no name"),
        pytest.param("process.memory.usage", "By", "usage", "", False, id="a level of memory"),
        pytest.param("memory", "1", "utilization", "", False, id="a share of something else"),
        pytest.param("cpu.wait", "s", "latency", "", False, id="a latency"),
        pytest.param("network", "By/s", "traffic", "", False, id="a rise of traffic is no regression"),
        pytest.param("cpu.idle", "1", "", "down", False, id="nor is one that gets worse by falling"),
        pytest.param("cpu.info", "", "", "none", False, id="nor one that never gets worse"),
    ],
)
def test_metrics_that_requests_add_up_to(
    name: str, unit: str, kind: str, direction: str, taken: bool
) -> None:
    said = MetricMetadata(unit, kind, direction)
    assert ReleaseMetrics().takes("shop", name, said, worse_direction(said)) == taken


FILE = """
default: [{unit: ["{cpu}"]}]
services:
  shop: [{name: ["DB.*"], unit: ["s/s", ""]}, {kind: [cost]}]
"""


@pytest.mark.parametrize(
    ("text", "service", "name", "unit", "kind", "taken"),
    [
        pytest.param("", "shop", "a", "By/s", "", True, id="an empty file changes nothing"),
        pytest.param(FILE, "cart", "a", "By/s", "", False, id="other rules for all"),
        pytest.param(FILE, "cart", "a", "{cpu}", "", True, id="and what they take"),
        pytest.param(FILE, "shop", "a", "{cpu}", "", False, id="a service's rules stand alone"),
        pytest.param(FILE, "shop", "db.time", "s/s", "", True, id="each list matches"),
        pytest.param(FILE, "shop", "db.time", "", "", True, id="what says nothing"),
        pytest.param(FILE, "shop", "db.time", "1", "", False, id="one list does not match"),
        pytest.param(FILE, "shop", "bill", "", "Cost", True, id="any rule"),
    ],
)
def test_a_file_of_rules(
    tmp_path: Path, text: str, service: str, name: str, unit: str, kind: str, taken: bool
) -> None:
    file = tmp_path / "metrics.yaml"
    file.write_text(text)
    assert read_release_metrics(file).takes(service, name, MetricMetadata(unit, kind)) == taken


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        pytest.param("default: [{units: [s]}]", "units: unknown key; known keys are", id="unknown key"),
        pytest.param("default: [{}]", "give at least one of unit, kind, name", id="an empty rule"),
        pytest.param("default: []", "default", id="no rule"),
        pytest.param("default: [{unit: []}]", "unit", id="no glob"),
        pytest.param("default: [{unit: s}]", "should be a list", id="no list"),
        pytest.param("services: {'': [{unit: [s]}]}", "should not be empty", id="no name"),
        pytest.param("- a", "should be a mapping", id="not a mapping"),
    ],
)
def test_a_wrong_file_stops_the_worker_before_it_starts(tmp_path: Path, text: str, wrong: str) -> None:
    file = tmp_path / "metrics.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=wrong):
        build_stage(
            "releases",
            StageNeeds(
                settings=Settings(release_metrics=file),
                workloads=(),
                store=ArrayStore(),
                streams=one_stream("log"),
                clock=lambda: 0.0,
            ),
        )
