"""Steps that act on hosts unequally: staged rollouts, changes on some hosts only, and experiments."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from loadgen.fleet.host_labels import release_name
from loadgen.fleet.hosts import HostRollout, Hosts
from loadgen.fleet.hosts_spec import RolloutSpec
from loadgen.fleet.inject.effects import Injected, StackEffect
from loadgen.fleet.inject.order import Order, regression
from loadgen.fleet.inject.site import NothingFits, Site
from pipeline.model import FloatArray

_ROOM = 0.9
"""Largest share of the time until the next one that a rollout or an experiment takes."""


def inject_rollout(order: Order, site: Site) -> Injected:
    """Make a subroutine cost more with a release that reaches the hosts in stages.

    Rollouts of a group follow each other, since a service has one at a time. An aborted rollout restores the
    former release on all hosts at once.
    """
    hosts, spec = _hosts(site), order.spec.rollout or RolloutSpec()
    delta = order.size()
    subroutine = site.choose(order.rng, delta)
    rollout = _plan(order, hosts, spec)
    hosts.rollouts.append(rollout)
    facts: dict[str, Any] = {"stages": [list(stage) for stage in rollout.stages], "strata": {}}
    facts["release"] = release_name(hosts.timeline.starts[rollout.begin])
    if not rollout.kept:
        facts |= {"kind": "aborted_rollout", "end": float(_time(hosts, rollout.end))}
    peak = 1.0 if rollout.kept else rollout.stages[-1][1]
    effects = _effects(hosts, site, subroutine, delta, rollout.reach, rollout.share, peak)
    at = float(hosts.timeline.starts[rollout.begin])
    return regression(order, site, subroutine, effects, (at, False), subkind=_subkind(spec), **facts)


def inject_only(order: Order, site: Site) -> Injected:
    """Make a subroutine cost more on the hosts with some labels; ``delta`` is that of the whole service.

    A change deployed while those hosts have no load takes effect when they have some.
    """
    hosts = _hosts(site)
    delta, deployed = order.size(), order.deployed(site.timeline)
    chosen = hosts.matching(order.spec.only)
    share = float(chosen[: hosts.spec.count].mean())
    if not share:
        raise NothingFits
    subroutine = site.choose(order.rng, delta / share)
    acting = chosen[:, np.newaxis] * site.timeline.step(deployed[0])
    effects = _effects(hosts, site, subroutine, delta / share, np.stack([acting, acting]), acting, share)
    part = hosts.mean(acting)
    there = part >= part.max() / 2
    if not part.any():
        raise NothingFits
    start = max(deployed[0], float(site.timeline.starts[there.argmax()]))
    facts: dict[str, Any] = {"start": start, "strata": dict(order.spec.only)}
    return regression(order, site, subroutine, effects, deployed, subkind="some_hosts", **facts)


def inject_experiment(order: Order, site: Site) -> Injected:
    """Run a variant that costs more on some hosts, or for some requests, for a while.

    The label identifies the variant's cost, which ends with the variant: it may be reported.
    """
    hosts = _hosts(site)
    delta, (begin, length_s) = order.size(), _span(order, hosts, order.length_s())
    share = float(order.rng.uniform(0.1, 0.5))
    first, last = _window(hosts, begin), max(_window(hosts, begin + length_s), _window(hosts, begin) + 1)
    windows = np.arange(hosts.timeline.windows)
    on = (windows >= first) & (windows < last)
    chosen = np.zeros(hosts.load.shape, dtype=np.bool_)
    part: FloatArray = np.zeros(len(windows))
    if order.type == "hosts":
        members = order.rng.permutation(hosts.spec.count)[: max(1, round(share * hosts.spec.count))]
        chosen[members] = on
        share = len(members) / hosts.spec.count
    else:
        part = np.asarray(share * on, dtype=np.float64)
    start, end = float(hosts.timeline.starts[first]), float(_time(hosts, last))
    rollout = HostRollout(order.id, first, last, chosen, part, ((start, share),), kept=False, variant=True)
    hosts.rollouts.append(rollout)
    subroutine = site.choose(order.rng, delta)
    effects = _effects(hosts, site, subroutine, delta, rollout.reach, rollout.share, share)
    strata = {"variant": rollout.label}
    facts: dict[str, Any] = {"kind": "experiment", "end": end, "strata": strata}
    facts["stages"] = [[start, share]]
    return regression(order, site, subroutine, effects, (start, False), subkind=order.type, **facts)


def _plan(order: Order, hosts: Hosts, spec: RolloutSpec) -> HostRollout:
    """Draw the times at which a rollout reaches each host."""
    takes = float(order.rng.uniform(*spec.length_s))
    aborted = np.floor((order.ordinal + 1) * spec.aborted) > np.floor(order.ordinal * spec.aborted)
    shares = _shares(hosts, spec)
    apart_s = takes / max(len(shares) - 1, 1)
    stages = min(spec.abort_after, len(shares)) if aborted else len(shares)
    wanted = stages * apart_s if aborted else takes
    begin, length_s = _span(order, hosts, wanted)
    apart_s *= length_s / wanted
    times = [_window(hosts, begin + number * apart_s) for number in range(stages)]
    end = _window(hosts, begin + length_s) if aborted or spec.style == "blue_green" else times[-1] + 1
    windows = np.arange(hosts.timeline.windows)
    reached = np.searchsorted(np.array(times), windows, side="right")  # number of stages begun
    reached[windows >= end] = 0 if aborted else len(shares)
    share = np.array([0.0, *shares])[reached]
    chosen = np.zeros(hosts.load.shape, dtype=np.bool_)
    part = np.zeros(len(windows))
    if spec.style == "blue_green":
        rise = np.clip((windows + 0.5 - times[0]) / max(end - times[0], 1), 0.0, 1.0)
        part = np.where((windows >= times[0]) & (windows < end), 1.0 if aborted else rise, 0.0)
        chosen[:, windows >= end] = not aborted
    elif spec.by == "percent":
        part = np.where(share < 1, share, 0.0)
        chosen[:, share >= 1] = True
    else:
        turn = _turns(order, hosts, spec)
        counts = np.rint(share * hosts.spec.count).astype(np.int64)
        chosen = turn[:, np.newaxis] < counts
        chosen[:, share >= 1] = True
    moments = [float(hosts.timeline.starts[time]) for time in times]
    if spec.style == "blue_green" and not aborted:
        moments, shares = [*moments, float(_time(hosts, end))], (shares[0] / 2, 1.0)
    facts = tuple(zip(moments, shares[: len(moments)], strict=True))
    kept, swaps = not aborted, spec.style == "blue_green"
    return HostRollout(order.id, times[0], end, chosen, part, facts, kept=kept, swaps=swaps)


def _shares(hosts: Hosts, spec: RolloutSpec) -> tuple[float, ...]:
    """Return the share of the hosts, or of the requests, that each stage reaches."""
    count = hosts.spec.count
    if spec.style == "blue_green":
        return (1.0,)
    if spec.style == "canary":
        return (1 / count, 1.0) if count > 1 else (1.0,)
    if spec.style == "rolling":
        return tuple((number + 1) / count for number in range(count))
    if spec.by == "region":
        regions = [slot.region for slot in hosts.slots[:count]]
        sizes = sorted(regions.count(name) for name in set(regions))
        return tuple((np.cumsum(sizes) / count).tolist())
    if spec.by == "percent":
        return spec.stages
    counts = [max(1, round(share * count)) for share in spec.stages]
    return tuple(reached / count for reached in dict.fromkeys(counts))


def _turns(order: Order, hosts: Hosts, spec: RolloutSpec) -> FloatArray:
    """Return the order of the hosts: (slots,) ranks; hosts that arrive later come last."""
    count = hosts.spec.count
    rank = np.full(len(hosts.slots), float(count))
    ranked = order.rng.permutation(count)
    if spec.by == "region":
        regions = [slot.region for slot in hosts.slots[:count]]
        ranked = np.array(sorted(range(count), key=lambda n: (regions.count(regions[n]), regions[n], n)))
    rank[ranked] = np.arange(count)
    return rank


def _span(order: Order, hosts: Hosts, wanted_s: float) -> tuple[float, float]:
    """Draw the begin and the length of a rollout or experiment that ends before the next one of its group."""
    low, high = (hosts.timeline.at(share) for share in order.spec.between)
    room = (high - low) / max(order.spec.count, 1)
    length_s = min(wanted_s, _ROOM * room) if room else wanted_s
    begin = low + order.ordinal * room + float(order.rng.uniform()) * max(_ROOM * room - length_s, 0.0)
    return begin, length_s


def _effects(
    hosts: Hosts,
    site: Site,
    subroutine: str,
    delta: float,
    reach: FloatArray,
    share: FloatArray,
    peak: float,
) -> list[StackEffect]:
    """Return effects that cost ``delta`` where they act, and ``peak`` of it in the mean of all hosts.

    Args:
        hosts: The hosts.
        site: Place of the injection.
        subroutine: Subroutine that costs more.
        delta: Change of gCPU on the hosts where it acts.
        reach: (halves, slots, windows) share of each half of a host where the effects act.
        share: (slots, windows) share of each host where the effects act.
        peak: Largest share of all hosts, to which the truth refers.
    """
    mean = hosts.mean(share)
    return [
        replace(effect, cost=effect.cost * peak, profile=mean / peak, by_host=reach / peak)
        for effect in site.change_cost(subroutine, delta, mean)
    ]


def _hosts(site: Site) -> Hosts:
    if site.hosts is None:
        raise NothingFits
    return site.hosts


def _window(hosts: Hosts, at: float) -> int:
    """Return the first window that begins at or after a time, at most the last window."""
    timeline = hosts.timeline
    window = int(np.ceil((at - timeline.start) / timeline.window_s - 1e-9))
    return min(max(window, 0), timeline.windows - 1)


def _time(hosts: Hosts, window: int) -> float:
    return hosts.timeline.start + window * hosts.timeline.window_s


def _subkind(spec: RolloutSpec) -> str:
    return f"{spec.style}_by_{spec.by}" if spec.style == "staged" else spec.style
