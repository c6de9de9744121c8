"""dedup and rootcause killed throughout a fortnight of a fleet report what one undisturbed run reports."""

from __future__ import annotations

from dataclasses import replace
from importlib.resources import files

import pytest

from loadgen.fleet.scenario import load_scenario
from loadgen.fleet.simulate import simulate
from pipeline.backtest.dataset import Dataset
from pipeline.backtest.flow import Flow
from pipeline.backtest.run import plan_scans
from pipeline.messages.scans import decode_scan, encode_progress, encode_scan
from pipeline.model import Outgoing, Progress
from pipeline.settings.config import Settings
from pipeline.settings.workloads import load_workloads
from pipeline.stages.gather.counted_rows import change_columns
from pipeline.storage.arrays import ArrayStore
from tests.support.builders import build_change
from tests.support.open_faults import open_fault

WORKLOADS = load_workloads(["frontfaas-small"])


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    # Twelve days, for the history that a scan wants.
    text = (files("loadgen.fleet.presets") / "tiny.yaml").read_text()
    path = tmp_path_factory.mktemp("fleet") / "fortnight.yaml"
    path.write_text(text.replace("name: tiny", "name: fortnight").replace("duration: 8d", "duration: 12d"))
    return simulate(load_scenario(str(path)), 3).dataset


@pytest.fixture(scope="module")
def filtered(dataset: Dataset) -> list[bytes]:
    """What the first stages make of the fleet."""
    flow = flow_of(dataset, ["detect", "filter"])
    plan = plan_scans(dataset, WORKLOADS, idle_s=0.0)
    for watermark, _ in plan.watermarks:
        flow.send(
            "windows", [encode_progress(Progress(dataset.service, "profiles", 0, watermark, plan.earliest))]
        )
    return [message.value for message in flow.topics["filtered"]]


def flow_of(dataset: Dataset, stages: list[str]) -> Flow:
    return Flow(ArrayStore(dataset), WORKLOADS, settings=Settings(), clock=lambda: dataset.end, stages=stages)


def events(flow: Flow) -> list[bytes]:
    return [message.value for message in flow.topics["regressions"]]


def test_kills_between_and_within_scans_change_no_event(dataset: Dataset, filtered: list[bytes]) -> None:
    undisturbed = flow_of(dataset, ["dedup", "rootcause"])
    for message in filtered:
        undisturbed.send("filtered", [message])
    expected = events(undisturbed)
    kinds = [event["type"].rsplit(".", 1)[1] for event in undisturbed.events()]
    assert kinds.count("detected") >= 3

    killed = flow_of(dataset, ["dedup", "rootcause"])
    reported: list[list[bytes]] = []
    for message in filtered:
        unique: list[Outgoing] = []
        for _ in range(2):  # killed after its work was stored, before it was acknowledged: it comes again
            killed.restart("dedup")
            before = len(killed.topics["unique"])
            killed.stages.pop("rootcause", None)
            killed.send("filtered", [message])
            unique = killed.topics["unique"][before:]
        for _ in range(2):
            killed.restart("rootcause")
            killed.topics["regressions"].clear()
            killed.send("unique", [part.value for part in unique])
            reported.append(events(killed))
    assert all(first == again for first, again in zip(reported[::2], reported[1::2], strict=True))
    assert [event for scan in reported[::2] for event in scan] == expected


def test_what_comes_between_two_times_changes_no_event(dataset: Dataset, filtered: list[bytes]) -> None:
    """A change of which a webhook speaks late, or samples that come late: the scan was decided before."""
    flow = flow_of(dataset, ["dedup", "rootcause"])
    for message in filtered:
        before = {topic: len(messages) for topic, messages in flow.topics.items()}
        flow.send("filtered", [message])
        first = {topic: messages[before.get(topic, 0) :] for topic, messages in flow.topics.items()}
        for one in decode_scan(message).candidates:
            late = build_change(
                f"late {one.metric}", [one.metric], time=one.change_time, service=dataset.service
            )
            flow.store.insert("changes", change_columns([late]))
        for stage in flow.stages:
            flow.restart(stage)
        again = {topic: len(messages) for topic, messages in flow.topics.items()}
        flow.send("filtered", [message])
        second = {topic: messages[again[topic] :] for topic, messages in flow.topics.items()}
        assert second == first
    assert len(flow.topics["regressions"]) >= 6


@open_fault("44.7", "dedup remembers the regression of the second look, rootcause answers by the first one")
def test_a_scan_that_comes_again_with_a_candidate_has_it_reported(
    dataset: Dataset, filtered: list[bytes]
) -> None:
    """As from a stage that keeps no outcome, killed before it noted the scan, with late data since."""
    undisturbed, killed = (flow_of(dataset, ["dedup", "rootcause"]) for _ in range(2))
    scans = [(message, decode_scan(message)) for message in filtered]
    first = next(message for message, scan in scans if scan.candidates)
    for message, scan in scans:
        undisturbed.send("filtered", [message])
        if message is first:
            killed.send("filtered", [encode_scan(replace(scan, candidates=(), dropped=()))])
        killed.send("filtered", [message])
    subjects, expected = ({event["subject"] for event in flow.events()} for flow in (killed, undisturbed))
    assert subjects == expected


def test_scans_that_are_judged_again_without_their_outcomes_have_the_same_ids(
    dataset: Dataset, filtered: list[bytes]
) -> None:
    """As after a restored backup: the store knows nothing of these scans, and changes that came since."""
    flows = [flow_of(dataset, ["dedup", "rootcause"]) for _ in range(2)]
    late = [
        build_change(f"late {one.metric}", [one.metric], time=one.change_time, service=dataset.service)
        for message in filtered
        for one in decode_scan(message).candidates
    ]
    flows[1].store.insert("changes", change_columns(late))
    for flow in flows:
        for message in filtered:
            flow.send("filtered", [message])
    first, again = ([event["id"] for event in flow.events()] for flow in flows)
    assert again == first
