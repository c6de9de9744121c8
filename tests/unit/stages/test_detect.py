"""detect works off scans one by one: who is far behind keeps nobody waiting, and hears nobody meanwhile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from pipeline.analysis.detect.idleness import Readings
from pipeline.analysis.detect.schedule import DueScan
from pipeline.messages.scans import decode_scan
from pipeline.model import Progress, Record
from pipeline.model.errors import QueryRefused
from pipeline.settings.workloads import Workload
from pipeline.stages.abilities import handle_whole
from pipeline.stages.detect import DetectStage
from pipeline.stages.gather.streams import one_stream
from pipeline.stages.scanner import FinishedScan, Scanner
from pipeline.storage.arrays import ArrayStore

START = 1_700_000_000.0 // 3600 * 3600
IDLE_S = 300.0
WORKLOAD = Workload.model_validate(
    {
        **{"name": "w", "resolution": "1m", "rerun_interval": "5m", "historical": "10m", "analysis": "5m"},
        "threshold": {"absolute": 0.01},
    }
)


class Clock:
    now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


def stage_of(clock: Clock, readings: Readings | None = None, store: ArrayStore | None = None) -> DetectStage:
    return DetectStage(
        store=store or ArrayStore(),
        clock=clock,
        streams=one_stream("log"),
        workloads=[WORKLOAD],
        window_s=60.0,
        partition_idle_s=IDLE_S,
        readings=readings,
    )


def progress(service: str, minutes: int, partition: int = 0, since: int = 0) -> Record:
    watermark = START + 60.0 * minutes
    return Record("windows", 0, 0, Progress(service, "profiles", partition, watermark, START + 60.0 * since))


def parts(stage: DetectStage, batch: Sequence[Record]) -> list[list[tuple[str, float]]]:
    """Return the scans that each call brings, by service and end in minutes."""
    found: list[list[tuple[str, float]]] = []
    while not found or stage.unfinished:
        scans = [decode_scan(message.value) for message in stage.handle(batch)]
        stage.settled()
        found.append([(scan.service, (scan.end - START) / 60) for scan in scans])
    return found


def test_scans_are_published_one_by_one_and_the_one_far_behind_keeps_nobody_waiting() -> None:
    stage = stage_of(Clock())
    batch = [progress("behind", 31), progress("other", 21, since=11), progress("new", 2)]
    assert parts(stage, batch) == [
        [("behind", 5.0)],
        [("other", 15.0)],
        [("behind", 10.0)],
        [("other", 20.0)],
        [("behind", 15.0)],
        [("behind", 20.0)],
        [("behind", 25.0)],
        [("behind", 30.0)],
    ]
    assert parts(stage, batch) == [[]]


def test_a_part_that_comes_again_is_the_same() -> None:
    stage, batch = stage_of(Clock()), [progress("shop", 11)]
    first = [stage.handle(batch) for _ in range(3)]  # it was never settled
    assert first[0] == first[1] == first[2]
    assert stage.unfinished
    stage.settled()
    (second,) = (decode_scan(message.value) for message in stage.handle(batch))
    assert second.end == START + 600.0
    stage.settled()
    assert not stage.unfinished


def test_a_new_assignment_forgets_what_was_left() -> None:
    stage = stage_of(Clock())
    stage.handle([progress("shop", 11)])
    assert stage.unfinished
    stage.assigned("windows", [0])
    assert not stage.unfinished


def test_who_could_not_be_heard_during_a_long_batch_is_not_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forty scans of half a minute take longer than it takes for a partition to be idle."""
    clock = Clock()
    stage = stage_of(clock)
    assert handle_whole(stage, [progress("shop", 4), progress("shop", 4, partition=1)]) == []
    scan = Scanner._scan

    def slow(self: Scanner, *given: Any) -> FinishedScan | None:
        clock.now += 30.0
        return scan(self, *given)

    monkeypatch.setattr(Scanner, "_scan", slow)
    assert len(handle_whole(stage, [progress("behind", 201)])) == 40
    assert handle_whole(stage, [progress("shop", 31)]) == [], "its other partition has not spoken since"
    assert len(handle_whole(stage, [progress("shop", 31, partition=1)])) == 6


def test_scans_that_would_see_nothing_are_left_out_and_counted() -> None:
    """A week of which the store has no data is due at once; then what was left out goes on as ever."""
    stage = stage_of(Clock())
    week = 7 * 24 * 60 + 1
    assert parts(stage, [progress("shop", week)]) == [[("shop", week - 1.0)]]
    counted: Mapping[str, int] = stage.limited
    assert counted["skipped_scans"] == week // 5 - 1
    assert parts(stage, [progress("shop", week + 5)]) == [[("shop", week + 4.0)]]
    assert counted["skipped_scans"] == week // 5 - 1


def test_after_a_long_time_every_window_with_data_is_looked_at() -> None:
    """Data of an hour, three months before those of now."""
    store = ArrayStore()
    windows = [*range(100, 160), *(129_600 + minute for minute in range(60))]
    rows = {
        "service": ["shop"] * len(windows),
        "window": [START + 60.0 * minute for minute in windows],
        "samples": [5] * len(windows),
        "messages": [1] * len(windows),
        "stacks": [1] * len(windows),
        "partition": [0] * len(windows),
        "last_offset": [0] * len(windows),
        "stream": ["log"] * len(windows),
        "topic": ["profiles"] * len(windows),
    }
    store.insert("totals", rows)
    stage = stage_of(Clock(), store=store)
    ends = [end for part in parts(stage, [progress("shop", 129_660)]) for _, end in part]
    assert set(range(105, 165, 5)) | set(range(129_605, 129_656, 5)) <= set(ends)
    assert len(ends) < 40
    assert stage.limited["skipped_scans"] == 129_655 // 5 - len(ends)


def test_a_partition_in_which_aggregate_lags_is_never_idle() -> None:
    """The worker of partition 1 is down for 40 minutes, while partition 0 goes on."""
    clock, readings = Clock(), Readings()
    stage = stage_of(clock, readings)
    read, offset = 0, 0

    def say(minute: int, partition: int) -> list[float]:
        nonlocal offset
        step = Progress("shop", "profiles", partition, START + 60.0 * minute, START)
        sent = handle_whole(stage, [Record("windows", 3, offset, step)])
        offset += 1
        return [(decode_scan(message.value).end - START) / 60 for message in sent]

    def measure(end: int) -> None:
        done = {("profiles", 0): 10 + end, ("profiles", 1): read}
        readings.add(clock.now, {("profiles", 0): 10 + end, ("profiles", 1): end}, done, {3: offset})

    assert say(3, partition=0) == say(3, partition=1) == []
    for minute in range(4, 44):
        clock.now += 60.0
        measure(minute)
        assert say(minute, partition=0) == []
    read = 43  # it is back and has read all, of which nothing was of this service
    clock.now += 60.0
    measure(43)
    assert len(say(44, partition=0)) == 8


def test_progress_that_aggregate_has_published_and_detect_not_heard_makes_no_partition_idle() -> None:
    clock, readings = Clock(), Readings()
    stage = stage_of(clock, readings)
    known = {("profiles", 0): 1, ("profiles", 1): 1}

    def say(minute: int, partition: int, offset: int) -> int:
        step = Progress("shop", "profiles", partition, START + 60.0 * minute, START)
        return len(handle_whole(stage, [Record("windows", 0, offset, step)]))

    assert say(4, 0, offset=0) == say(4, 1, offset=1) == 0
    for offset in range(2, 10):
        clock.now += 60.0
        readings.add(clock.now, known, known, {0: 12})
        assert say(20, 0, offset) == 0, "the other's progress waits at offset 11"
    assert say(20, 1, offset=11) == 3


def test_a_scan_without_a_partition_that_fell_silent_says_that_it_is_partial() -> None:
    """While it looks for changes where that one's data end."""
    clock = Clock()
    stage = stage_of(clock)
    assert handle_whole(stage, [progress("shop", 1), progress("shop", 12, partition=1)]) == []
    found: list[tuple[float, int]] = []
    for minutes in range(13, 32):
        clock.now += 60.0
        messages = handle_whole(stage, [progress("shop", minutes, partition=1)])
        scans = [decode_scan(message.value) for message in messages]
        found += [((scan.end - START) / 60, scan.silent_partitions) for scan in scans]
    assert found == [(5.0, 1), (10.0, 0), (15.0, 0), (20.0, 0), (25.0, 0), (30.0, 0)]


def test_who_is_silent_and_was_read_is_idle() -> None:
    clock, readings = Clock(), Readings()
    stage = stage_of(clock, readings)
    known = {("profiles", 0): 1, ("profiles", 1): 1}
    scans = []
    for minute in range(4, 12):
        step = [Progress("shop", "profiles", p, START + 60.0 * minute, START) for p in (0, 1)]
        records = [Record("windows", 0, 2 * minute + p, one) for p, one in enumerate(step)]
        readings.add(clock.now, known, known, {0: 2 * minute})
        scans.append(len(handle_whole(stage, records if minute == 4 else records[:1])))
        clock.now += 60.0
    assert scans == [0, 0, 0, 0, 0, 0, 1, 1]


def test_services_by_the_thousand_are_forgotten_and_known_again_from_the_store(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pipeline.stages.watermarks.MOST_SERVICES", 3)
    stage = stage_of(Clock())
    assert parts(stage, [progress("shop", 7)]) == [[("shop", 5.0)]]
    for number in range(100):
        assert parts(stage, [progress(f"other-{number}", 1), progress(f"second-{number}", 1)]) == [[]]
    assert list(stage._watermarks._services) == ["second-98", "other-99", "second-99"]
    assert parts(stage, [progress("shop", 12)]) == [[("shop", 10.0)]], "the scan before is in the store"


def test_a_batch_of_more_services_than_are_remembered_is_scanned_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pipeline.stages.watermarks.MOST_SERVICES", 3)
    stage = stage_of(Clock())
    batch = [progress(f"shop-{number}", 7) for number in range(10)]
    assert len(parts(stage, batch)) == 10
    assert parts(stage, batch) == [[]]


def test_a_long_batch_rests_while_others_wait_and_keeps_its_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 200 scans of 10 s each, three are made before the next batch's are made beside them."""
    clock = Clock()
    stage = stage_of(clock)
    assert handle_whole(stage, [progress("fresh", 4)]) == []
    scan = Scanner._scan

    def slow(self: Scanner, *given: Any) -> FinishedScan | None:
        clock.now += 10.0
        return scan(self, *given)

    monkeypatch.setattr(Scanner, "_scan", slow)

    def worked(batch: Sequence[Record], others_wait: bool) -> list[str]:
        found = []
        while True:
            found += [decode_scan(message.value).service for message in stage.handle(batch)]
            stage.settled()
            if not stage.unfinished or (others_wait and stage.rest()):
                return found

    behind = Record("windows", 2, 5, Progress("behind", "profiles", 0, START + 60_060.0, START))
    fresh = Record("windows", 2, 6, Progress("fresh", "profiles", 0, START + 7 * 60.0, START))
    assert worked([behind], others_wait=True) == ["behind"] * 3
    assert stage.held("windows") == {2: 5}
    assert worked([fresh], others_wait=True) == ["behind", "fresh", "behind"]
    assert stage.held("windows") == {2: 5}
    assert len(worked([fresh], others_wait=False)) == 195
    assert stage.held("windows") == {}


def test_a_refused_scan_of_who_rests_is_no_fault_of_the_batch_at_hand(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock()
    stage = stage_of(clock)
    behind, fresh = progress("behind", 61), progress("fresh", 7)
    stage.handle([behind])
    stage.settled()
    clock.now += 60.0
    assert stage.rest()
    scan = Scanner._scan

    def refused(self: Scanner, service: str, due: DueScan) -> FinishedScan | None:
        if service == "behind":
            raise QueryRefused("too much memory")
        return scan(self, service, due)

    with monkeypatch.context() as refusing:
        refusing.setattr(Scanner, "_scan", refused)
        assert parts(stage, [fresh]) == [[("fresh", 5.0)]]
        with pytest.raises(QueryRefused, match="behind"):
            stage.handle([behind])
    assert len(handle_whole(stage, [behind])) == 11


def test_progress_of_requests_holds_nothing_up_and_asks_for_nothing() -> None:
    stage = stage_of(Clock())
    of_requests = Record("windows", 0, 1, Progress("shop", "requests", 0, START + 60.0, START - 9e6))
    assert parts(stage, [of_requests]) == [[]]
    assert parts(stage, [progress("shop", 6), of_requests]) == [[("shop", 5.0)]]
