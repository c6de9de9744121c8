"""Publication of a fleet's data through Kafka, as its agents, metrics and deployments would."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from agents.publishing.broker import connect, quiet_client
from loadgen.fleet.callgraph import Stack
from loadgen.fleet.draw import CountArray
from loadgen.fleet.host_draw import arrived
from loadgen.fleet.host_labels import RATE
from loadgen.fleet.scenario import Scenario
from loadgen.fleet.simulate import Fleet
from loadgen.fleet.streams import Streams
from pipeline.kafka import Packet, bootstrap_servers
from pipeline.messages.inputs import encode_change
from pipeline.messages.measurements import encode_metric_points, encode_profile
from pipeline.model import Annotation, AnnotationKind, IntArray, MetricPoints, Outgoing, Profile
from pipeline.model.frames import series_of
from pipeline.model.strata import Stratum
from pipeline.settings.config import Settings
from pipeline.settings.topics import Topics

_IN_FLIGHT = 200


@dataclass(frozen=True, slots=True)
class _Dictionary:
    """Every frame of a service once, annotated frames apart from equal ones without; stacks as indexes."""

    names: tuple[str, ...]
    annotations: tuple[Annotation | None, ...]  # parallel to names
    stacks: tuple[IntArray, ...]


def messages(fleet: Fleet, scenario: Scenario, seed: int) -> Iterator[list[Outgoing]]:
    """Yield the messages of one window after another: changes, profiles of every host, metrics.

    Every sample of the data set is in exactly one profile. If hosts are kept apart, each host sends its own
    profiles with release and labels, in the time of its clock; late hosts send late. Otherwise each sample
    goes to a random reporting server, and the share ``late.share`` of the profiles comes ``late.delay`` after
    the end of their window.
    """
    data = fleet.dataset
    profiles = _of_hosts(fleet) if fleet.draws else _of_servers(fleet, scenario, Streams(seed))
    changes = list(data.changes)
    waiting: list[tuple[float, int, Outgoing]] = []
    number = 0
    for window, sent in enumerate(profiles):
        start = data.start + window * data.window_s
        end = start + data.window_s
        batch = []
        while changes and (changes[0].time < end or end >= data.end):
            change = changes.pop(0)
            batch.append(Outgoing("changes", change.service, encode_change(change)))
        for profile, delay_s in sent:
            message = Outgoing("profiles", f"{data.service}/{profile.host}", encode_profile(profile))
            if delay_s:
                number += 1
                heapq.heappush(waiting, (end + delay_s, number, message))
            else:
                batch.append(message)
        batch += [message for points in data.metrics for message in _metric_messages(points, start, end)]
        while waiting and (waiting[0][0] <= end or end >= data.end):
            batch.append(heapq.heappop(waiting)[2])
        yield batch


def _of_servers(
    fleet: Fleet, scenario: Scenario, streams: Streams
) -> Iterator[Iterator[tuple[Profile, float]]]:
    """Yield the profiles of each window, dealt out to random servers, with the lateness of each."""
    data, dictionary = fleet.dataset, _dictionary(fleet.dataset.stacks)
    hosts = [f"host-{number:05d}" for number in range(scenario.servers.count)]

    def of(window: int) -> Iterator[tuple[Profile, float]]:
        start, rng = data.start + window * data.window_s, streams.of("hosts", str(window))
        for host, rows, counts in _by_host(fleet.counts, window, len(hosts), scenario, rng):
            who = Stratum(host=hosts[host])
            profile = _profile(data.service, who, start, start + data.window_s, dictionary, rows, counts)
            yield profile, scenario.late.delay_s if rng.random() < scenario.late.share else 0.0

    return map(of, range(fleet.counts.shape[1]))


def _of_hosts(fleet: Fleet) -> Iterator[Iterator[tuple[Profile, float]]]:
    """Yield the profiles of each window as hosts send them, with the lateness of each."""
    data, dictionary, draws = fleet.dataset, _dictionary(fleet.dataset.stacks), fleet.draws
    if draws is None:
        return iter(())
    hosts, strata = draws.hosts, draws.strata
    everything = [
        (sent.sender, arrived(sent.sender, hosts), sent.counts.astype(np.min_scalar_type(sent.counts.max())))
        for sent in draws.samples()
    ]
    habit_s = hosts.spec.late.delay_s if hosts.spec.late else 0.0

    def of(window: int) -> Iterator[tuple[Profile, float]]:
        for sender, (first, last), counts in everything:
            rows = np.flatnonzero(counts[:, window])
            if not len(rows) or not first <= window < last:
                continue
            who = strata[int(sender.stratum[window])]
            who = who if who.host else replace(who, host=f"host-{sender.slot:03d}")
            start = data.start + (window + int(hosts.offset[sender.slot])) * data.window_s
            sampled, end = counts[rows, window].astype(np.int64), start + data.window_s
            profile = _profile(data.service, who, start, end, dictionary, rows, sampled)
            yield profile, habit_s if hosts.late[sender.slot] else 0.0

    return map(of, range(fleet.counts.shape[1]))


def publish(
    batches: Iterator[list[Outgoing]], settings: Settings, topics: Topics, advance: Callable[[], None]
) -> int:
    """Publish batch after batch and return the number of messages; ``advance`` is called after each batch.

    Raises:
        ConfigError: the broker's address is wrong.
        BrokerUnavailable: the broker does not answer; earlier messages may be published.
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
    indexes = []
    for stack in stacks:
        frames, above = [], ""
        for label in stack:
            if series_of(label)[0] == "subroutine":
                frames.append(index.setdefault((label, above), len(index)))
                above = ""
            else:
                above = label
        indexes.append(np.array(frames, dtype=np.int64))
    annotations = [
        Annotation(frame, cast("AnnotationKind", series_of(above)[0]), series_of(above)[1]) if above else None
        for (_, above), frame in index.items()
    ]
    return _Dictionary(tuple(name for name, _ in index), tuple(annotations), tuple(indexes))


def _profile(
    service: str,
    who: Stratum,
    start: float,
    end: float,
    dictionary: _Dictionary,
    rows: IntArray,
    counts: IntArray,
) -> Profile:
    stacks = [dictionary.stacks[int(row)] for row in rows]
    used, flat = np.unique(np.concatenate(stacks), return_inverse=True)
    annotations = [
        Annotation(frame, annotation.kind, annotation.value)
        for frame, old in enumerate(used)
        if (annotation := dictionary.annotations[int(old)])
    ]
    return Profile(
        service=service,
        host=who.host,
        start=start,
        end=end,
        frames=tuple(dictionary.names[int(old)] for old in used),
        stack_frames=flat.astype(np.int64),
        stack_starts=np.concatenate([[0], np.cumsum([len(stack) for stack in stacks])]).astype(np.int64),
        counts=counts,
        annotations=tuple(annotations),
        release=who.release,
        labels={name: value for name, value in who.labels if name != RATE},
        rate_hz=float(dict(who.labels).get(RATE, 0.0)),
    )


def _metric_messages(points: MetricPoints, start: float, end: float) -> Iterator[Outgoing]:
    """Yield one message of the points of a window; none if there are no points."""
    first, last = np.searchsorted(points.timestamps, [start, end])
    if last > first:
        timestamps, values = points.timestamps[first:last], points.values[first:last]
        part = replace(points, timestamps=timestamps, values=values)
        yield Outgoing("metrics", f"{points.service}/{points.metric}", encode_metric_points(part))
