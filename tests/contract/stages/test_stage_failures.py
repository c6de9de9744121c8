"""Stages when the store fails, partitions fall silent, or workers have different configurations."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from pipeline.analysis.detect.schedule import MAX_CATCH_UP
from pipeline.backtest.flow import Flow
from pipeline.messages.scans import decode_progress, decode_scan, encode_scan
from pipeline.model import Outgoing, Profile, Record, Scan
from pipeline.model.errors import ConfigError, StoreUnavailable
from pipeline.settings.config import Settings
from pipeline.stages.abilities import handle_whole
from pipeline.stages.base import Stage
from pipeline.stages.factory import STAGES, StageNeeds, build_stage
from pipeline.stages.gather.streams import one_stream
from pipeline.storage.interface import RowQuery, SeriesQuery, StackQuery, Store, Table
from tests.contract.stages.stores import every_store
from tests.support.builders import build_candidate, build_profile
from tests.support.fleets import LIVE

START = 1_700_000_000.0
SETTINGS = Settings.model_validate({"window": 1, "stack_window": 1, "partition_idle": 30})


class FailingStore:
    """A store whose inserts fail as ordered: before they were applied, or after."""

    def __init__(self, store: Store, failures: Sequence[str]) -> None:
        self._store = store
        self._failures = list(failures)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def insert(
        self,
        table: Table,
        columns: Mapping[str, Sequence[Any]],
        *,
        token: str = "",
        asked_at: float | None = None,
    ) -> None:
        failure = self._failures.pop(0) if self._failures else "none"
        if failure != "before":
            self._store.insert(table, columns, token=token, asked_at=asked_at)
        if failure != "none":
            raise StoreUnavailable(f"{failure} it was applied")


def build(name: str, store: Store | FailingStore, stream: str, now: float = START + 500) -> Any:
    return build_stage(
        name,
        StageNeeds(
            settings=SETTINGS,
            workloads=(LIVE,),
            store=store,
            streams=one_stream(stream),
            clock=lambda: now,
        ),
    )


def repeated(stage: Stage, batch: list[Record]) -> list[Outgoing]:
    for _ in range(20):
        try:
            return stage.handle(batch)
        except StoreUnavailable:
            continue
    raise AssertionError("it never succeeded")


def records(profiles: Sequence[Profile], first: int = 0, partition: int = 0) -> list[Record]:
    return [Record("profiles", partition, first + i, profile) for i, profile in enumerate(profiles)]


def counted(store: Store, service: str) -> tuple[float, float, float]:
    """Samples by the totals, by the series that every stack holds, and by the stacks."""
    matrix = store.series(SeriesQuery("gcpu", service, START, START + 100, 1.0))
    stacks = store.counts(StackQuery(service, (START, START + 50), (START + 50, START + 100)))
    of_main = matrix.samples[matrix.names.index("main")].sum()
    return matrix.totals.sum(), float(of_main), stacks.total_before + stacks.total_after


@every_store
@pytest.mark.parametrize(
    "failures",
    [
        pytest.param(["before"], id="nothing was stored"),
        pytest.param(["after"], id="stored, but the answer was lost"),
        pytest.param(["none", "after"], id="the second table's answer was lost"),
        pytest.param(["none", "before", "after", "none", "after"], id="table after table"),
        pytest.param(["after"] * 7, id="every answer is lost"),
    ],
)
def test_repeating_a_failed_batch_counts_every_sample_once(
    store: Store, service_name: str, failures: list[str]
) -> None:
    stage = build("aggregate", FailingStore(store, failures), service_name)
    profiles = [
        build_profile({"main;work": 3, "main": 2}, service=service_name, start=START + i) for i in range(8)
    ]
    repeated(stage, records(profiles))
    assert counted(store, service_name) == (40, 40, 40)


@pytest.mark.parametrize("failure", ["before", "after"])
@pytest.mark.parametrize("inserts", [3, 5, 7, 10, 12, 16, 20])
def test_of_blocks_that_are_inserted_at_once_one_fails(
    store: Store, service_name: str, inserts: int, failure: str
) -> None:
    """A partition's block, while those of others go on; the batch is repeated, here or by another process."""
    profiles = [build_profile({"main;work": 5}, service=service_name, start=START + i) for i in range(4)]
    batch = [record for partition in range(3) for record in records(profiles, partition=partition)]
    stage = build("aggregate", FailingStore(store, ["none"] * inserts + [failure]), service_name)
    with contextlib.suppress(StoreUnavailable):
        stage.handle(batch)
    for owner in (stage, build("aggregate", store, service_name)):
        owner.handle(batch)
        assert counted(store, service_name) == (60, 60, 60)


@every_store
@pytest.mark.parametrize("tables", [0, 1, 2, 3])
def test_a_crash_between_two_tables_counts_every_sample_once(
    store: Store, service_name: str, tables: int
) -> None:
    profiles = [build_profile({"main;work": 5}, service=service_name, start=START + i) for i in range(6)]
    dying = build("aggregate", FailingStore(store, ["none"] * tables + ["before"]), service_name)
    with contextlib.suppress(StoreUnavailable):
        dying.handle(records(profiles[:4]))
    # What was not acknowledged comes again to another process, cut into other batches.
    successor = build("aggregate", store, service_name)
    successor.handle(records(profiles[:3]))
    successor.handle(records(profiles[3:], first=3))
    assert counted(store, service_name) == (30, 30, 30)


def test_a_partition_that_moved_resumes_where_the_other_worker_stopped(
    store: Store, service_name: str
) -> None:
    profiles = [build_profile({"main": 1}, service=service_name, start=START + i) for i in range(6)]
    one, other = (build("aggregate", store, service_name) for _ in range(2))
    one.handle(records(profiles[:2]))
    other.handle(records(profiles[:4]))
    one.assigned("profiles", [0])
    one.handle(records(profiles))
    assert counted(store, service_name) == (6, 6, 6)


def test_a_log_made_anew_starts_from_nothing(store: Store, service_name: str) -> None:
    profile = [build_profile({"main": 1}, service=service_name, start=START)]
    for log in ("first", "second"):
        build("aggregate", store, f"{service_name}-{log}").handle(records(profile))
    assert counted(store, service_name) == (2, 2, 2)


def test_a_batch_too_large_for_one_insert_is_cut(
    store: Store, service_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline.stages.aggregate.MAX_ROWS", 3)
    profiles = [
        build_profile({f"main;f{i}": 1, "main;g": 1}, service=service_name, start=START + i) for i in range(7)
    ]
    build("aggregate", store, service_name).handle(records(profiles))
    assert counted(store, service_name) == (14, 14, 14)


def test_a_silent_partition_is_released_after_a_while(store: Store, service_name: str) -> None:
    now = [START]
    flow = Flow(store, [LIVE], settings=SETTINGS, clock=lambda: now[0], stream=service_name)
    stage = flow.stages["aggregate"]

    def send(second: int, partition: int) -> int:
        profile = build_profile({"main": 9}, service=service_name, start=START + second)
        progress = stage.handle([Record("profiles", partition, second, profile)])
        flow.send("windows", [message.value for message in progress])
        return len(flow.scans("change-points"))

    assert send(0, partition=0) == 0
    assert send(30, partition=1) == 0  # partition 0 has come to second 1 only
    now[0] += SETTINGS.partition_idle_s + 1
    assert send(31, partition=1) == 6


def test_scans_survive_a_crash_before_they_were_settled(store: Store, service_name: str) -> None:
    aggregate = build("aggregate", store, service_name)
    profiles = [build_profile({"main": 9}, service=service_name, start=START + i) for i in range(20)]
    windows = aggregate.handle(records(profiles))
    detect = build("detect", store, service_name)
    progress = [Record("windows", 0, 0, detect.inputs["windows"](message.value)) for message in windows]
    lost = detect.handle(progress)  # and then the process dies
    again = build("detect", store, service_name)
    (first, *others) = handle_whole(again, progress)
    assert [first.value] == [message.value for message in lost]
    assert others
    assert build("detect", store, service_name).handle(progress) == []


@every_store
def test_settling_is_repeated_when_the_store_fails(store: Store, service_name: str) -> None:
    aggregate = build("aggregate", store, service_name)
    windows = aggregate.handle(
        records([build_profile({"main": 9}, service=service_name, start=START, end=START + 8)])
    )
    detect = build("detect", FailingStore(store, ["before"]), service_name)
    progress = [Record("windows", 0, 0, detect.inputs["windows"](message.value)) for message in windows]
    detect.handle(progress)
    with pytest.raises(StoreUnavailable):
        detect.settled()
    detect.settled()
    assert len(store.rows(RowQuery("scans", service_name, START, START + 100))) == 1


def test_a_dead_clock_does_not_ask_for_every_scan_since(store: Store, service_name: str) -> None:
    aggregate = build("aggregate", store, service_name)
    old = build_profile({"main": 1}, service=service_name, start=START - 20 * 365 * 86_400)
    windows = aggregate.handle(records([old, build_profile({"main": 1}, service=service_name, start=START)]))
    detect = build("detect", store, service_name)
    progress = [Record("windows", 0, 0, detect.inputs["windows"](message.value)) for message in windows]
    scans = [decode_scan(message.value) for message in handle_whole(detect, progress)]
    assert detect.limited["skipped_scans"] > MAX_CATCH_UP
    assert scans[-1].end == START - 5 + 5 * ((1 - LIVE.wait_s) // 5 + 1)
    old_s = START - 20 * 365 * 86_400
    looks_s = LIVE.analysis_s * 2 + LIVE.extended_s
    assert len(scans) <= 1 + looks_s / LIVE.rerun_interval_s, "where there are no data none is made"
    assert scans[:-1]
    assert all(old_s < scan.end < old_s + 2 * looks_s for scan in scans[:-1])


def test_a_clock_that_is_ahead_does_not_move_the_watermark(store: Store, service_name: str) -> None:
    stage = build("aggregate", store, service_name, now=START)
    ahead = build_profile({"main": 1}, service=service_name, start=START + 1800)
    (message,) = stage.handle(records([ahead]))
    assert decode_progress(message.value).watermark == START


def a_scan(service: str, workload: str) -> Scan:
    candidate = build_candidate(change_time=START + 40)
    return Scan(service, workload, START, START + 30, START + 45, START + 50, 7, (candidate,))


def test_a_workload_that_a_worker_does_not_know_is_reported_in_the_ledger(
    store: Store, service_name: str
) -> None:
    stage = build("filter", store, service_name)
    (message,) = stage.handle([Record("change-points", 0, 0, a_scan(service_name, "unheard-of"))])
    scan = decode_scan(message.value)
    assert scan.candidates == ()
    assert [(line.decision.step, "unheard-of" in line.decision.subjects[0]) for line in scan.dropped] == [
        ("workload", True)
    ]


def test_a_series_that_has_vanished_is_reported_in_the_ledger(store: Store, service_name: str) -> None:
    stage = build("filter", store, service_name)
    (message,) = stage.handle([Record("change-points", 0, 0, a_scan(service_name, "live"))])
    (line,) = decode_scan(message.value).dropped
    assert line.decision.code == "no_series"


@pytest.mark.parametrize("name", ["filter", "dedup", "rootcause"])
def test_a_scan_without_candidates_passes_through(store: Store, service_name: str, name: str) -> None:
    stage = build(name, store, service_name)
    scan = Scan(service_name, "live", START, START + 30, START + 45, START + 50, 7)
    (topic,) = stage.inputs
    outgoing = stage.handle([Record(topic, 0, 0, scan)])
    assert [message.value for message in outgoing] == ([] if name == "rootcause" else [encode_scan(scan)])


def test_every_stage_has_its_name_and_an_input_that_only_windows_share() -> None:
    stages = [build(name, FailingStore(None, []), "log") for name in STAGES]  # type: ignore[arg-type]
    assert [stage.name for stage in stages] == list(STAGES)
    readers = Counter(topic for stage in stages for topic in stage.inputs)
    assert [topic for topic, many in readers.items() if many > 1] == ["windows"]


def test_an_unknown_stage_is_refused() -> None:
    with pytest.raises(ConfigError, match="stages are aggregate"):
        build("aggregat", FailingStore(None, []), "log")  # type: ignore[arg-type]
