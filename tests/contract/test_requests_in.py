"""Requests by type from messages to the store: added up over hosts, each message exactly once."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace

import clickhouse_connect
import numpy as np
import pytest

from pipeline.messages.requests import decode_requests, encode_requests
from pipeline.model import Record, RequestCounts, TypeCounts
from pipeline.stages.aggregate import AggregateStage
from pipeline.stages.gather.streams import one_stream
from pipeline.storage.interface import RequestQuery, Store
from tests.contract.rows import MINUTE, NASTY, T0, requests
from tests.contract.test_takeover import Frozen

HOSTS = ("a", "b")
PERIODS = 12


def messages(service: str) -> list[RequestCounts]:
    """Two hosts by turns, of which the second has the new release from half of the time on."""
    return [
        RequestCounts(
            service=service,
            host=host,
            start=T0 + 30 * period,
            period_s=30.0,
            types=(
                TypeCounts("GET /", 10, (0, 9, 0, 0, 1), ((-96, 7), (-95, 3))),
                TypeCounts("GET /cart/:id", period),
            ),
            release="v2" if host == "b" and period >= PERIODS / 2 else "v1",
        )
        for period in range(PERIODS)
        for host in HOSTS
    ]


def records(service: str, first: int = 0, end: int = 2 * PERIODS) -> list[Record]:
    return [
        Record("requests", 0, offset, decode_requests(encode_requests(each)))
        for offset, each in enumerate(messages(service))
    ][first:end]


def stage(store: Store, stream: str) -> AggregateStage:
    return AggregateStage(
        store=store, clock=lambda: T0 + 9000, streams=one_stream(stream), window_s=60.0, stack_window_s=300.0
    )


def assert_counted(store: Store, service: str) -> None:
    half = PERIODS // 2
    old = np.where(np.arange(PERIODS) < half, 2.0, 1.0)
    new = np.where(np.arange(PERIODS) < half, 0.0, 1.0)
    found = store.counts(RequestQuery(service, T0, T0 + 30 * PERIODS, ("v1", "v2")))
    assert found.releases == ("v1", "v1", "v2", "v2")
    assert found.types == ("GET /", "GET /cart/:id") * 2
    assert (found.width_s, found.starts.tolist()) == (30.0, [T0 + 30 * period for period in range(PERIODS)])
    carts = np.arange(PERIODS)
    assert found.requests.tolist() == [row.tolist() for row in (10 * old, carts * old, 10 * new, carts * new)]
    logs = (7 * -95.5 + 3 * -94.5) * np.log(2) / 32
    for sums, each in ((found.timed, 10.0), (found.log_times, logs)):
        assert sums == pytest.approx(np.array([each * old, 0 * old, each * new, 0 * new]))
    together = store.counts(RequestQuery(service, T0, T0 + 30 * PERIODS))
    assert (together.releases, together.types) == (("v1", "v2"), ("", ""))
    assert together.requests.tolist() == [((10 + carts) * old).tolist(), ((10 + carts) * new).tolist()]
    assert store.counts(RequestQuery(service, T0, T0 + 30 * PERIODS, ("v2",))).types == (
        "GET /",
        "GET /cart/:id",
    )


def test_periods_of_other_lengths_are_added_up_by_the_longest(store: Store, service_name: str) -> None:
    rows = requests(service_name, [("v1", "a", 30.0 * at, 1) for at in (0, 1, 2, 3, 8)])
    store.insert("requests", {**rows, "width_s": [30.0, 30.0, 60.0, 30.0, 30.0]})
    found = store.counts(RequestQuery(service_name, T0, T0 + 600))
    assert found.width_s == 60.0
    assert found.starts.tolist() == [T0, T0 + 60, T0 + 240]
    assert found.requests.tolist() == [[2.0, 2.0, 1.0]]


@pytest.mark.parametrize(
    ("step_s", "widths", "expected", "starts"),
    [
        (120.0, (30.0, 60.0), [2.0, 3.0, 1.0], [0.0, 120.0, 480.0]),
        (120.0, (30.0, 240.0), [5.0, 1.0], [0.0, 480.0]),
        (30.0, (30.0, 60.0), [2.0, 1.0, 2.0, 1.0], [0.0, 120.0, 180.0, 480.0]),
    ],
)
def test_short_periods_are_added_up_by_a_step(
    store: Store,
    service_name: str,
    step_s: float,
    widths: tuple[float, float],
    expected: list[float],
    starts: list[float],
) -> None:
    began = T0 - T0 % 240
    rows = [("v1", "a", began - T0 + at, 1) for at in (0.0, 30.0, 120.0, 180.0, 210.0, 480.0)]
    some = requests(service_name, rows)
    store.insert("requests", {**some, "width_s": [widths[0]] * 5 + [widths[1]]})
    for releases in (None, ("v1",)):
        found = store.counts(RequestQuery(service_name, began, began + 600, releases, step_s=step_s))
        assert found.width_s == max(step_s, *widths)
        assert (found.starts - began).tolist() == starts
        assert found.requests.tolist() == [expected]


def test_thirds_of_a_second_are_in_their_period(store: Store, service_name: str) -> None:
    width_s = 100.0 / 3.0
    first = round(T0 / width_s)
    starts = [round((first + at) * width_s, 3) for at in range(6)]
    rows = requests(service_name, [("v1", "a", at - T0, 1) for at in starts])
    store.insert("requests", {**rows, "width_s": [width_s] * 6})
    assert store.counts(RequestQuery(service_name, T0 - 60, T0 + 600)).requests.tolist() == [[1.0] * 6]


@pytest.mark.parametrize("cuts", [(), (1,), (5, 6, 20)])
def test_requests_of_hosts_are_added_up_once(store: Store, service_name: str, cuts: Sequence[int]) -> None:
    edges = [0, *cuts, 2 * PERIODS]
    subject = stage(store, service_name)
    for first, end in zip(edges, edges[1:], strict=False):
        progress = subject.handle(records(service_name, first, end))
        assert {message.topic for message in progress} == {"windows"}
    assert_counted(store, service_name)
    # Killed between INSERT and commit, all of it comes again: to the same process and to others.
    subject.handle(records(service_name, 3))
    for first in (0, 7):
        stage(store, service_name).handle(records(service_name, first))
    assert_counted(store, service_name)
    resumed = stage(store, service_name).stored_up_to("requests", [0, 1])
    assert resumed == {0: 2 * PERIODS, 1: 0}


@pytest.mark.parametrize("at", [1, 2, 3])
@pytest.mark.parametrize("taken", [10, 14, 24])
def test_the_former_owner_comes_too_late(shared_store: Store, service_name: str, at: int, taken: int) -> None:
    """Frozen before an INSERT, while another counts less, the same or more."""
    stage(shared_store, service_name).handle(records(service_name, 0, 5))

    def take_over() -> None:
        stage(shared_store, service_name).handle(records(service_name, 5, taken))

    frozen = stage(Frozen(shared_store, at, take_over), service_name)
    frozen.handle(records(service_name, 5, 10))
    frozen.handle(records(service_name, 10, 14))
    stage(shared_store, service_name).handle(records(service_name, 5))
    assert_counted(shared_store, service_name)


def test_any_names_are_read_as_they_came(store: Store, service_name: str) -> None:
    rows = [("v1", name, 0.0, 1 + n) for n, name in enumerate(NASTY)]
    store.insert("requests", requests(service_name, rows))
    found = store.counts(RequestQuery(service_name, T0, T0 + MINUTE, ("v1",)))
    assert dict(zip(found.types, found.requests[:, 0].tolist(), strict=True)) == {
        name: 1 + n for n, name in enumerate(NASTY)
    }
    for releases in (None, ("v1",)):
        for service, start in ((service_name, T0 + 1), ("another", T0)):
            nothing = store.counts(RequestQuery(service, start, T0 + MINUTE, releases))
            assert (nothing.types, nothing.width_s, nothing.requests.shape) == ((), 0.0, (0, 0))


def test_sketches_of_response_times_add_up(sql_store: Store, dsn: str, service_name: str) -> None:
    stage(sql_store, service_name).handle(records(service_name))
    late = replace(messages(service_name)[0], types=(TypeCounts("GET /", 2, (0, 2, 0, 0, 0), ((639, 2),)),))
    stage(sql_store, service_name).handle([Record("requests", 0, 2 * PERIODS, late)])
    with closing(clickhouse_connect.get_client(dsn=dsn, autogenerate_session_id=False)) as client:
        sums = "sum(requests), sum(responses_2xx), sum(responses_5xx), sumMap(times)"
        (row,) = client.query(
            f"SELECT {sums} FROM requests WHERE service = {{service:String}} AND type = 'GET /'",
            {"service": service_name},
        ).result_rows
    hosts = 2 * PERIODS
    assert row == (10 * hosts + 2, 9 * hosts + 2, hosts, {-96: 7 * hosts, -95: 3 * hosts, 639: 2})
