"""Which requests are recorded."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from agents.experiments.replay.recording import RecordedRequest
from agents.experiments.replay.sampling import Drawn, RequestSampler, SamplingConfig


class Traffic:
    """A sampler and what it has drawn."""

    def __init__(self, config: SamplingConfig, max_bytes: int = 2**20) -> None:
        self.sampler = RequestSampler(config, random.Random(1).random, max_bytes)
        self.requests: list[RecordedRequest] = []
        self.cut: set[str] = set()

    def send(self, time: float, session: str = "", body: bytes = b"") -> None:
        priority = self.sampler.wants(session)
        if priority is not None:
            self.note(self.sampler.add(priority, RecordedRequest(time, "GET", "/", (), body, session)))

    def note(self, drawn: Drawn) -> None:
        self.requests += drawn.requests
        self.cut |= set(drawn.cut)

    def whole(self) -> list[RecordedRequest]:
        self.note(self.sampler.end())
        return [request for request in self.requests if request.session not in self.cut]


def test_a_share_of_requests_is_drawn_and_weighs_as_much_as_all() -> None:
    traffic = Traffic(SamplingConfig(share=0.25))
    for time in range(4000):
        traffic.send(float(time))
    found = traffic.whole()
    assert 850 < len(found) < 1150
    assert {request.weight for request in found} == {4.0}


def test_of_a_session_all_requests_are_drawn_or_none() -> None:
    traffic = Traffic(SamplingConfig(share=0.5))
    for time in range(2000):
        traffic.send(float(time), session=f"s{time % 100}")
    counts = Counter(request.session for request in traffic.whole())
    assert set(counts.values()) == {20}
    assert 30 < len(counts) < 70


def test_at_most_so_many_requests_are_drawn_in_each_interval_and_weigh_as_much_as_all() -> None:
    traffic = Traffic(SamplingConfig(most=10, interval_s=60.0))
    for index in range(1000):  # ten intervals, of which the first is ten times as busy
        traffic.send(index * 0.1 if index < 600 else 60.0 + (index - 600) * 1.35)
    found = traffic.whole()
    counts = Counter(request.time // 60 for request in found)
    assert set(counts.values()) == {10}
    assert sum(request.weight for request in found) == pytest.approx(1000)
    assert found[0].weight == 60.0


def test_all_requests_of_an_interval_have_the_same_chance() -> None:
    positions: Counter[int] = Counter()
    for seed in range(400):
        sampler = RequestSampler(SamplingConfig(most=5), random.Random(seed).random, 2**20)
        for index in range(20):
            priority = sampler.wants("")
            assert priority is not None
            sampler.add(priority, RecordedRequest(float(index), "GET", "/"))
        positions.update(int(request.time) for request in sampler.end().requests)
    assert all(60 < positions[index] < 140 for index in range(20))  # 100 expected


def test_a_bound_keeps_sessions_whole() -> None:
    traffic = Traffic(SamplingConfig(most=100, interval_s=60.0))
    for index in range(1200):  # 20 sessions, each with 30 requests in both intervals
        traffic.send(index * 0.1, session=f"s{index % 20}")
    found = traffic.whole()
    assert set(Counter(request.session for request in found).values()) == {60}
    assert set(Counter(request.time // 60 for request in found).values()) == {90}


def test_a_session_larger_than_the_bound_is_left_out() -> None:
    traffic = Traffic(SamplingConfig(most=5, interval_s=60.0))
    for index in range(9):
        traffic.send(float(index), session="large")
    traffic.send(20.0)
    assert [request.session for request in traffic.whole()] == [""]
    assert traffic.cut == {"large"}


def test_bodies_that_wait_are_bounded() -> None:
    traffic = Traffic(SamplingConfig(most=100), max_bytes=1000)
    for index in range(50):
        traffic.send(float(index % 10), body=b"x" * 100)
    assert len(traffic.whole()) == 10


def test_an_interval_is_over_though_no_request_comes() -> None:
    traffic = Traffic(SamplingConfig(most=3, interval_s=60.0))
    for time in (70.0, 71.0):
        traffic.send(time)
    assert traffic.sampler.end_before(119.0) == Drawn()
    assert [request.time for request in traffic.sampler.end_before(120.0).requests] == [70.0, 71.0]
    assert traffic.sampler.end_before(500.0) == Drawn()


def test_a_session_that_was_lost_comes_in_no_more() -> None:
    traffic = Traffic(SamplingConfig())
    traffic.send(1.0, session="a")
    assert traffic.sampler.cut("a") == ("a",)
    assert traffic.sampler.cut("a") == ()
    assert traffic.sampler.wants("a") is None
