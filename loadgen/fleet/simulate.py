"""Simulation of a fleet from a scenario and a seed: the order in which the parts are drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from loadgen.fleet.callgraph import CallGraph, Incidence, build_graph, incidence
from loadgen.fleet.changes import background
from loadgen.fleet.detectability import since_seen, with_standard_error
from loadgen.fleet.draw import CountArray, StackCosts, build_costs, count_series, draw_counts, without_late
from loadgen.fleet.host_draw import HostDraws, count_strata
from loadgen.fleet.host_labels import build_senders
from loadgen.fleet.hosts import build_hosts
from loadgen.fleet.inject.effects import Injected
from loadgen.fleet.inject.registry import inject_all
from loadgen.fleet.inject.site import Site
from loadgen.fleet.load import LoadFactors, build_load, cycle_of
from loadgen.fleet.metrics import build_metrics
from loadgen.fleet.mix_shifts import mix_rows, traffic_shifts
from loadgen.fleet.profile_tree import read_profile_graph
from loadgen.fleet.requests import draw_requests
from loadgen.fleet.scenario import Scenario
from loadgen.fleet.streams import Streams
from loadgen.fleet.timeline import Timeline
from loadgen.fleet.written import Written
from pipeline.backtest.dataset import Dataset
from pipeline.model import FloatArray


@dataclass(frozen=True, slots=True)
class Fleet:
    """A simulated service: its data set, and the stack counts per window from which all of it derives."""

    dataset: Dataset
    counts: CountArray  # (stacks, windows), rows as in dataset.stacks
    draws: HostDraws | None = None  # draws of the hosts, if they are kept apart


@dataclass(frozen=True, slots=True)
class _Service:
    """One service as drawn, before any sample."""

    scenario: Scenario
    streams: Streams
    timeline: Timeline
    graph: CallGraph
    site: Site
    injected: list[Injected]
    load: LoadFactors
    costs: StackCosts


def simulate(scenario: Scenario, seed: int) -> Fleet:
    """Draw everything about one service. The same scenario and seed give the same fleet.

    Its siblings have other draws, except for their libraries' names and the injections that all of them have;
    ``Scenario.of_each_service`` returns the scenario of each.
    """
    drawn = _draw(scenario, Streams(seed, scenario.service if scenario.siblings else ""))
    timeline, streams, injected, costs = drawn.timeline, drawn.streams, drawn.injected, drawn.costs
    written = Written(scenario.graph, injected)
    stacks = written.stacks(costs.stacks)
    series = incidence(stacks)
    ratio = round(scenario.stack_window_s / scenario.window_s)
    draws = _host_draws(drawn)
    if draws is None:
        counts = draw_counts(scenario, costs, drawn.load, timeline, streams)
        counts = without_late(scenario, costs.stacks, counts, timeline, streams)
        counted = None
    else:
        counted = count_strata(draws, series, ratio)
        counts = counted.counts
    changes = background(scenario.changes, streams, scenario.service, timeline, drawn.site.subroutines)
    changes += [change for injection in injected for change in injection.changes]
    samples, totals = count_series(series, counts), counts.sum(axis=0, dtype=np.float64)
    dataset = Dataset(
        service=scenario.service,
        start=timeline.start,
        end=timeline.end,
        window_s=scenario.window_s,
        stack_window_s=scenario.stack_window_s,
        kinds=series.kinds,
        names=series.names,
        samples=samples,
        totals=totals,
        stacks=stacks,
        stack_samples=counts.reshape(len(counts), -1, ratio).sum(axis=2, dtype=np.float64),
        metrics=build_metrics(scenario, injected, drawn.load, costs.total, timeline, streams),
        changes=tuple(sorted(written.changes(changes), key=lambda change: (change.time, change.id))),
        truth=_truth(drawn, written, series, samples, totals),
        requests=draw_requests(scenario, timeline, drawn.load, streams),
        meta={"scenario": scenario.name, "seed": seed, "servers": scenario.servers.count},
    )
    if counted:
        dataset = replace(
            dataset,
            strata=counted.strata,
            stratum_totals=counted.totals,
            stratum_samples=counted.samples,
            late=counted.late,
        )
    return Fleet(dataset, counts, draws)


def _draw(scenario: Scenario, streams: Streams) -> _Service:
    """Draw the code, its injections, and the spread of the load over endpoints and hosts."""
    timeline = Timeline(scenario.start, scenario.window_s, scenario.windows)
    graph = (read_profile_graph if scenario.graph.profile else build_graph)(scenario.graph, streams)
    hosts = None
    if scenario.hosts:
        hosts = build_hosts(scenario.hosts, timeline, cycle_of(scenario.load, timeline), streams)
    site = Site(scenario.service, graph, timeline, hosts)
    injected = inject_all(scenario, site, streams)
    load = build_load(
        scenario,
        timeline,
        graph.endpoints,
        streams,
        shifts=[
            *(effect for injection in injected for effect in injection.endpoints),
            *traffic_shifts(scenario, site, streams),
        ],
        outages=[effect for injection in injected for effect in injection.hosts],
    )
    costs = build_costs(scenario, graph, injected, timeline.windows)
    return _Service(scenario, streams, timeline, graph, site, injected, load, costs)


def _host_draws(drawn: _Service) -> HostDraws | None:
    """Return the inputs of the hosts' draws; None if hosts are not kept apart."""
    hosts, scenario = drawn.site.hosts, drawn.scenario
    if hosts is None:
        return None
    every_s = scenario.changes.release_every_s
    strata, senders = build_senders(hosts, scenario.service, every_s, drawn.streams)
    return HostDraws(
        scenario=scenario,
        graph=drawn.graph,
        injected=drawn.injected,
        costs=drawn.costs,
        hosts=hosts,
        load=drawn.load,
        timeline=drawn.timeline,
        streams=drawn.streams,
        strata=strata,
        senders=senders,
    )


def _truth(
    drawn: _Service, written: Written, incidences: Incidence, samples: FloatArray, totals: FloatArray
) -> tuple[Mapping[str, Any], ...]:
    """Return the truth in the order of time; ``samples`` and ``totals`` are the drawn counts."""
    scenario, timeline = drawn.scenario, drawn.timeline
    row_of = {series: row for row, series in enumerate(zip(incidences.kinds, incidences.names, strict=True))}
    truth: list[Mapping[str, Any]] = []
    rows_of_truth = (row for injection in drawn.injected for row in injection.truth)
    for row in sorted(rows_of_truth, key=lambda row: (row["start"], row["id"])):
        row, kind = since_seen(row, totals, timeline), row["metric_kind"]
        forms = [(kind, name) for name in written.forms(kind, row["subroutines"][0])]
        if rows := [row_of[form] for form in forms if form in row_of]:
            whole = samples[rows].sum(axis=0)
            row = with_standard_error(row, whole, totals, drawn.load.dispersion, timeline)
        if scenario.siblings:  # ids are unique over all services
            row = {**row, "id": f"{scenario.service}-{row['id']}"}
        truth.append(written.truth(row))
    truth += mix_rows(scenario, drawn.site)
    return tuple(sorted(truth, key=lambda row: float(row["start"])))
