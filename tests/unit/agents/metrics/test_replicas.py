"""Replicas of Prometheus: one of each cluster at a time, another one after 30 s of silence."""

from __future__ import annotations

import pytest

from agents.metrics import Replicas, SeriesReading
from agents.metrics.replicas import FAILOVER_S, MOST_CLUSTERS


def reading(cluster: str, replica: str) -> SeriesReading:
    named = {"__replica__": replica, "cluster": cluster, "job": "shop"}
    return SeriesReading(
        "up", tuple((name, value) for name, value in named.items() if value), 0.0, 1.0, "gauge"
    )


Request = tuple[float, str, str, bool]
"""When a replica of a cluster sent, and whether that is taken."""


@pytest.mark.parametrize(
    "requests",
    [
        pytest.param([(0, "eu", "a", True), (0, "eu", "b", False), (9, "eu", "a", True)], id="two"),
        pytest.param([(0, "eu", "a", True), (0, "us", "b", True)], id="two clusters"),
        pytest.param([(0, "eu", "", True), (0, "", "b", True), (0, "", "a", True)], id="a label is missing"),
        pytest.param(
            [(0, "eu", "a", True), (FAILOVER_S, "eu", "b", False), (FAILOVER_S, "eu", "a", True)],
            id="not yet silent",
        ),
        pytest.param(
            [
                (0, "eu", "a", True),
                (FAILOVER_S + 1, "eu", "b", True),
                (FAILOVER_S + 2, "eu", "a", False),  # it is back, and waits
                (FAILOVER_S + 3, "eu", "b", True),
            ],
            id="failover",
        ),
    ],
)
def test_one_replica_at_a_time(requests: list[Request]) -> None:
    replicas = Replicas()
    for now, cluster, replica, is_taken in requests:
        assert len(replicas.admit([reading(cluster, replica)] * 2, "team", now)) == 2 * is_taken
    left_out = sum(2 for *_, is_taken in requests if not is_taken)
    assert replicas.counts["replica"] == left_out


def test_series_are_the_same_after_a_failover() -> None:
    replicas = Replicas()
    (first,) = replicas.admit([reading("eu", "a")], "team", 0.0)
    (second,) = replicas.admit([reading("eu", "b")], "team", FAILOVER_S + 1)
    assert first == second
    assert first.labels == (("cluster", "eu"), ("job", "shop"))


def test_clients_have_clusters_of_their_own() -> None:
    replicas = Replicas()
    assert replicas.admit([reading("eu", "a")], "team", 0.0)
    assert replicas.admit([reading("eu", "b")], "other team", 0.0)


def test_clusters_are_bounded() -> None:
    replicas = Replicas()
    for number in range(MOST_CLUSTERS + 1):
        replicas.admit([reading(str(number), "a")], "team", 0.0)
    assert replicas.admit([reading("0", "b")], "team", 0.0)  # the one seen longest ago is forgotten
