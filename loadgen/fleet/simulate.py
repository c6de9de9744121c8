"""A scenario and a seed to a fleet's data: the order in which the parts are drawn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from loadgen.fleet.callgraph import build_graph, incidence
from loadgen.fleet.changes import background
from loadgen.fleet.detectability import since_seen, with_standard_error
from loadgen.fleet.draw import CountArray, build_costs, count_series, draw_counts, without_late
from loadgen.fleet.inject.registry import inject_all
from loadgen.fleet.inject.site import Site
from loadgen.fleet.load import build_load
from loadgen.fleet.metrics import build_metrics
from loadgen.fleet.profile_tree import read_profile_graph
from loadgen.fleet.scenario import Scenario
from loadgen.fleet.streams import Streams
from loadgen.fleet.timeline import Timeline
from loadgen.fleet.written import Written
from pipeline.backtest.dataset import Dataset


@dataclass(frozen=True, slots=True)
class Fleet:
    """A simulated service: its data set, and the stack counts per window that all of it derives from."""

    dataset: Dataset
    counts: CountArray  # (stacks, windows), rows as in dataset.stacks


def simulate(scenario: Scenario, seed: int) -> Fleet:
    """Draw everything about one service. The same scenario and seed give the same fleet.

    Its siblings have other draws, but for their libraries' names and what befalls all of them;
    ``Scenario.of_each_service`` returns the scenario of each.
    """
    streams = Streams(seed, scenario.service if scenario.siblings else "")
    timeline = Timeline(scenario.start, scenario.window_s, scenario.windows)
    graph = (read_profile_graph if scenario.graph.profile else build_graph)(scenario.graph, streams)
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
    written = Written(scenario.graph, injected)
    stacks = written.stacks(costs.stacks)
    found = incidence(stacks)
    changes = background(scenario.changes, streams, scenario.service, timeline, site.subroutines)
    changes += [change for one in injected for change in one.changes]
    samples, totals = count_series(found, counts), counts.sum(axis=0, dtype=np.float64)
    row_of = {series: row for row, series in enumerate(zip(found.kinds, found.names, strict=True))}
    truth = []
    rows_of_truth = (row for one in injected for row in one.truth)
    for row in sorted(rows_of_truth, key=lambda row: (row["start"], row["id"])):
        row, kind = since_seen(row, totals, timeline), row["metric_kind"]
        forms = [(kind, name) for name in written.forms(kind, row["subroutines"][0])]
        if rows := [row_of[form] for form in forms if form in row_of]:
            whole = samples[rows].sum(axis=0)
            row = with_standard_error(row, whole, totals, load.dispersion, timeline)
        if scenario.siblings:  # ids are unique over all services
            row = {**row, "id": f"{scenario.service}-{row['id']}"}
        truth.append(written.truth(row))
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
        stacks=stacks,
        stack_samples=counts.reshape(len(counts), -1, ratio).sum(axis=2, dtype=np.float64),
        metrics=build_metrics(scenario, injected, load, costs.total, timeline, streams),
        changes=tuple(sorted(written.changes(changes), key=lambda change: (change.time, change.id))),
        truth=tuple(truth),
        meta={"scenario": scenario.name, "seed": seed, "servers": scenario.servers.count},
    )
    return Fleet(dataset, counts)
