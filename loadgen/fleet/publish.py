"""Publication of a fleet's data through Kafka, as its agents, metrics and deployments would."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from agents.broker import connect, quiet_client
from loadgen.fleet.callgraph import Stack
from loadgen.fleet.draw import CountArray
from loadgen.fleet.scenario import Scenario
from loadgen.fleet.simulate import Fleet
from loadgen.fleet.streams import Streams
from pipeline.codec.inputs import encode_change, encode_metric_points, encode_profile
from pipeline.config import Settings
from pipeline.frames import series_of
from pipeline.kafka import Packet, bootstrap_servers
from pipeline.model import Annotation, AnnotationKind, IntArray, MetricPoints, Outgoing, Profile
from pipeline.topics import Topics

_IN_FLIGHT = 200


@dataclass(frozen=True, slots=True)
class _Dictionary:
    """Every frame of a service once, an annotated one apart from the same without; stacks as indexes."""

    names: tuple[str, ...]
    annotations: tuple[Annotation | None, ...]  # parallel to names
    stacks: tuple[IntArray, ...]


def messages(fleet: Fleet, scenario: Scenario, seed: int) -> Iterator[list[Outgoing]]:
    """Yield the messages of one window after another: changes, profiles of every host, metrics.

    Every sample of the data set is in exactly one profile. Each goes to a random server of those that
    report; a share of the profiles, ``late.share``, comes ``late.delay`` after its window has ended.
    """
    data = fleet.dataset
    streams = Streams(seed)
    dictionary = _dictionary(data.stacks)
    hosts = [f"host-{number:05d}" for number in range(scenario.servers.count)]
    changes = list(data.changes)
    late: list[tuple[float, int, Outgoing]] = []
    number = 0
    for window in range(fleet.counts.shape[1]):
        start = data.start + window * data.window_s
        end = start + data.window_s
        batch = []
        while changes and (changes[0].time < end or end >= data.end):
            change = changes.pop(0)
            batch.append(Outgoing("changes", change.service, encode_change(change)))
        rng = streams.of("hosts", str(window))
        for host, rows, counts in _by_host(fleet.counts, window, len(hosts), scenario, rng):
            profile = _profile(data.service, hosts[host], start, end, dictionary, rows, counts)
            message = Outgoing("profiles", f"{data.service}/{hosts[host]}", encode_profile(profile))
            if rng.random() < scenario.late.share:
                number += 1
                heapq.heappush(late, (end + scenario.late.delay_s, number, message))
            else:
                batch.append(message)
        batch += [message for points in data.metrics for message in _metric_messages(points, start, end)]
        while late and (late[0][0] <= end or end >= data.end):
            batch.append(heapq.heappop(late)[2])
        yield batch


def publish(
    batches: Iterator[list[Outgoing]], settings: Settings, topics: Topics, advance: Callable[[], None]
) -> int:
    """Publish batch after batch and return how many messages were sent; ``advance`` is called after each.

    Raises:
        ConfigError: the broker's address is wrong.
        BrokerUnavailable: the broker does not answer; what came before may be published.
    """
    bootstrap_servers(settings.broker)
    quiet_client(settings)
    return asyncio.run(_publish(batches, settings, topics, advance))


async def _publish(
    batches: Iterator[list[Outgoing]], settings: Settings, topics: Topics, advance: Callable[[], None]
) -> int:
    producer = await connect(settings, topics)
    sent = 0
    try:
        for batch in batches:
            for first in range(0, len(batch), _IN_FLIGHT):
                part = [Packet.of(message) for message in batch[first : first + _IN_FLIGHT]]
                sent += len(await producer.send_packets(part))
            advance()
    finally:
        await producer.close()
    return sent


def _by_host(
    counts: CountArray, window: int, hosts: int, scenario: Scenario, rng: np.random.Generator
) -> Iterator[tuple[int, IntArray, IntArray]]:
    """Deal a window's samples out to the servers that report: (host, stack rows, counts)."""
    samples = np.repeat(np.arange(len(counts), dtype=np.int64), counts[:, window])
    if not len(samples):
        return
    present = np.flatnonzero(rng.random(hosts) >= scenario.servers.missing)
    if not len(present):
        present = np.arange(1)
    owner = present[rng.integers(len(present), size=len(samples))]
    cells, dealt = np.unique(owner * len(counts) + samples, return_counts=True)
    host_of, row_of = np.divmod(cells, len(counts))
    firsts = np.flatnonzero(np.diff(host_of, prepend=-1))
    for first, last in zip(firsts, [*firsts[1:], len(cells)], strict=True):
        yield int(host_of[first]), row_of[first:last], dealt[first:last].astype(np.int64)


def _dictionary(stacks: Sequence[Stack]) -> _Dictionary:
    index: dict[tuple[str, str], int] = {}
    found = []
    for stack in stacks:
        frames, above = [], ""
        for label in stack:
            if series_of(label)[0] == "subroutine":
                frames.append(index.setdefault((label, above), len(index)))
                above = ""
            else:
                above = label
        found.append(np.array(frames, dtype=np.int64))
    annotations = [
        Annotation(frame, cast("AnnotationKind", series_of(above)[0]), series_of(above)[1]) if above else None
        for (_, above), frame in index.items()
    ]
    return _Dictionary(tuple(name for name, _ in index), tuple(annotations), tuple(found))


def _profile(
    service: str,
    host: str,
    start: float,
    end: float,
    dictionary: _Dictionary,
    rows: IntArray,
    counts: IntArray,
) -> Profile:
    stacks = [dictionary.stacks[int(row)] for row in rows]
    used, flat = np.unique(np.concatenate(stacks), return_inverse=True)
    annotations = [
        Annotation(frame, found.kind, found.value)
        for frame, old in enumerate(used)
        if (found := dictionary.annotations[int(old)])
    ]
    return Profile(
        service=service,
        host=host,
        start=start,
        end=end,
        frames=tuple(dictionary.names[int(old)] for old in used),
        stack_frames=flat.astype(np.int64),
        stack_starts=np.concatenate([[0], np.cumsum([len(stack) for stack in stacks])]).astype(np.int64),
        counts=counts,
        annotations=tuple(annotations),
    )


def _metric_messages(points: MetricPoints, start: float, end: float) -> Iterator[Outgoing]:
    """Yield one message of the points of a window, none where there are none."""
    first, last = np.searchsorted(points.timestamps, [start, end])
    if last > first:
        timestamps, values = points.timestamps[first:last], points.values[first:last]
        part = replace(points, timestamps=timestamps, values=values)
        yield Outgoing("metrics", f"{points.service}/{points.metric}", encode_metric_points(part))
