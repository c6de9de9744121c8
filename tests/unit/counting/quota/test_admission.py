from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from pipeline.counting.count import Counts, count_samples
from pipeline.counting.quota.limits import PartitionQuota, Quota, Quotas
from pipeline.model import Profile, Record
from pipeline.model.frames import OTHER
from pipeline.model.units import DAY_S
from pipeline.stages.aggregate import AggregateStage
from pipeline.stages.gather.streams import one_stream
from pipeline.stages.quota_report import REPORT_S
from pipeline.storage.arrays import ArrayStore
from pipeline.storage.interface import SeriesQuery
from tests.support.builders import build_profile
from tests.support.open_faults import open_fault

DAY = 19_000 * DAY_S


class Clock:
    def __init__(self) -> None:
        self.now = DAY + 10 * DAY_S

    def __call__(self) -> float:
        return self.now


def stage(store: ArrayStore, quotas: Quotas, clock: Clock | None = None) -> AggregateStage:
    return AggregateStage(
        store=store,
        clock=clock or Clock(),
        streams=one_stream("log"),
        window_s=60.0,
        stack_window_s=300.0,
        quotas=quotas,
    )


def send(one: AggregateStage, *profiles: Profile, first: int = 0) -> list[str]:
    records = [Record("profiles", 0, first + i, profile) for i, profile in enumerate(profiles)]
    return [message.key for message in one.handle(records)]


def names(store: ArrayStore, service: str = "shop", day: int = 0) -> dict[str, int]:
    matrix = store.series(SeriesQuery("gcpu", service, DAY + day * DAY_S, DAY + (day + 1) * DAY_S, DAY_S))
    return {name: int(row.sum()) for name, row in zip(matrix.names, matrix.samples, strict=True)}


def total(store: ArrayStore, service: str = "shop") -> int:
    return int(store.series(SeriesQuery("gcpu", service, DAY, DAY + 3 * DAY_S, DAY_S)).totals.sum())


def at(day: float, stacks: Mapping[str, int], service: str = "shop") -> Profile:
    return build_profile(stacks, service=service, start=DAY + day * DAY_S)


def test_the_heaviest_new_names_of_a_message_come_first() -> None:
    store = ArrayStore()
    send(stage(store, Quotas(Quota(names=3))), at(0, {"main;a": 1, "main;b": 5, "main;c": 3, "main;d": 2}))
    assert names(store) == {"main": 11, "b": 5, "c": 3, OTHER: 3}
    assert total(store) == 11


def test_names_known_the_day_before_are_kept_whatever_else_comes() -> None:
    store = ArrayStore()
    one = stage(store, Quotas(Quota(names=3)))
    send(one, at(0.5, {"main;rare": 1}), at(0.6, {"main": 2}))
    flood = [at(1 + i / 100, {f"lambda{i}": 9, "main": 1}) for i in range(20)]
    send(one, *flood, at(1.5, {"main;rare": 4}), first=2)
    found = names(store, day=1)
    assert found["rare"] == 4
    assert found["main"] == 24
    assert len(found) == 6  # main and rare, three new ones, (other)
    assert found[OTHER] == 17 * 9


def test_what_came_late_for_the_day_before_does_not_change_what_was_decided() -> None:
    """A name is known from the day before only if it came before the day began in the log."""
    quotas = Quotas(Quota(names=1))
    log = [at(1, {"a": 1}), at(0, {"b": 1}), at(1, {"b": 1})]
    whole, again = ArrayStore(), ArrayStore()
    send(stage(whole, quotas), *log)
    for offset, profile in enumerate(log):
        send(stage(again, quotas), profile, first=offset)
    assert names(whole, day=1) == names(again, day=1) == {"a": 1, OTHER: 1}


def test_what_is_beyond_the_quota_of_messages_is_refused_and_counted() -> None:
    store = ArrayStore()
    rows: list[tuple[str, int, int]] = []
    insert = store.insert

    def remember(
        table: Any, columns: Mapping[str, Sequence[Any]], *, token: str = "", asked_at: float | None = None
    ) -> None:
        insert(table, columns, token=token, asked_at=asked_at)
        if table == "totals":
            rows.extend(zip(columns["service"], columns["refused_messages"], columns["refused_samples"]))  # noqa: B905

    store.insert = remember  # type: ignore[method-assign]
    one = stage(store, Quotas(Quota(messages=2), {"calm": Quota(messages=5)}))
    send(one, *(at(0, {"main": 10}) for _ in range(5)), *(at(0, {"main": 1}, "calm") for _ in range(5)))
    send(one, at(0.01, {"main": 7}), first=10)  # the next period
    assert total(store) == 27
    assert total(store, "calm") == 5
    assert sorted(rows) == [("calm", 0, 0), ("shop", 0, 0), ("shop", 3, 30)]


def test_a_message_with_more_stacks_than_the_quota_is_refused_and_a_smaller_one_still_fits() -> None:
    store = ArrayStore()
    one = stage(store, Quotas(Quota(stacks=3)))
    send(one, at(0, {"a": 1, "b": 1, "c": 1, "d": 1}), at(0, {"a": 1, "b": 1}), at(0, {"c": 4, "d": 4}))
    assert names(store) == {"a": 1, "b": 1}
    send(one, at(0, {"e": 1}), first=3)
    assert names(store) == {"a": 1, "b": 1, "e": 1}


def test_another_process_goes_on_with_what_was_used() -> None:
    store = ArrayStore()
    quotas = Quotas(Quota(messages=3))
    send(stage(store, quotas), at(0, {"main": 1}), at(0, {"main": 1}))
    other = stage(store, quotas)
    send(other, *(at(0, {"main": 1}) for _ in range(4)))  # the first two come again
    assert total(store) == 3
    send(stage(store, quotas), at(0, {"main": 1}), first=4)
    assert total(store) == 3
    other.assigned("profiles", [0])  # it had partition 0 once: what it knew may be outdated
    send(other, at(0, {"main": 1}), first=5)
    assert total(store) == 3


def test_what_was_used_on_earlier_days_is_read_again() -> None:
    store = ArrayStore()
    one = stage(store, Quotas(Quota(messages=1)))
    for day in range(5):
        send(one, at(day, {"main": 1}), first=day)
        assert all(len(days) <= 2 for days in one._admission._usage.values())
    send(one, at(0, {"main": 1}), at(4, {"main": 1}), first=5)
    assert total(store) == 3  # days 0 to 2
    assert one._admission.limited["shop"]["refused_messages"] == 2


def test_a_service_too_many_is_refused_and_makes_no_progress() -> None:
    store = ArrayStore()
    one = stage(store, Quotas(partition=PartitionQuota(services=2)))
    admitted = send(one, *(at(0, {"main": 1}, f"s{i}") for i in range(4)))
    assert admitted == ["s0", "s1"]
    assert [total(store, f"s{i}") for i in range(4)] == [1, 1, 0, 0]
    assert total(store, OTHER) == 0
    # A process that knows nothing of it yet comes to the same.
    assert (
        send(stage(store, Quotas(partition=PartitionQuota(services=2))), at(0, {"a": 1}, "s3"), first=4) == []
    )


def test_new_names_of_all_services_together_are_bounded() -> None:
    store = ArrayStore()
    one = stage(store, Quotas(partition=PartitionQuota(names=6)))  # two of them are the services' own
    send(one, at(0, {"a;b;c": 1}, "s1"), at(0, {"d;e;f": 1}, "s2"))
    assert names(store, "s1") == {"a": 1, "b": 1, "c": 1}
    assert sorted(names(store, "s2").items()) == [(OTHER, 1), ("d", 1)]


def test_a_long_name_is_cut() -> None:
    store = ArrayStore()
    one = stage(store, Quotas())
    send(one, at(0, {f"main;{'x' * 5000}": 2}), at(0, {f"main;{'x' * 5001}": 3}))
    found = names(store)
    assert found.pop("main") == 5
    assert sorted(found.values()) == [2, 3]
    assert {len(name) for name in found} == {1000}


def test_the_log_says_once_in_a_while_what_was_beyond_a_quota(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    one = stage(ArrayStore(), Quotas(Quota(messages=2, names=1)), clock)
    with caplog.at_level(logging.WARNING):
        send(one, *(at(0, {"main;x": 10}) for _ in range(5)))
        assert not caplog.messages
        clock.now += REPORT_S
        send(one, at(0, {"main": 10}), first=5)
        send(one, at(0, {"main": 10}), first=6)
    assert caplog.messages == [
        "service=shop beyond its quota: folded_names=2 refused_messages=4 refused_samples=40"
    ]
    assert one.limited["refused_samples"] == 40


@pytest.mark.parametrize(("bound", "most"), [("MAX_ELEMENTS", 13), ("MAX_CHARACTERS", 9)])
def test_a_batch_is_counted_in_parts_that_fit_into_memory(
    monkeypatch: pytest.MonkeyPatch, bound: str, most: int
) -> None:
    monkeypatch.setattr(f"pipeline.stages.aggregate.{bound}", most)
    parts: list[int] = []

    def counting(profiles: Sequence[Profile], *arguments: Any, **options: Any) -> Counts:
        counts = count_samples(profiles, *arguments, **options)
        parts.append(len(profiles))
        return counts

    monkeypatch.setattr("pipeline.stages.aggregate.count_samples", counting)
    store = ArrayStore()
    one = stage(store, Quotas(Quota(messages=8)))
    admitted = send(one, *(at(0, {"a;b": 1, "a": 2}) for _ in range(5)), at(0, {"a;b;c;d;e;f;g": 1}))
    assert parts == [3, 1, 1, 1]  # equal stacks take no more room; those of the last message do
    assert names(store) == {"a": 16, "b": 6, **dict.fromkeys("cdefg", 1)}
    assert admitted == ["shop"]
    send(one, *(at(0, {"a": 1}) for _ in range(4)), first=6)  # what all parts used counts
    assert total(store) == 16 + 2


@open_fault("44.14", "each day of a batch's profiles is read from the store, again for each batch")
def test_profiles_of_many_days_cost_few_calls_of_the_store() -> None:
    calls = {days: _calls_of_a_batch(days) for days in (1, 50)}
    assert calls[50] <= 3 * calls[1]


def _calls_of_a_batch(days: int) -> int:
    """Count the calls of the store that a sender's second batch takes, with profiles of so many days."""
    calls: list[str] = []

    class CountingStore(ArrayStore):
        def __getattribute__(self, name: str) -> Any:
            if not name.startswith("_"):
                calls.append(name)
            return super().__getattribute__(name)

    one = stage(CountingStore(), Quotas())
    profiles = [at(-(number % days), {"main": 1}) for number in range(50)]
    send(one, *profiles)
    calls.clear()
    send(one, *profiles, first=50)
    return len(calls)
