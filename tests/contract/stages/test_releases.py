"""New releases through the stage and on through the chain: looks, restarts, ledger, one event with gCPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pipeline.backtest.flow import Flow
from pipeline.messages.measurements import encode_metric_points
from pipeline.messages.requests import encode_requests
from pipeline.messages.scans import scan_messages
from pipeline.model import FloatArray, MetricPoints, RequestCounts, Scan, TypeCounts
from pipeline.releases.requests import LooksMade
from pipeline.settings.config import Settings
from pipeline.settings.workloads import RELEASE_COSTS, Workload
from pipeline.stages.abilities import Counted
from pipeline.stages.gather.rollouts import gather_looks, gather_releases
from pipeline.storage.interface import Answer, CountQuery, RequestQuery, RowQuery, Store
from pipeline.storage.view import StoreView
from tests.contract.stages.stores import every_store
from tests.support.builders import build_candidate

START = 1_700_000_010.0
PERIOD_S = 30.0
OLD = 120
TYPES = ("GET /a", "GET /b", "GET /c")
COSTS = np.array([0.004, 0.002, 0.001])
STAGES = ("aggregate", "releases", "dedup", "rootcause")
EVER = (0.0, 4e9)
BEGUN = START + OLD * PERIOD_S

GCPU = Workload.model_validate(
    {
        **{"name": "gcpu-live", "resolution": "60s", "rerun_interval": "300s", "historical": "3000s"},
        **{"analysis": "1200s", "threshold": {"absolute": 0.001}},
    }
)


def messages(service: str, new: int, share: float = 1.0) -> list[bytes]:
    """Requests of the old release and of the new one, period by period; the new one gets a share of them."""
    found = []
    for period, row in enumerate(counts(OLD + new).tolist()):
        for release, many in split(row, share if period >= OLD else 0.0).items():
            found.append(message(service, release, period, many))
    return found


def message(service: str, release: str, period: int, many: Sequence[int]) -> bytes:
    types = tuple(TypeCounts(name, n) for name, n in zip(TYPES, many, strict=True))
    start = START + PERIOD_S * period
    return encode_requests(RequestCounts(service, f"of {release}", start, 30.0, types, release))


def split(row: Sequence[float], share: float) -> dict[str, list[int]]:
    own = [int(share * many) for many in row]
    rest = [int(many) - n for many, n in zip(row, own, strict=True)]
    return {name: many for name, many in (("v1", rest), ("v2", own)) if any(many)}


def counts(periods: int) -> FloatArray:
    rng = np.random.default_rng(0)
    busy = np.exp(0.3 * rng.standard_normal((periods, len(TYPES))))
    return rng.poisson(busy * [100, 150, 200]).astype(np.float64)


def cpu(
    service: str, new: int, rise: float, share: float = 1.0, name: str = "cpu", missing: int = 0
) -> bytes:
    """CPU of all hosts; requests of the second type cost more in the new release, whose first points miss."""
    load = counts(OLD + new)
    extra = np.where(np.arange(OLD + new) < OLD, 0.0, share * rise) * load[:, 1] * COSTS[1]
    noise = 1.0 + 0.01 * np.random.default_rng(1).standard_normal(OLD + new)
    times = np.asarray(START + PERIOD_S * (np.arange(OLD + new) + 0.5), np.float64)
    kept = np.r_[0:OLD, OLD + missing : OLD + new]
    points = MetricPoints(service, name, times[kept], ((0.1 + load @ COSTS + extra) * noise)[kept])
    return encode_metric_points(points)


class Releases:
    """Hands messages to the stages, in batches, as a worker would."""

    def __init__(self, store: Store, service: str) -> None:
        self.store = store
        self.service = service
        self.flow = Flow(
            store,
            [GCPU],
            settings=Settings(),
            clock=lambda: START + 1e6,
            stream=service,
            stages=STAGES,
        )

    def run(self, requests: Sequence[bytes], *metrics: bytes, restarting: bool = False) -> None:
        self.flow.send("metrics", metrics)
        for first in range(0, len(requests), 10):
            if restarting:
                self.flow.restart("releases")
            self.flow.send("requests", requests[first : first + 10])

    @property
    def looks(self) -> list[float]:
        rows = self.store.rows(RowQuery("scans", self.service, *EVER, equal={"workload": RELEASE_COSTS.name}))
        return [float(row["time"]) for row in rows]

    @property
    def events(self) -> list[dict[str, Any]]:
        return self.flow.events()

    @property
    def ledger(self) -> list[tuple[str, str, str]]:
        rows = self.store.rows(RowQuery("ledger", self.service, *EVER))
        return [(row["metric"], row["step"], row["code"]) for row in rows]


@pytest.fixture
def subject(store: Store, service_name: str) -> Releases:
    return Releases(store, service_name)


@pytest.mark.parametrize("restarting", [False, True])
@every_store
def test_a_release_that_costs_more_is_reported_once(subject: Releases, restarting: bool) -> None:
    new = 70
    subject.run(messages(subject.service, new), cpu(subject.service, new, 0.3), restarting=restarting)
    (event,) = subject.events
    assert (event["type"], event["data"]["workload"]) == ("smidgen.regression.detected", "release-costs")
    assert [each["type"] for each in event["data"]["requests"]] == ["GET /b"]
    assert subject.looks == [BEGUN + 30 * PERIOD_S]  # after a look that finds something there is none
    assert subject.ledger == [("cpu", "", "")]
    # What comes again changes nothing.
    windows = [message.value for message in subject.flow.topics["windows"]]
    subject.flow.restart("releases")
    subject.flow.send("windows", windows)
    assert subject.events == [event]


def test_a_release_side_by_side_is_held_against_the_other(subject: Releases) -> None:
    new = 70
    subject.run(messages(subject.service, new, share=0.4), cpu(subject.service, new, 0.6, share=0.4))
    (event,) = subject.events
    assert [each["type"] for each in event["data"]["requests"]] == ["GET /b"]
    assert event["data"]["relative"] == pytest.approx(0.4 * 0.6 * 0.3, rel=0.3)  # of all that runs


def test_a_release_that_costs_the_same_is_looked_at_again(subject: Releases) -> None:
    new = 130
    subject.run(messages(subject.service, new), cpu(subject.service, new, 0.0))
    assert subject.events == []
    assert subject.looks == [BEGUN + PERIOD_S * many for many in (30, 60, 120)]
    assert subject.ledger == []
    stage = subject.flow.stages["releases"]
    assert isinstance(stage, Counted)
    outcomes = {sample[1]["outcome"]: sample[2] for sample in stage.samples()}
    assert outcomes == {"slower": 0, "no change": 3, "not judged": 0}


@every_store
def test_what_cannot_be_judged_is_in_the_ledger(subject: Releases) -> None:
    new = 40
    subject.run(messages(subject.service, new), cpu(subject.service, new, 0.3, name="latency_p99"))
    assert subject.events == []
    assert subject.ledger == [("cpu", "release_costs", "no_metric")]
    (row,) = subject.store.rows(RowQuery("ledger", subject.service, *EVER))
    assert row["reason"].startswith("release v2 not judged against v1: the service sends no metric of CPU")


class Counting(StoreView):
    """Counts how often requests are read, of all types together and by type."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.together, self.by_type = 0, 0

    def counts(self, query: CountQuery[Answer]) -> Answer:
        if isinstance(query, RequestQuery):
            self.together += query.releases is None
            self.by_type += query.releases is not None
        return super().counts(query)


@every_store
def test_types_are_read_for_looks_alone(store: Store, service_name: str) -> None:
    reads = Counting(store)
    subject = Releases(reads, service_name)
    subject.run(messages(service_name, 130), cpu(service_name, 130, 0.0))
    assert len(subject.looks) == 3
    assert reads.by_type == 3
    assert reads.together <= 20  # of 250 periods


def test_a_look_that_compares_nothing_takes_no_share_of_the_level(subject: Releases) -> None:
    subject.run(messages(subject.service, 70), cpu(subject.service, 70, 0.0, missing=35))
    rows = subject.store.rows(
        RowQuery("scans", subject.service, *EVER, equal={"workload": RELEASE_COSTS.name})
    )
    assert [row["time"] for row in rows] == [BEGUN + PERIOD_S * many for many in (30, 60)]
    assert [row["series"] for row in rows] == [0, 1]
    succession = gather_releases(subject.store, subject.service, BEGUN + PERIOD_S * 70).succession
    assert succession is not None
    made = gather_looks(subject.store, subject.service, succession)
    assert made == LooksMade(rows[1]["time"], many=1)


def test_a_stray_request_of_a_third_release_ends_no_looks(subject: Releases) -> None:
    sent = messages(subject.service, 70)
    stray = message(subject.service, "v3", OLD + 10, [9, 0, 0])
    subject.run([*sent[: OLD + 10], stray, *sent[OLD + 10 :]], cpu(subject.service, 70, 0.3))
    (event,) = subject.events
    assert [each["type"] for each in event["data"]["requests"]] == ["GET /b"]


def test_looks_at_the_release_before_count_for_no_other(subject: Releases) -> None:
    """The second look at v2 comes when v3 has begun, and is not the new one yet."""
    new = 100
    rows = counts(OLD + new).astype(int).tolist()
    third = {*range(58, 68), *range(70, new)}
    releases = ["v1" if each < 0 else "v3" if each in third else "v2" for each in range(-OLD, new)]
    sent = [message(subject.service, name, each, rows[each]) for each, name in enumerate(releases)]
    subject.run(sent, cpu(subject.service, new, 0.0))
    assert subject.looks == [BEGUN + PERIOD_S * many for many in (30, 70, 90)]
    succession = gather_releases(subject.store, subject.service, BEGUN + PERIOD_S * new).succession
    assert succession is not None
    assert (succession.new, succession.begun) == ("v3", BEGUN + PERIOD_S * 58)
    made = gather_looks(subject.store, subject.service, succession)
    assert made == LooksMade(BEGUN + PERIOD_S * 90, many=1)


def gcpu_scan(service: str, end: float) -> Scan:
    """A scan that found a subroutine which rose when the new release came."""
    risen = build_candidate("shop.b", before=0.1, after=0.15, change_time=BEGUN)
    risen = replace(risen, change_time_interval=(BEGUN - 60.0, BEGUN + 60.0))
    start = end - GCPU.span_s
    return Scan(service, GCPU.name, start, end - GCPU.analysis_s, end, end, series=9, candidates=(risen,))


@pytest.mark.parametrize("gcpu_first", [True, False])
def test_what_gcpu_saw_too_is_one_event(subject: Releases, gcpu_first: bool) -> None:
    service, new = subject.service, 50

    def scan(end: float) -> None:
        subject.flow.forward(scan_messages("filtered", gcpu_scan(service, end)))

    if gcpu_first:
        scan(BEGUN + 600.0)
    subject.run(messages(service, new), cpu(service, new, 0.3))
    if not gcpu_first:
        scan(BEGUN + 1200.0)
    detected, updated = subject.events
    assert detected["type"] == "smidgen.regression.detected"
    assert updated["type"] == "smidgen.regression.updated"
    assert updated["data"]["regression"] == detected["id"]
    metrics = ["shop.b", "cpu"] if gcpu_first else ["cpu", "shop.b"]
    assert [detected["subject"], updated["data"]["joined"][0]["metric"]] == metrics
