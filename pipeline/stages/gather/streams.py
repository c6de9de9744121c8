"""Streams: the name of each log whose messages are counted, kept with every row that comes of it.

Offsets mean something in one log only. A topic that is made anew, another cluster, or a second set of topics
on the same cluster is another log, with a stream of its own: of its messages nothing is counted yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from pipeline.storage.interface import CountTable, Extents, RowQuery, Store

SCANNED_TOPICS: Mapping[str, CountTable] = {"profiles": "totals", "metrics": "metrics"}
"""The topics (logical names) that scans look at, with the table that covers no more than others do."""

COUNTED_TOPICS: Mapping[str, CountTable] = {**SCANNED_TOPICS, "requests": "requests"}
"""The topics whose offsets are kept, likewise; requests are compared release by release."""

LOGGED_TOPICS = (*COUNTED_TOPICS, "changes", "feedback")
"""The topics whose logs have a stream: all that come from outside."""


class TopicIdentity(NamedTuple):
    """A topic as the broker has it."""

    name: str  # the broker's
    id: str  # Kafka's, given when it was made; empty if the broker gives none


def one_stream(name: str) -> dict[str, str]:
    """Return the streams where all topics share one name: of a flow without a broker."""
    return dict.fromkeys(LOGGED_TOPICS, name)


def streams_of(
    store: Store, cluster: str, topics: Mapping[str, TopicIdentity], now: float | None
) -> dict[str, str]:
    """Return the stream of each topic, by its logical name; a log that is new to the store is noted there.

    Rows that were counted before the store knew logs carry the cluster alone. They are of the first log of
    their topic that is noted: it goes on under that name.

    Args:
        store: Migrated.
        cluster: The cluster's id, or the name that the setting ``stream`` gives it.
        topics: By logical name.
        now: Epoch seconds, for who reads the table; None if nothing is to be noted.
    """
    known = store.rows(RowQuery("logs", None, equal={"cluster": cluster}))
    streams = {(row["topic"], row["broker_topic"], row["topic_id"]): str(row["stream"]) for row in known}
    of_topics = {topic for topic, *_ in streams}
    new: list[dict[str, object]] = []
    for topic, identity in topics.items():
        key = (topic, *identity)
        if key in streams:
            continue
        older = (
            topic in COUNTED_TOPICS
            and topic not in of_topics
            and any(of_topic == topic for of_topic, _ in _extents(store, COUNTED_TOPICS[topic], cluster))
        )
        streams[key] = cluster if older else "/".join(part for part in (cluster, *identity) if part)
        new.append(
            {
                "cluster": cluster,
                "topic": topic,
                "broker_topic": identity.name,
                "topic_id": identity.id,
                "time": now,
                "stream": streams[key],
            }
        )
    if new and now is not None:
        store.insert("logs", {name: [row[name] for row in new] for name in new[0]})
    return {topic: streams[topic, *identity] for topic, identity in topics.items()}


def noted_positions(store: Store, stream: str, topic: str) -> dict[int, int]:
    """Return the last offset that was noted as done with, of each partition that has one."""
    rows = store.rows(RowQuery("positions", None, equal={"stream": stream, "topic": topic}))
    return {int(row["partition"]): int(row["last_offset"]) for row in rows}


def stored_up_to(store: Store, stream: str, topic: str, partitions: Iterable[int]) -> dict[int, int]:
    """Return where reading goes on by what was counted, or noted as done with; 0 where there is nothing."""
    noted = noted_positions(store, stream, topic)
    table = COUNTED_TOPICS.get(topic)
    extents = _extents(store, table, stream) if table else {}
    counted = {partition: extent.last_offset for (log, partition), extent in extents.items() if log == topic}
    return {p: max(counted.get(p, -1), noted.get(p, -1)) + 1 for p in partitions}


def position_columns(stream: str, topic: str, last: Mapping[int, int], now: float) -> dict[str, list[object]]:
    """Return rows that note the last offset that is done with, by partition."""
    size = len(last)
    return {
        "stream": [stream] * size,
        "topic": [topic] * size,
        "partition": list(last),
        "time": [now] * size,
        "last_offset": list(last.values()),
    }


def _extents(store: Store, table: CountTable, stream: str) -> Extents:
    return store.extents([table], stream)[table]
