"""How late data may come for a scan to look at them, and that detect knows what comes later."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pipeline.analysis.detect.schedule import Cadence, ServiceProgress, due_scans, first_boundary
from pipeline.model import Progress
from pipeline.settings.workloads import RELEASE_COSTS, known_workloads
from pipeline.stages.watermarks import cadence_of
from tests.support.paths import ROOT

PRESETS = {
    name: cadence_of(workload)
    for name, workload in known_workloads([]).items()
    if workload is not RELEASE_COSTS  # scans of the stage releases, not of detect
}
DOC = (Path(ROOT) / "docs" / "workloads.md").read_text("utf-8").split("## Late data")[1].split("## What")[0]
START = 1_000 * 86_400.0


def later_scans(cadence: Cadence, moment: float, delay_s: float) -> int:
    """Return how many scans that are made after the watermark was so far past a moment look at it."""
    watermark = moment + delay_s
    long_before = first_boundary(cadence, moment) - 3 * cadence.interval_s
    made = due_scans({cadence.workload: long_before}, watermark, [cadence])
    last = max((scan.end for scan in made), default=long_before)
    beyond = watermark + cadence.analysis_s + cadence.extended_s + 3 * cadence.interval_s
    due = due_scans({cadence.workload: last}, beyond, [cadence])
    windows = ((s.end - cadence.extended_s - cadence.analysis_s, s.end - cadence.extended_s) for s in due)
    return sum(start <= moment < end for start, end in windows)


@pytest.mark.parametrize("name", PRESETS)
def test_late_data_are_looked_at_as_often_as_the_page_says(name: str) -> None:
    cadence = PRESETS[name]
    row = re.search(rf"^\| {name} \| (\d+) \| ([\w ]+) \|$", DOC, re.MULTILINE)
    assert row
    in_time, by_s = int(row[1]), _seconds(row[2])
    assert by_s == cadence.reach_s
    waits_s = cadence.extended_s + cadence.wait_s
    for share in (0.0, 0.3, 0.7, 0.99):
        moment = START + 12 * 86_400.0 + share * cadence.interval_s
        for delay_s in (0.0, waits_s, (waits_s + by_s) / 2, by_s, by_s - cadence.interval_s):
            wanted = in_time
            if delay_s > waits_s:
                looks_s = cadence.analysis_s + waits_s - delay_s
                wanted = int(looks_s / cadence.interval_s)
            assert later_scans(cadence, moment, delay_s) >= wanted >= (delay_s <= by_s)
    worst = START + 12 * 86_400.0 + cadence.interval_s * 0.999
    assert later_scans(cadence, worst, by_s + cadence.interval_s) == 0


def _seconds(text: str) -> float:
    units = {"h": 3600.0, "min": 60.0, "s": 1.0}
    words = text.split()
    return sum(float(n) * units[unit] for n, unit in zip(words[::2], words[1::2], strict=True))


HOURLY = Cadence("hourly", 3600.0, 600.0, analysis_s=3 * 3600.0, extended_s=1800.0)
METRICS = Cadence("metrics", 3600.0, 0.0, analysis_s=3600.0, topic="metrics")


@pytest.mark.parametrize(
    ("earliest_h", "topic", "wanted"),
    [
        pytest.param(10.0, "profiles", (False, False), id="not of a scan yet"),
        pytest.param(9.9, "profiles", (True, False), id="after its scan"),
        pytest.param(7.5, "profiles", (True, False), id="the next scan begins there"),
        pytest.param(7.4, "profiles", (True, True), id="before all that it looks at"),
        pytest.param(11.9, "metrics", (False, False), id="of scans of metrics"),
        pytest.param(9.9, "metrics", (True, True), id="of which the next looks at an hour"),
    ],
)
def test_what_comes_after_its_scan_is_known(earliest_h: float, topic: str, wanted: tuple[bool, bool]) -> None:
    state = ServiceProgress(scanned={"hourly": 36_000.0, "metrics": 36_000.0})
    step = Progress("shop", topic, 0, 40_000.0, earliest_h * 3600.0)
    assert state.lateness(step, [HOURLY, METRICS]) == wanted
