"""Quotas lose nothing silently, and decide the same however the log is cut, crashed upon and repeated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.counting.quota.limits import PartitionQuota, Quota, Quotas
from pipeline.model import MetricPoints, Profile, Record
from pipeline.model.errors import StoreUnavailable
from pipeline.model.frames import OTHER
from pipeline.model.units import DAY_S
from pipeline.stages.aggregate import AggregateStage
from pipeline.stages.gather.streams import one_stream
from pipeline.storage.arrays import ArrayStore
from pipeline.storage.interface import SeriesQuery, StackQuery, Table, UsageQuery
from tests.support.builders import build_profile

DAY = 19_000 * DAY_S
SPAN_S = 3 * DAY_S
QUOTAS = Quotas(
    Quota(names=3, messages=2, stacks=9), {"generous": Quota()}, PartitionQuota(services=3, names=8)
)
SERVICES = ("shop", "cart", "generous", "late")

STACKS = st.dictionaries(
    st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=4).map(";".join),
    st.integers(0, 9),
    min_size=1,
    max_size=5,
)
PROFILES = st.builds(
    lambda stacks, service, day, minute, marks, id: build_profile(
        stacks,
        service=service,
        start=DAY + day * DAY_S + minute * 60.0,
        annotations=[(next(iter(stacks)).split(";")[0], "endpoint", mark) for mark in marks],
        id=id,
    ),
    STACKS,
    st.sampled_from(SERVICES),
    st.integers(0, 1),
    st.integers(0, 6),
    st.lists(st.sampled_from("xyz"), max_size=1),
    st.sampled_from(["", "", "", "1", "2"]),
)
LOG = st.lists(st.tuples(st.integers(0, 1), PROFILES), min_size=1, max_size=30)  # (partition, profile)
CUTS = st.lists(st.integers(1, 6), max_size=30)


class Dying(ArrayStore):
    """A store whose inserts fail, once they were applied or before, when their turn comes."""

    def __init__(self) -> None:
        super().__init__()
        self.turns: dict[int, str] = {}
        self.inserts = 0

    def insert(
        self,
        table: Table,
        columns: Mapping[str, Sequence[Any]],
        *,
        token: str = "",
        asked_at: float | None = None,
    ) -> None:
        self.inserts += 1
        fault = self.turns.get(self.inserts)
        if fault != "before":
            super().insert(table, columns, token=token, asked_at=asked_at)
        if fault:
            raise StoreUnavailable(fault)


def stage(store: ArrayStore, quotas: Quotas = QUOTAS) -> AggregateStage:
    return AggregateStage(
        store=store,
        clock=lambda: 1e10,
        streams=one_stream("log"),
        window_s=60.0,
        stack_window_s=300.0,
        quotas=quotas,
    )


def numbered(log: Sequence[tuple[int, Profile]]) -> list[Record]:
    ends: Counter[int] = Counter()
    records = []
    for partition, profile in log:
        records.append(Record("profiles", partition, ends[partition], profile))
        ends[partition] += 1
    return records


def batches(records: Sequence[Record], cuts: Sequence[int]) -> list[list[Record]]:
    found, position = [], 0
    for cut in [*cuts, len(records)]:
        found.append(list(records[position : position + cut]))
        position += cut
    return [batch for batch in found if batch]


def contents(store: ArrayStore) -> dict[Any, Any]:
    """Everything that was counted, by service and window, and what was refused."""
    found: dict[Any, Any] = {}
    for service in (*SERVICES, OTHER):
        matrix = store.series(SeriesQuery("gcpu", service, DAY, DAY + SPAN_S, 60.0))
        found |= {(service, "total", j): n for j, n in enumerate(matrix.totals) if n}
        for kind, name, row in zip(matrix.kinds, matrix.names, matrix.samples, strict=True):
            found |= {(service, kind, name, j): n for j, n in enumerate(row) if n}
        stacks = store.counts(StackQuery(service, (DAY, DAY + DAY_S), (DAY + DAY_S, DAY + SPAN_S)))
        for stack, before, after in zip(stacks.stacks, stacks.before, stacks.after, strict=True):
            found[service, "stack", stack] = (before, after)
        for partition in (0, 1):
            used = store.counts(
                UsageQuery("log", "profiles", partition, [service], (DAY, DAY + SPAN_S), 300.0)
            )
            found |= {(partition, *key): value for key, value in used.items()}
    return found


class Recording(ArrayStore):
    """A store that remembers the rows of totals as they were inserted."""

    def __init__(self) -> None:
        super().__init__()
        self.refused: Counter[str] = Counter()
        self.refused_samples: Counter[str] = Counter()
        self.points = 0

    def insert(
        self,
        table: Table,
        columns: Mapping[str, Sequence[Any]],
        *,
        token: str = "",
        asked_at: float | None = None,
    ) -> None:
        super().insert(table, columns, token=token, asked_at=asked_at)
        if table == "metrics":
            self.points += len(columns["value"])
        if table == "totals":
            for i, service in enumerate(columns["service"]):
                self.refused[service] += columns["refused_messages"][i]
                self.refused_samples[service] += columns["refused_samples"][i]


def without_ids(log: list[tuple[int, Profile]]) -> list[tuple[int, Profile]]:
    return [(partition, replace(profile, id="")) for partition, profile in log]


@given(LOG, st.lists(st.integers(0, 40), max_size=9), CUTS)
@settings(deadline=None)
def test_what_is_published_again_counts_once(
    log: list[tuple[int, Profile]], copies: list[int], cuts: list[int]
) -> None:
    """Copies stand anywhere behind what they copy, in any batch."""
    named = [(partition, replace(profile, id=f"m{i}")) for i, (partition, profile) in enumerate(log)]
    order = list(range(len(named)))
    for position in copies:
        if position < len(named):
            order.insert(order.index(position) + 1 + (position * 7) % 5, position)
    again = [named[position] for position in order]
    once, twice = ArrayStore(), ArrayStore()
    for store, records, cut in ((once, numbered(named), []), (twice, numbered(again), cuts)):
        for batch in batches(records, cut):
            AggregateStage(
                store=store,
                clock=lambda: 1e10,
                streams=one_stream("log"),
                window_s=60.0,
                stack_window_s=300.0,
            ).handle(batch)
    assert contents(twice) == contents(once)


def test_a_replayed_message_is_no_copy_of_itself_but_of_what_came_meanwhile() -> None:
    """A dead letter that was also published anew after the fix: one of the two counts, in any order."""
    profile = build_profile({"a": 3}, service="generous", start=DAY, id="1")
    sent = Record("profiles", 0, 4, profile)
    before, after = (Record("profiles", 0, offset, profile, f"{'r' * 32}/0") for offset in (2, 6))
    orders: list[list[Record]] = [
        [before, sent],
        [sent, after],
        [before, after],
        [before, sent, after],
        [after],
    ]
    for order in orders:
        store, worker = ArrayStore(), None
        for record in order:
            worker = worker or stage(store)
            worker.handle([record])
            worker.handle([record])
        stage(store).handle(order[-1:])
        assert store.series(SeriesQuery("gcpu", "generous", DAY, DAY + DAY_S, 60.0)).totals.sum() == 3


def test_copies_of_a_replayed_message_without_an_id_of_its_own_count_once() -> None:
    """Also after a restart; what two replays sent is not the same, though it looks so."""
    first, second = (f"{digit * 32}/7" for digit in "ab")
    order = [first, first, second, "", first, ""]
    profile = build_profile({"a": 3}, service="generous", start=DAY)
    points = MetricPoints("generous", "latency", np.array([DAY + 1.0]), np.array([4.0]))
    for topic, payload in (("profiles", profile), ("metrics", points)):
        store = Recording()
        for offset, identity in enumerate(order):
            stage(store).handle([Record(topic, 0, offset, payload, identity)])
        batch = [Record(topic, 0, 9 + n, payload, identity) for n, identity in enumerate(["", first, second])]
        worker = stage(store)
        worker.handle(batch)
        worker.handle(batch)
        if topic == "profiles":
            assert store.series(SeriesQuery("gcpu", "generous", DAY, DAY + DAY_S, 60.0)).totals.sum() == 5 * 3
        else:
            assert store.points == 5


@given(LOG.map(without_ids), CUTS)
@settings(deadline=None)
def test_every_sample_is_counted_or_refused(log: list[tuple[int, Profile]], cuts: list[int]) -> None:
    store = Recording()
    for batch in batches(numbered(log), cuts):
        stage(store).handle(batch)
    sent = sum(int(profile.counts.sum()) for _, profile in log)
    counted = stacked = 0.0
    for service in SERVICES:
        counted += store.series(SeriesQuery("gcpu", service, DAY, DAY + SPAN_S, 60.0)).totals.sum()
        stacks = store.counts(StackQuery(service, (DAY, DAY + DAY_S), (DAY + DAY_S, DAY + SPAN_S)))
        stacked += stacks.total_before + stacks.total_after
    assert counted + sum(store.refused_samples.values()) == sent
    assert stacked == counted


@given(LOG.map(lambda log: [(p, f) for p, f in log if f.service == "generous"]))
@settings(deadline=None)
def test_a_service_within_its_quota_is_not_touched(log: list[tuple[int, Profile]]) -> None:
    store, free = ArrayStore(), ArrayStore()
    unlimited = AggregateStage(
        store=free, clock=lambda: 1e10, streams=one_stream("log"), window_s=60.0, stack_window_s=300.0
    )
    for batch in batches(numbered(log), []):
        AggregateStage(
            store=store,
            clock=lambda: 1e10,
            streams=one_stream("log"),
            window_s=60.0,
            stack_window_s=300.0,
            quotas=Quotas(QUOTAS.default, QUOTAS.services),
        ).handle(batch)
        unlimited.handle(batch)
    assert contents(store) == contents(free)


@given(LOG.map(without_ids).map(lambda log: [(p, f) for p, f in log if f.service == "shop"]), CUTS)
@settings(deadline=None)
def test_names_are_counted_to_the_unit_or_folded(log: list[tuple[int, Profile]], cuts: list[int]) -> None:
    """In one partition a name is counted with all of its samples or, on a day, with none."""
    store = Recording()
    one = stage(store, Quotas(Quota(names=3)))
    records = [record for record in numbered(log) if record.partition == 0]
    for batch in batches(records, cuts):
        one.handle(batch)
    for day in (0, 1):
        truth: Counter[str] = Counter()
        holding: dict[str, list[tuple[set[str], int]]] = {}
        for record in records:
            profile: Profile = record.payload
            if profile.start // DAY_S != DAY / DAY_S + day:
                continue
            marked = {a.frame: f"endpoint={a.value}" for a in profile.annotations}
            for i, samples in enumerate(profile.counts.tolist()):
                flat = profile.stack_frames[profile.stack_starts[i] : profile.stack_starts[i + 1]].tolist()
                labels = {profile.frames[f] for f in flat} | {marked[f] for f in flat if f in marked}
                truth.update(dict.fromkeys(labels, samples))
                holding.setdefault("all", []).append((labels, samples))
        matrix = store.series(SeriesQuery("gcpu", "shop", DAY + day * DAY_S, DAY + (day + 1) * DAY_S, DAY_S))
        counted = {
            name if kind == "subroutine" else f"{kind}={name}": int(row.sum())
            for kind, name, row in zip(matrix.kinds, matrix.names, matrix.samples, strict=True)
        }
        kept = set(counted) - {OTHER, f"endpoint={OTHER}"}
        assert len(kept) <= 2 * 3
        assert {name: counted[name] for name in kept} == {name: truth[name] for name in kept}
        folded = {name for name, n in truth.items() if n} - kept
        subroutines = {name for name in folded if "=" not in name}
        assert counted.get(OTHER, 0) == sum(n for labels, n in holding.get("all", []) if labels & subroutines)


@given(LOG, CUTS, CUTS, st.dictionaries(st.integers(1, 40), st.sampled_from(["before", "after"]), max_size=6))
@settings(deadline=None)
def test_cuts_crashes_and_replays_change_nothing(
    log: list[tuple[int, Profile]], cuts: list[int], others: list[int], faults: dict[int, str]
) -> None:
    assert_read_again_the_same(log, cuts, others, faults)


def assert_read_again_the_same(
    log: list[tuple[int, Profile]], cuts: list[int], others: list[int], faults: dict[int, str]
) -> None:
    """Check that a log that is worked through with faults, and once more, is counted as without."""
    records = numbered(log)
    undisturbed = ArrayStore()
    one = stage(undisturbed)
    for batch in batches(records, [1] * len(records)):
        one.handle(batch)

    disturbed = Dying()
    disturbed.turns = faults
    worker = stage(disturbed)
    waiting = batches(records, cuts)
    crashes = 0
    while waiting:
        try:
            worker.handle(waiting[0])
        except StoreUnavailable:
            crashes += 1
            if crashes % 2:  # the same process repeats it ...
                continue
            worker = stage(disturbed)  # ... or another begins further back, with other batches
            left = [record for batch in waiting for record in batch]
            behind = records[max(0, len(records) - len(left) - 3) :]
            waiting = batches(behind, others)
            continue
        waiting.pop(0)
    for batch in batches(records, others):  # everything once more, by a process that knows nothing
        stage(disturbed).handle(batch)
    assert contents(disturbed) == contents(undisturbed)


def test_a_name_refused_at_first_stays_refused_there_when_it_is_read_again() -> None:
    """There is no room for new names any more, but for yesterday's: what was new becomes that in between."""

    def profile(service: str, day: int, names: str) -> tuple[int, Profile]:
        return 0, build_profile(dict.fromkeys(names, 1), service=service, start=DAY + day * DAY_S)

    full = [profile("generous", 1, "abcdef")]  # with the names of two services: all eight
    log = [*full, profile("cart", 1, "ab"), profile("cart", 0, "ab"), profile("cart", 1, "a")]
    for turn in range(1, 8):
        for fault in ("before", "after"):
            assert_read_again_the_same(log, [], [], {turn: fault})
            assert_read_again_the_same(log, [], [1, 1, 1, 1], {turn: fault, turn + 1: fault})


@given(st.lists(st.tuples(st.sampled_from("abcdefgh"), st.integers(1, 3)), min_size=1, max_size=20), CUTS)
@settings(deadline=None)
def test_points_of_metrics_beyond_the_quota_are_counted(sent: list[tuple[str, int]], cuts: list[int]) -> None:
    records = [
        Record(
            "metrics",
            0,
            offset,
            MetricPoints("shop", metric, DAY + np.arange(points, dtype=np.float64), np.ones(points)),
        )
        for offset, (metric, points) in enumerate(sent)
    ]
    kept = list(dict.fromkeys(metric for metric, _ in sent))[:3]
    stored: Counter[str] = Counter()

    class Points(ArrayStore):
        def insert(
            self,
            table: Table,
            columns: Mapping[str, Sequence[Any]],
            *,
            token: str = "",
            asked_at: float | None = None,
        ) -> None:
            super().insert(table, columns, token=token, asked_at=asked_at)
            if table == "metrics":
                for metric, value in zip(columns["metric"], columns["value"], strict=True):
                    stored[metric] += int(value)

    one = stage(Points())
    for batch in batches(records, cuts):
        one.handle(batch)
    wanted: Counter[str] = Counter()
    for metric, points in sent:
        wanted[metric if metric in kept else "smidgen.refused_points"] += points
    assert stored == wanted
