"""A restart or an outage makes no scan run before the data of every partition are there."""

from __future__ import annotations

import pytest

from pipeline.messages.scans import decode_progress, decode_scan, encode_progress
from pipeline.model import Outgoing, Progress, Record, Scan
from pipeline.settings.workloads import Workload
from pipeline.stages.abilities import handle_whole
from pipeline.stages.aggregate import AggregateStage
from pipeline.stages.detect import DetectStage
from pipeline.stages.gather.streams import one_stream
from pipeline.storage.interface import RowQuery, Store
from tests.contract.stages.stores import every_store
from tests.support.builders import build_profile

START = 1_700_000_000.0 // 3600 * 3600
WORKLOAD = Workload.model_validate(
    {
        **{"name": "w", "resolution": "1m", "rerun_interval": "5m", "historical": "10m", "analysis": "5m"},
        "threshold": {"absolute": 0.01},
    }
)
IDLE_S = 300.0


class Clock:
    now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def detect_stage(store: Store, service: str, clock: Clock, workload: Workload = WORKLOAD) -> DetectStage:
    return DetectStage(
        store=store,
        clock=clock,
        streams=one_stream(service),
        workloads=[workload],
        window_s=60.0,
        partition_idle_s=IDLE_S,
    )


def store_up_to(store: Store, service: str, partition: int, minutes: int) -> None:
    """Count a profile a minute of one partition, as the aggregate stage does."""
    stage = AggregateStage(
        store=store, clock=Clock(), streams=one_stream(service), window_s=60.0, stack_window_s=60.0
    )
    profiles = [
        build_profile({"m;a": 5}, service=service, start=START + 60 * minute) for minute in range(minutes)
    ]
    stage.handle([Record("profiles", partition, n, profile) for n, profile in enumerate(profiles)])


def ends_after(stage: DetectStage, service: str, partition: int, minutes: int, since: int = 0) -> list[float]:
    """Send progress of one partition and return the ends of the scans that it causes, in minutes."""
    step = Progress(service, "profiles", partition, START + 60.0 * minutes, START + 60.0 * since)
    sent = handle_whole(stage, [Record("windows", 0, 0, decode_progress(encode_progress(step)))])
    return [(scan_of(message).end - START) / 60 for message in sent]


def scan_of(message: Outgoing) -> Scan:
    return decode_scan(message.value)


@every_store
def test_after_a_restart_the_partitions_in_the_store_hold_scans_back(
    store: Store, service_name: str, clock: Clock
) -> None:
    for partition, minutes in ((0, 20), (1, 8)):
        store_up_to(store, service_name, partition, minutes)
    first = detect_stage(store, service_name, clock)
    assert ends_after(first, service_name, 1, 8) == [5.0]
    restarted = detect_stage(store, service_name, clock)
    assert ends_after(restarted, service_name, 0, 20) == []
    assert ends_after(restarted, service_name, 1, 20) == [10.0, 15.0]


def test_data_whose_progress_made_no_scan_due_before_a_restart_are_scanned(
    store: Store, service_name: str, clock: Clock
) -> None:
    """Their progress does not come again: where the scans of a service begin is seen in the store."""
    patient = WORKLOAD.model_copy(update={"lateness_s": 120.0})
    store_up_to(store, service_name, 0, 6)
    assert ends_after(detect_stage(store, service_name, clock, patient), service_name, 0, 6) == []
    store_up_to(store, service_name, 0, 12)
    restarted = detect_stage(store, service_name, clock, patient)
    assert ends_after(restarted, service_name, 0, 12, since=6) == [5.0, 10.0]


def test_scans_begin_with_the_data_however_far_ahead_the_first_partition_is_that_speaks(
    store: Store, service_name: str, clock: Clock
) -> None:
    """A worker that was killed before the first scan of a service goes on with whoever speaks first."""
    store_up_to(store, service_name, 0, 40)
    store_up_to(store, service_name, 1, 4)
    before = detect_stage(store, service_name, clock)
    assert ends_after(before, service_name, 1, 4) == []
    restarted = detect_stage(store, service_name, clock)
    assert ends_after(restarted, service_name, 0, 40, since=35) == []
    assert ends_after(restarted, service_name, 1, 11, since=10) == [5.0, 10.0]


def test_scans_begin_with_the_oldest_data_whichever_partition_speaks_first(
    store: Store, service_name: str, clock: Clock
) -> None:
    """Clocks of hosts differ, and a worker that counts another partition may be slower."""
    stage = detect_stage(store, service_name, clock)
    assert ends_after(stage, service_name, 0, 4, since=1) == []
    store_up_to(store, service_name, 1, 12)
    assert ends_after(stage, service_name, 1, 4, since=-3) == [0.0]
    assert ends_after(stage, service_name, 0, 12) == []
    assert ends_after(stage, service_name, 1, 12) == [5.0, 10.0]
    assert ends_after(stage, service_name, 0, 16, since=-20) == []  # late, once the first scan is made
    assert ends_after(stage, service_name, 1, 16) == [15.0]


def test_a_partition_in_the_store_that_stays_silent_is_idle_in_the_end(
    store: Store, service_name: str, clock: Clock
) -> None:
    for partition, minutes in ((0, 20), (1, 8)):
        store_up_to(store, service_name, partition, minutes)
    stage = detect_stage(store, service_name, clock)
    ends_by_minute: list[list[float]] = []
    for minute in range(20, 30):
        clock.now += 50
        ends_by_minute.append(ends_after(stage, service_name, 0, minute))
    assert ends_by_minute[4] == []
    assert [end for ends in ends_by_minute for end in ends][:2] == [5.0, 10.0]


def test_an_outage_makes_no_partition_idle(store: Store, service_name: str, clock: Clock) -> None:
    stage = detect_stage(store, service_name, clock)
    assert ends_after(stage, service_name, 0, 4) == []
    assert ends_after(stage, service_name, 1, 4) == []
    clock.now += 10 * IDLE_S
    assert ends_after(stage, service_name, 0, 20) == []
    assert ends_after(stage, service_name, 1, 20) == [5.0, 10.0, 15.0]


@every_store
def test_a_scan_that_could_not_judge_is_stored_and_counted_once(
    store: Store, service_name: str, clock: Clock
) -> None:
    store_up_to(store, service_name, 0, 8)
    stage = detect_stage(store, service_name, clock)
    step = Progress(service_name, "profiles", 0, START + 60.0 * 8, START)
    record = Record("windows", 0, 0, decode_progress(encode_progress(step)))
    for _ in range(2):  # the first attempt was not settled
        (message,) = stage.handle([record])
    stage.settled()
    (unjudged,) = scan_of(message).unjudged
    (row,) = store.rows(RowQuery("unjudged", service_name, START, START + 3600))
    assert (row["code"], row["series"], row["value"]) == (unjudged.code, unjudged.series, unjudged.value)
    labels = {"stage": "detect", "service": service_name, "reason": unjudged.code}
    counted = [sample for sample in stage.samples() if sample[0] == "unjudged_scans_total"]
    assert counted == [("unjudged_scans_total", labels, 1)]
