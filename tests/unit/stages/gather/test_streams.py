"""Which stream a log has: its topic made anew is another log, counts from before logs were known go on."""

from __future__ import annotations

import pytest

from pipeline.stages.gather.streams import (
    TopicIdentity,
    noted_positions,
    one_stream,
    position_columns,
    streams_of,
)
from pipeline.storage.arrays import ArrayStore
from tests.contract.rows import T0, totals

FIRST, SECOND = TopicIdentity("profiles", "aa"), TopicIdentity("profiles", "bb")


def named(store: ArrayStore, identity: TopicIdentity, cluster: str = "c") -> str:
    return streams_of(store, cluster, {"profiles": identity}, T0)["profiles"]


def counted(stream: str) -> ArrayStore:
    store = ArrayStore()
    store.insert("totals", totals("shop", [(T0, 1)], offset=99, stream=stream))
    return store


@pytest.mark.parametrize(
    ("cluster", "identity", "stream"),
    [
        ("c", FIRST, "c/profiles/aa"),
        ("c", SECOND, "c/profiles/bb"),  # made anew
        ("d", FIRST, "d/profiles/aa"),  # another cluster, or another name in the setting
        ("c", TopicIdentity("team-b.profiles", "cc"), "c/team-b.profiles/cc"),  # a second set of topics
        ("c", TopicIdentity("profiles", ""), "c/profiles"),  # a broker without ids
    ],
    ids=["a log", "made anew", "another cluster", "another name", "no id"],
)
def test_every_log_has_a_stream_of_its_own(cluster: str, identity: TopicIdentity, stream: str) -> None:
    store = ArrayStore()
    named(store, FIRST)
    assert named(store, identity, cluster) == stream
    assert named(store, identity, cluster) == stream  # and keeps it


def test_counts_from_before_logs_were_known_go_on_under_their_name() -> None:
    store = counted("c")
    assert named(store, FIRST) == "c"
    assert named(store, FIRST) == "c"
    assert named(store, SECOND) == "c/profiles/bb"


def test_counts_of_another_topic_or_cluster_are_no_reason_to_go_on() -> None:
    assert named(counted("d"), FIRST) == "c/profiles/aa"
    metrics = streams_of(counted("c"), "c", {"metrics": TopicIdentity("metrics", "mm")}, T0)
    assert metrics == {"metrics": "c/metrics/mm"}


def test_a_flow_without_a_broker_has_one_stream() -> None:
    assert set(one_stream("x").values()) == {"x"}


def test_the_last_position_that_was_noted_counts() -> None:
    store = ArrayStore()
    for last in ({0: 4, 1: 7}, {0: 9}):
        store.insert("positions", position_columns("s", "changes", last, T0))
    assert noted_positions(store, "s", "changes") == {0: 9, 1: 7}
    assert noted_positions(store, "s", "profiles") == {}
