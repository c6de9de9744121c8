"""Draws of samples host by host, and their counts by strata."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from loadgen.fleet.callgraph import CallGraph, Incidence
from loadgen.fleet.draw import CountArray, StackCosts, build_costs, count_series, dispersed, expected_samples
from loadgen.fleet.host_labels import HalfHost
from loadgen.fleet.hosts import Hosts
from loadgen.fleet.inject.effects import Injected
from loadgen.fleet.load import LoadFactors
from loadgen.fleet.scenario import Scenario
from loadgen.fleet.streams import Streams
from loadgen.fleet.timeline import Timeline
from pipeline.backtest.counts import summed
from pipeline.backtest.labels import folded
from pipeline.backtest.late import Late
from pipeline.model import FloatArray, IntArray
from pipeline.model.strata import Stratum, StratumCounts


@dataclass(frozen=True, slots=True, eq=False)
class Sent:
    """Samples of a half of a host, window by window of the true time."""

    sender: HalfHost
    counts: CountArray  # (stacks, windows)


@dataclass(frozen=True, slots=True, eq=False)
class HostSamples:
    """All samples of a fleet as reported, in windows of the hosts' own clocks."""

    counts: CountArray  # (stacks, windows)
    strata: tuple[Stratum, ...]
    totals: FloatArray  # (strata, windows)
    samples: StratumCounts
    late: tuple[Late, ...]  # the part of all these that arrives late


@dataclass(frozen=True, slots=True, eq=False)
class HostDraws:
    """Inputs of the draws of the hosts' samples."""

    scenario: Scenario
    graph: CallGraph
    injected: Sequence[Injected]
    costs: StackCosts  # on the mean host
    hosts: Hosts
    load: LoadFactors
    timeline: Timeline
    streams: Streams
    strata: tuple[Stratum, ...]  # as senders name them
    senders: tuple[HalfHost, ...]

    def samples(self) -> Iterator[Sent]:
        """Draw the samples of the halves of hosts one after another; every call gives the same samples.

        Counts are independent and negative binomial as those of a whole fleet in ``draw_counts``: a host's
        servers have the common variance, which grows with the samples that each server takes.
        """
        stacks = self.costs.stacks
        origins = [self.costs.origin.get(row, stack) for row, stack in enumerate(stacks)]
        factors = np.array([self.hosts.factors(stack, self.streams) for stack in origins])
        mean = np.array([self._expected(self.costs, row) for row in range(len(stacks))])
        for sender in self.senders:
            counts = np.zeros(mean.shape, dtype=np.int32)
            rate = self.hosts.rate[sender.slot]
            chosen = np.flatnonzero((sender.load > 0) & self.load.present)
            weight, excess = (sender.load * rate)[chosen], (self.load.dispersion * rate)[chosen]
            own = self._own(sender)
            for row, stack in enumerate(stacks):
                expected = own.get(row, mean[row])[chosen] * weight * factors[row, sender.slot]
                rng = self.streams.of("stack", *stack, str(sender.slot), str(sender.half))
                counts[row, chosen] = rng.poisson(dispersed(rng, expected, excess))
            yield Sent(sender, counts)

    def _own(self, sender: HalfHost) -> dict[int, FloatArray]:
        """Return the expected samples of stacks whose cost differs on this host: row → (windows,)."""
        if not any(effect.by_host is not None for injection in self.injected for effect in injection.stacks):
            return {}
        costs = build_costs(
            self.scenario,
            self.graph,
            [_on_host(injection, sender) for injection in self.injected],
            self.timeline.windows,
        )
        differing = [
            row
            for row, values in costs.varying.items()
            if not np.array_equal(values, self.costs.varying[row])
        ]
        return {row: self._expected(costs, row) for row in differing}

    def _expected(self, costs: StackCosts, row: int) -> FloatArray:
        return expected_samples(self.scenario, costs, row, self.load, self.timeline, self.streams)


def reported(sent: Sent, hosts: Hosts) -> CountArray:
    """Return the samples that arrived before the data end, in windows of the host's clock.

    The shape is (stacks, windows).
    """
    first, last = arrived(sent.sender, hosts)
    offset = int(hosts.offset[sent.sender.slot])
    counts = np.zeros_like(sent.counts)
    counts[:, first + offset : last + offset] = sent.counts[:, first:last]
    return counts


def arrived(sender: HalfHost, hosts: Hosts) -> tuple[int, int]:
    """Return the windows of the true time whose profiles are in the data: the first and one past the last."""
    windows, offset = hosts.timeline.windows, int(hosts.offset[sender.slot])
    on_their_way = 0
    if hosts.late[sender.slot] and hosts.spec.late:
        on_their_way = int(np.ceil(hosts.spec.late.delay_s / hosts.timeline.window_s))
    first = min(max(-offset, 0), windows)
    return first, max(min(windows - on_their_way, windows - offset), first)


def count_strata(draws: HostDraws, found: Incidence, ratio: int) -> HostSamples:
    """Draw samples and count them by stratum; the smallest strata beyond a dataset's bound are merged.

    Args:
        draws: Inputs of the draws.
        found: Series that every stack counts for.
        ratio: Number of windows in a stack window.
    """
    hosts, strata = draws.hosts, draws.strata
    windows = hosts.timeline.windows
    whole = np.zeros((found.matrix.shape[1], windows), dtype=np.int32)
    totals = np.zeros((len(strata), windows))
    parts: list[tuple[IntArray, IntArray, IntArray, FloatArray]] = []
    late_counts, late_totals = np.zeros_like(whole), np.zeros_like(totals)
    for sent in draws.samples():
        counts = reported(sent, hosts)
        whole += counts
        stratum = sent.sender.stratum[
            np.clip(np.arange(windows) - hosts.offset[sent.sender.slot], 0, windows - 1)
        ]
        np.add.at(totals, (stratum, np.arange(windows)), counts.sum(axis=0))
        if hosts.late[sent.sender.slot]:
            late_counts += counts
            np.add.at(late_totals, (stratum, np.arange(windows)), counts.sum(axis=0))
        parts.append(_entries(count_series(found, counts), stratum, ratio))
    kept_strata, row_of = folded(strata, totals.sum(axis=1), windows)
    by_kept, late_by_kept = np.zeros((len(kept_strata), windows)), np.zeros((len(kept_strata), windows))
    np.add.at(by_kept, row_of, totals)
    np.add.at(late_by_kept, row_of, late_totals)
    series, stratum, window, samples = (np.concatenate(part) for part in zip(*parts, strict=True))
    late: tuple[Late, ...] = ()
    if habit := hosts.spec.late:
        of_service = late_counts.sum(axis=0, dtype=np.float64)
        late = (Late(habit.delay_s, count_series(found, late_counts), of_service, late_by_kept),)
    return HostSamples(whole, kept_strata, by_kept, summed(series, row_of[stratum], window, samples), late)


def _entries(
    samples: FloatArray, stratum: IntArray, ratio: int
) -> tuple[IntArray, IntArray, IntArray, FloatArray]:
    """Add up the windows of each stack window and stratum: series, strata, stack windows and samples."""
    window = np.arange(len(stratum)) // ratio
    turns = (np.diff(window, prepend=-1) != 0) | (np.diff(stratum, prepend=-1) != 0)
    firsts = np.flatnonzero(turns)
    sums = np.add.reduceat(samples, firsts, axis=1)
    series, group = np.nonzero(sums)
    return series, stratum[firsts][group], window[firsts][group], sums[series, group]


def _on_host(injection: Injected, sender: HalfHost) -> Injected:
    """Return an injection as it acts on one half of a host."""
    stacks = tuple(
        effect
        if effect.by_host is None
        else replace(effect, profile=effect.by_host[sender.half, sender.slot])
        for effect in injection.stacks
    )
    return replace(injection, stacks=stacks)
