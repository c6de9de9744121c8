"""A scenario and a seed to a fleet's data: the order in which the parts are drawn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from loadgen.fleet.callgraph import build_graph, incidence
from loadgen.fleet.changes import background
from loadgen.fleet.detectability import with_standard_error
from loadgen.fleet.draw import CountArray, build_costs, count_series, draw_counts, without_late
from loadgen.fleet.inject.registry import inject_all
from loadgen.fleet.inject.site import Site
from loadgen.fleet.load import build_load
from loadgen.fleet.metrics import build_metrics
from loadgen.fleet.scenario import Scenario
from loadgen.fleet.streams import Streams
from loadgen.fleet.timeline import Timeline
from pipeline.backtest.dataset import Dataset


@dataclass(frozen=True, slots=True)
class Fleet:
    """A simulated service: its data set, and the stack counts per window that all of it derives from."""

    dataset: Dataset
    counts: CountArray  # (stacks, windows), rows as in dataset.stacks


def simulate(scenario: Scenario, seed: int) -> Fleet:
    """Draw everything about one service. The same scenario and seed give the same fleet."""
    streams = Streams(seed)
    timeline = Timeline(scenario.start, scenario.window_s, scenario.windows)
    graph = build_graph(scenario.graph, streams)
    site = Site(scenario.service, graph, timeline)
    injected = inject_all(scenario, site, streams)
    load = build_load(
        scenario,
        timeline,
        graph.endpoints,
        streams,
        shifts=[effect for one in injected for effect in one.endpoints],
        outages=[effect for one in injected for effect in one.hosts],
    )
    costs = build_costs(scenario, graph, injected, timeline.windows)
    drawn = draw_counts(scenario, costs, load, timeline, streams)
    counts = without_late(scenario, costs.stacks, drawn, timeline, streams)
    found = incidence(costs.stacks)
    changes = background(scenario.changes, streams, scenario.service, timeline, site.subroutines)
    changes += [change for one in injected for change in one.changes]
    truth = sorted((row for one in injected for row in one.truth), key=lambda row: (row["start"], row["id"]))
    samples, totals = count_series(found, counts), counts.sum(axis=0, dtype=np.float64)
    place = {series: row for row, series in enumerate(zip(found.kinds, found.names, strict=True))}
    told = [
        with_standard_error(row, samples[place[key]], totals, load.dispersion, timeline)
        if (key := (row["metric_kind"], row["subroutines"][0])) in place
        else row
        for row in truth
    ]
    ratio = round(scenario.stack_window_s / scenario.window_s)
    dataset = Dataset(
        service=scenario.service,
        start=timeline.start,
        end=timeline.end,
        window_s=scenario.window_s,
        stack_window_s=scenario.stack_window_s,
        kinds=found.kinds,
        names=found.names,
        samples=samples,
        totals=totals,
        stacks=costs.stacks,
        stack_samples=counts.reshape(len(counts), -1, ratio).sum(axis=2, dtype=np.float64),
        metrics=build_metrics(scenario, injected, load, costs.total, timeline, streams),
        changes=tuple(sorted(changes, key=lambda change: (change.time, change.id))),
        truth=tuple(told),
        meta={"scenario": scenario.name, "seed": seed, "servers": scenario.servers.count},
    )
    return Fleet(dataset, counts)
