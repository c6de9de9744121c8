"""Hosts of a fleet: regions, machines, and each host's share of the load over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from loadgen.fleet.callgraph import Stack, endpoint_of
from loadgen.fleet.hosts_spec import HostsSpec
from loadgen.fleet.streams import Streams
from loadgen.fleet.timeline import Timeline
from pipeline.model import BoolArray, FloatArray, IntArray
from pipeline.model.units import DAY_S

MAIN, PART = 0, 1
"""Halves of a host: its main release, and the release beside it that serves a part of its requests."""


@dataclass(frozen=True, slots=True)
class Slot:
    """Place of one host; hosts with different names may follow each other in it."""

    number: int
    region: str
    machine: str

    @property
    def labels(self) -> dict[str, str]:
        """Labels of the slot; those that the scenario does not have are absent."""
        values = {"region": self.region, "machine": self.machine}
        return {name: value for name, value in values.items() if value}


@dataclass(frozen=True, slots=True, eq=False)
class HostRollout:
    """A release, or a variant of an experiment, that reaches hosts in stages.

    From ``begin`` to ``end`` it is on the hosts of ``hosts``, and serves the share ``part`` of the requests
    of all other hosts. From ``end`` on it is on all hosts if it is ``kept``, else on none.
    """

    id: str
    begin: int  # window
    end: int  # window
    hosts: BoolArray  # (slots, windows)
    part: FloatArray  # (windows,)
    stages: tuple[tuple[float, float], ...]  # epoch seconds and share of the load
    kept: bool
    variant: bool = False  # of an experiment; a variant has a label of its own
    swaps: bool = False  # whether the part is a second set of hosts, which then stays

    @property
    def label(self) -> str:
        """The name of a variant."""
        return f"{self.id}-b"

    @property
    def reach(self) -> FloatArray:
        """Share of the rollout on each half of each host: (halves, slots, windows)."""
        return np.stack([self.hosts, self.hosts | (self.part > 0)]).astype(np.float64)

    @property
    def share(self) -> FloatArray:
        """Share of the rollout on each host: (slots, windows)."""
        return np.where(self.hosts, 1.0, self.part)


@dataclass(frozen=True, slots=True, eq=False)
class Hosts:
    """All hosts over time, and what was rolled out to them."""

    spec: HostsSpec
    timeline: Timeline
    slots: tuple[Slot, ...]  # hosts that arrive later come after the others
    load: FloatArray  # (slots, windows) shares of the service's usual load
    rate: FloatArray  # (slots, windows) samples, times the usual rate
    offset: IntArray  # (slots,) number of windows by which timestamps are too late
    late: BoolArray  # (slots,) whether profiles always come late
    rollouts: list[HostRollout] = field(default_factory=list)  # in the order of injections

    def mean(self, share: FloatArray) -> FloatArray:
        """Return the mean, weighted by load, of values of each host, (slots, windows): (windows,)."""
        whole = self.load.sum(axis=0)
        loaded = whole > 0
        means: FloatArray = share.mean(axis=0)
        np.divide((self.load * share).sum(axis=0), whole, out=means, where=loaded)
        return means

    def matching(self, labels: Mapping[str, str]) -> BoolArray:
        """Return the hosts that have the labels: (slots,)."""
        return np.array([labels.items() <= slot.labels.items() for slot in self.slots], dtype=np.bool_)

    def factors(self, stack: Stack, streams: Streams) -> FloatArray:
        """Return the cost of a stack on each host relative to the mean host: (slots,).

        The factor combines the host's mix of endpoints with factors of its machine and its region. Over the
        initial hosts the mean is 1.
        """
        spec, endpoint = self.spec, endpoint_of(stack)
        parts = [
            (spec.machine_spread, "machine", [slot.machine for slot in self.slots], stack),
            (spec.region_spread, "region", [slot.region for slot in self.slots], stack),
            (spec.region_mix, "region_mix", [slot.region for slot in self.slots], (endpoint,)),
            (spec.host_mix, "host_mix", [str(slot.number) for slot in self.slots], (endpoint,)),
        ]
        logs = np.zeros(len(self.slots))
        for spread, purpose, values, key in parts:
            if spread and any(values) and any(key):
                drawn = {v: streams.of(purpose, v, *key).standard_normal() for v in dict.fromkeys(values)}
                logs += spread * np.array([drawn[value] for value in values])
        costs = np.exp(logs)
        result: FloatArray = costs / costs[: self.spec.count].mean()
        return result


def build_hosts(spec: HostsSpec, timeline: Timeline, cycle: FloatArray, streams: Streams) -> Hosts:
    """Draw the regions and machines of hosts, and the load of each host.

    Args:
        spec: The scenario's hosts.
        timeline: The windows.
        cycle: (windows,) load of the service, which the number of hosts follows.
        streams: Random numbers.
    """
    regions = _dealt(spec.regions, spec.count, streams.of("hosts", "regions"))
    machines = _dealt(spec.machines, spec.count, streams.of("hosts", "machines"))
    slots = [Slot(number, regions[number], machines[number]) for number in range(spec.count)]
    running = np.ones((spec.count, timeline.windows))
    for number, arrival in enumerate(spec.arrivals):
        leaving = _some(spec.count, arrival.share, streams.of("hosts", "arrivals", str(number)))
        for order, old in enumerate(leaving.tolist()):
            at = timeline.at(arrival.at) + arrival.over_s * order / len(leaving)
            here = (timeline.starts >= at).astype(np.float64)
            slots.append(Slot(len(slots), slots[old].region, arrival.machine))
            running = np.vstack([running, running[old] * here])
            running[old] *= 1 - here
    running *= _needed(spec, slots, cycle)
    number_of = np.arange(len(slots))
    rate = np.ones((len(slots), timeline.windows))
    for number, change in enumerate(spec.rates):
        chosen = _some(spec.count, change.share, streams.of("hosts", "rates", str(number)))
        for order, slot in enumerate(chosen.tolist()):
            at = timeline.at(change.at) + change.over_s * order / len(chosen)
            rate[slot, timeline.starts >= at] *= change.factor
    offset = np.zeros(len(slots), dtype=np.int64)
    for number, clock in enumerate(spec.clocks):
        chosen = _some(spec.count, clock.share, streams.of("hosts", "clocks", str(number)))
        offset[chosen] += round(clock.offset_s / timeline.window_s)
    late = np.zeros(len(slots), dtype=np.bool_)
    if spec.late:
        late = np.isin(number_of, _some(spec.count, spec.late.share, streams.of("hosts", "late")))
    load = _spread(spec, slots, running, timeline, streams)
    return Hosts(spec, timeline, tuple(slots), load, rate, offset, late)


def restarts(hosts: Hosts, streams: Streams) -> IntArray:
    """Return the number of replacements of each slot's host so far: (slots, windows)."""
    timeline = hosts.timeline
    began = np.diff(hosts.load > 0, axis=1, prepend=False) & (hosts.load > 0)
    if hosts.spec.churn:
        chance = hosts.spec.churn * timeline.window_s / DAY_S
        began |= streams.of("hosts", "churn").random(began.shape) < chance
    counts: IntArray = np.cumsum(began, axis=1)
    return counts


def _dealt(shares: Mapping[str, float], count: int, rng: np.random.Generator) -> list[str]:
    """Assign labels to hosts by their shares, at random; each label at least once if there is room."""
    if not shares:
        return [""] * count
    edges = np.rint(np.cumsum(list(shares.values())) * count).astype(np.int64)
    edges = np.maximum(edges, np.minimum(np.arange(len(edges)) + 1, count))
    sizes = np.diff(np.minimum(edges, count), prepend=0)
    names = np.repeat(list(shares), sizes)
    return [str(name) for name in rng.permutation(names)]


def _some(count: int, share: float, rng: np.random.Generator) -> IntArray:
    """Draw a share of the hosts, at least one, in random order."""
    slots: IntArray = rng.permutation(count)[: max(1, round(share * count))]
    return slots


def _needed(spec: HostsSpec, slots: Sequence[Slot], cycle: FloatArray) -> FloatArray:
    """Return the hosts of each region that the load needs at each time: (slots, windows)."""
    relative = cycle / max(float(cycle.max()), 1e-12)
    wanted = spec.least_hosts + (1 - spec.least_hosts) * relative
    needed = np.ones((len(slots), len(cycle)))
    for region in {slot.region for slot in slots}:
        members = [slot.number for slot in slots if slot.region == region]
        originals = [number for number in members if number < spec.count]
        for rank, number in enumerate(originals):
            needed[number] = rank < np.ceil(wanted * len(originals))
    return needed


def _spread(
    spec: HostsSpec, slots: Sequence[Slot], running: FloatArray, timeline: Timeline, streams: Streams
) -> FloatArray:
    """Spread the load over regions, and evenly over the running hosts of each: (slots, windows)."""
    names = sorted({slot.region for slot in slots})
    share = {name: sum(slot.region == name for slot in slots[: spec.count]) / spec.count for name in names}
    demand = {}
    for name in names:
        phase = streams.of("hosts", "phase", name).random() * DAY_S
        wave = 1 + spec.region_daily * np.cos(2 * np.pi * (timeline.middles - phase) / DAY_S)
        demand[name] = share[name] * wave
    whole = sum(demand.values(), np.zeros(timeline.windows))
    demand = {name: values / whole for name, values in demand.items()}
    for drain in spec.drains:
        begin = timeline.at(drain.at)
        pulse = timeline.pulse(begin, begin + drain.length_s, rise_s=drain.ramp_s, fall_s=drain.ramp_s)
        gone = demand[drain.region] * pulse
        demand[drain.region] = demand[drain.region] - gone
        other_regions = [name for name in names if name != drain.region]
        rest = sum((demand[name] for name in other_regions), np.zeros(timeline.windows))
        if drain.taken:
            more = 1 + np.divide(gone, rest, out=np.zeros_like(gone), where=rest > 0)
            demand |= {name: demand[name] * more for name in other_regions}
    load = np.zeros_like(running)
    for name in names:
        members = [slot.number for slot in slots if slot.region == name]
        count = running[members].sum(axis=0)
        load[members] = running[members] * demand[name] / np.maximum(count, 1.0)
    return load
