"""A backtest reports what streaming the same input reports: every event byte for byte, ids included.

Streaming over arrays is streaming over ClickHouse, message by message: what is tried over arrays holds there.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from pipeline.backtest.dataset import read_dataset, write_dataset
from pipeline.backtest.flow import Flow
from pipeline.backtest.run import plan_scans, run_backtest
from pipeline.messages.inputs import encode_silence
from pipeline.model import Silence
from pipeline.model.steps import LAST
from pipeline.settings.config import Settings
from pipeline.settings.workloads import load_workloads
from pipeline.stages.factory import SCAN_STAGES
from pipeline.storage.arrays import ArrayStore
from pipeline.storage.interface import Store
from tests.support.fleets import BASE, LIVE, SLOWER, START, THROUGHPUT, Recording, as_dataset, record

SETTINGS = Settings.model_validate({"window": 1, "stack_window": 1})
WORKLOADS = (LIVE, THROUGHPUT)
PRESET = load_workloads(["live"])

MIXES = {
    "steady": [(90, BASE)],
    "one regression": [(60, BASE), (60, SLOWER)],
    "a regression that goes away and comes back": [(50, BASE), (12, SLOWER), (50, BASE), (50, SLOWER)],
}


def stream(store: Store, recording: Recording, *, restarts: bool = False) -> Flow:
    """Send a recording through the stages; if it ``restarts``, one is made anew after every batch."""
    service = recording.profiles[0].service
    flow = Flow(store, WORKLOADS, settings=SETTINGS, clock=lambda: START + 500, stream=service)
    for (topic, messages), stage in zip(recording.messages(), cycle(SCAN_STAGES), strict=False):
        flow.send(topic, messages)
        if restarts:
            flow.restart(stage)
    return flow


@pytest.mark.parametrize("store", ["server"], indirect=True)
def test_restarted_stages_over_a_real_store_say_what_they_say_over_arrays(
    store: Store, service_name: str
) -> None:
    """Over the mix that has the other two within: steady, slower, steady and slower again."""
    recording = record(service_name, MIXES["a regression that goes away and comes back"])
    streamed, over_arrays = stream(store, recording, restarts=True), stream(ArrayStore(), recording)
    for topic in ("change-points", "filtered", "unique", "regressions"):
        assert [m.value for m in over_arrays.topics[topic]] == [m.value for m in streamed.topics[topic]]
    assert over_arrays.topics["regressions"]


@pytest.mark.parametrize("mixes", MIXES.values(), ids=MIXES.keys())
def test_events_and_scans_are_those_of_streaming(
    service_name: str, tmp_path: Path, mixes: list[tuple[int, dict[str, float]]]
) -> None:
    recording = record(service_name, mixes)
    streamed = stream(ArrayStore(), recording)
    write_dataset(as_dataset(recording), tmp_path)
    found = run_backtest(read_dataset(tmp_path), WORKLOADS)
    assert list(found.events) == streamed.events()
    data = [event["data"] for event in found.events]
    every = [(one, member) for one in data for member in (one, *one.get("joined", ()))]
    # Throughput drops with the same change, so that it joins what is reported of the subroutine.
    assert {(member["metric"], one["workload"]) for one, member in every} == (
        set()
        if len(mixes) == 1
        else {("cart.tax", "live"), ("cart.tax", "throughput"), ("throughput", "throughput")}
    )
    assert sorted(found.scans, key=lambda s: (s.end, s.workload)) == sorted(
        streamed.scans("unique"), key=lambda s: (s.end, s.workload)
    )
    assert len(found.scans) == plan_scans(as_dataset(recording), WORKLOADS, idle_s=0).scans


@pytest.mark.parametrize(
    ("said", "reported"),
    [
        pytest.param({"kind": "muted", "end": START + 100}, 1, id="a mute that ends before the regression"),
        pytest.param({"kind": "muted", "end": START + 1000}, 0, id="a mute that outlasts it"),
        pytest.param({"kind": "expected", "cost": 0.5, "subroutine": "cart.*", "end": None}, 0, id="a cost"),
        pytest.param({"kind": "expected", "cost": 0.001, "subroutine": "cart.*", "end": None}, 1, id="less"),
    ],
)
def test_what_people_said_silences_as_in_streaming(
    service_name: str, tmp_path: Path, said: dict[str, Any], reported: int
) -> None:
    recording = record(service_name, [(60, BASE), (90, SLOWER)], metrics=False)
    silence = Silence(id="s1", service=service_name, time=START, start=START, owner="ada", **said)
    flow = Flow(ArrayStore(), [LIVE], settings=SETTINGS, clock=lambda: START + 500, stream=service_name)
    flow.send("feedback", [encode_silence(silence)])
    for topic, messages in recording.messages():
        flow.send(topic, messages)
    write_dataset(replace(as_dataset(recording), silences=(silence,)), tmp_path)
    found = run_backtest(read_dataset(tmp_path), [LIVE])
    assert list(found.events) == flow.events()
    assert len(found.events) == reported
    for event in found.events:
        assert event["data"]["silences"][0]["id"] == "s1"
    silent = [
        line.decision.step for scan in found.scans for line in scan.dropped if line.decision.step in LAST
    ]
    assert silent == ([] if reported else [said["kind"]])


def test_windows_that_widen_are_those_of_streaming(store: Store, service_name: str, tmp_path: Path) -> None:
    recording = record(service_name, [(60, BASE), (60, SLOWER)], metrics=False)
    flow = Flow(store, PRESET, settings=SETTINGS, clock=lambda: START + 500, stream=service_name)
    for topic, messages in replace(recording, profiles=recording.profiles[::2]).messages():
        flow.send(topic, messages)
    dataset = as_dataset(recording)
    for counts in (dataset.samples, dataset.stack_samples, dataset.totals[None]):
        counts[:, 1::2] = 0
    write_dataset(replace(dataset, end=dataset.end - 1), tmp_path)  # where the last profile ends
    found = run_backtest(read_dataset(tmp_path), PRESET)
    assert {scan.resolution_s for scan in found.scans[10:]} == {2.0}
    assert list(found.events) == flow.events()
    assert [event["data"]["metric"] for event in found.events] == ["cart.tax"]
