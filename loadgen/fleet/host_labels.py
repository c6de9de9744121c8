"""Names, releases and labels of hosts over time, which define the strata of their samples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loadgen.fleet.hosts import MAIN, PART, HostRollout, Hosts, restarts
from loadgen.fleet.streams import Streams
from pipeline.model import FloatArray, IntArray
from pipeline.model.strata import Stratum

ObjectArray = NDArray[np.object_]

RATE = "rate_hz"
"""The label of a stratum with its hosts' sampling rate, as workers count profiles that state their rate."""

_ALPHABET = tuple("bcdfghjklmnpqrstvwxz2456789")


@dataclass(frozen=True, slots=True, eq=False)
class HalfHost:
    """A half of a host over time: its load, and the stratum of its samples."""

    slot: int
    half: int
    load: FloatArray  # (windows,) share of the service's usual load
    stratum: IntArray  # (windows,) indexes into all strata


def release_name(at: float) -> str:
    """Return the name of a release made at a time, epoch seconds."""
    moment = np.datetime64(round(at), "s").astype(str)
    return "r" + str(moment)[2:16].replace("-", "").replace("T", ".").replace(":", "")


def build_senders(
    hosts: Hosts, service: str, release_every_s: float, streams: Streams
) -> tuple[tuple[Stratum, ...], tuple[HalfHost, ...]]:
    """Return all strata, and the halves of hosts that send samples."""
    rollouts = sorted(hosts.rollouts, key=lambda item: item.begin)
    releases, variants = _releases(hosts, rollouts, release_every_s), _variants(hosts, rollouts)
    epochs, swaps = restarts(hosts, streams), _swaps(hosts, rollouts)
    part = sum((item.part for item in rollouts), np.zeros(hosts.timeline.windows))
    row_of: dict[Stratum, int] = {}
    senders = []
    for slot in hosts.slots:
        for half, share in ((MAIN, 1 - part), (PART, part)):
            load = share * hosts.load[slot.number]
            if not load.any():
                continue
            states = (
                releases[half][slot.number],
                variants[half][slot.number],
                epochs[slot.number],
                swaps[half],
                hosts.rate[slot.number],
            )
            stratum = np.zeros(hosts.timeline.windows, dtype=np.int64)
            for first, last in _runs(states):
                release, variant, epoch, swap, rate = (item[first] for item in states)
                labels = {**slot.labels, **({"variant": str(variant)} if variant else {})}
                if hosts.spec.rate_hz:
                    labels[RATE] = f"{hosts.spec.rate_hz * rate:g}"
                state = slot.number, half, str(release), int(epoch)
                host = _host(hosts, service, state, int(swap), streams)
                key = Stratum.of(labels, host=host, release=str(release))
                stratum[first:last] = row_of.setdefault(key, len(row_of))
            senders.append(HalfHost(slot.number, half, load, stratum))
    order = sorted(row_of)
    index = {stratum: row for row, stratum in enumerate(order)}
    moved = np.array([index[stratum] for stratum in row_of], dtype=np.int64)
    return tuple(order), tuple(
        HalfHost(sender.slot, sender.half, sender.load, moved[sender.stratum]) for sender in senders
    )


def _releases(hosts: Hosts, rollouts: Sequence[HostRollout], every_s: float) -> list[ObjectArray]:
    """Return the release of the main half and of the part of each host: two of (slots, windows).

    Besides the rollouts there is a release every ``every_s``, on all hosts at once, except during a rollout.
    """
    timeline = hosts.timeline
    staged = [entry for entry in rollouts if not entry.variant]
    times = np.arange(timeline.start, timeline.end, every_s)
    windows = np.ceil((times - timeline.start) / timeline.window_s).astype(np.int64)
    plain: list[tuple[int, str, HostRollout | None]] = [
        (window, release_name(at), None)
        for window, at in zip(windows.tolist(), times.tolist(), strict=True)
        if window < timeline.windows and not any(entry.begin <= window <= entry.end for entry in staged)
    ]
    plain += [(entry.begin, release_name(timeline.starts[entry.begin]), entry) for entry in staged]
    main = np.full(hosts.load.shape, release_name(timeline.start), dtype=object)
    part = main.copy()
    for window, name, rollout in sorted(plain, key=lambda item: item[0]):
        if rollout is None:
            main[:, window:] = part[:, window:] = name
            continue
        main[rollout.hosts] = name
        part[:, rollout.part > 0] = name
        if rollout.kept:
            main[:, rollout.end :] = part[:, rollout.end :] = name
    return [main, part]


def _variants(hosts: Hosts, rollouts: Sequence[HostRollout]) -> list[ObjectArray]:
    """Return the variant of the main half and of the part of each host: two of (slots, windows)."""
    main = np.full(hosts.load.shape, "", dtype=object)
    part = main.copy()
    for rollout in rollouts:
        if rollout.variant:
            main[rollout.hosts] = rollout.label
            part[:, rollout.part > 0] = rollout.label
    return [main, part]


def _swaps(hosts: Hosts, rollouts: Sequence[HostRollout]) -> list[IntArray]:
    """Return the set of hosts that the main half and the part run on: two of (windows,)."""
    main = np.zeros(hosts.timeline.windows, dtype=np.int64)
    part = main.copy()
    for rollout in rollouts:
        if rollout.swaps:
            part[rollout.begin :] = main[rollout.begin :] + 1
            if rollout.kept:
                main[rollout.end :] += 1
    return [main, part]


def _runs(states: Sequence[NDArray[Any]]) -> Iterator[tuple[int, int]]:
    """Yield the spans in which no state changes: first window and the one after the last."""
    windows = len(states[0])
    turns = np.zeros(windows, dtype=np.bool_)
    turns[0] = True
    for state in states:
        turns[1:] |= state[1:] != state[:-1]
    firsts = np.flatnonzero(turns).tolist()
    yield from zip(firsts, [*firsts[1:], windows], strict=True)


def _host(hosts: Hosts, service: str, state: tuple[int, int, str, int], swap: int, streams: Streams) -> str:
    """Return a host's name: that of its slot, or of a pod, which another pod replaces later."""
    if not hosts.spec.named:
        return ""
    slot, _, release, _ = state
    if hosts.spec.pods:
        rng = streams.of("pod", *map(str, state))
        drawn = "".join(_ALPHABET[int(i)] for i in rng.integers(len(_ALPHABET), size=5))
        return f"{service}-{release.replace('.', '')}-{drawn}"
    coloured = any(rollout.swaps for rollout in hosts.rollouts)
    return f"host-{slot:03d}" + (f"-{('blue', 'green')[swap % 2]}" if coloured else "")
