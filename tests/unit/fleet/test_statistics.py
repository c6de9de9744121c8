"""The simulator against theory: FBDetect's Appendix A, and what any count of stacks has to obey."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.stats import t as student

from loadgen.fleet.callgraph import build_graph, endpoint_of, incidence
from loadgen.fleet.draw import build_costs
from loadgen.fleet.inject.registry import inject_all
from loadgen.fleet.inject.site import Site
from loadgen.fleet.scenario import GraphSpec, Scenario, load_scenario
from loadgen.fleet.simulate import Fleet, simulate
from loadgen.fleet.streams import Streams
from loadgen.fleet.timeline import Timeline
from pipeline.model import FloatArray
from pipeline.model.frames import series_of

STILL = {
    "load": {"daily": 0, "weekly": 0, "mix_daily": 0, "mix_weekly": 0},
    "noise": {"drift": 0, "mix_drift": 0},
    "changes": {"count": 0},
    "graph": {"subroutines": 80, "endpoints": 4},
}
"""Nothing that moves by itself: only sampling and the servers' variance are left."""


def scenario(**keys: Any) -> Scenario:
    return Scenario.model_validate({"name": "test", "duration": "14d", **STILL, **keys})


def one_generation(count: int, *, cpu: float = 0.4, variance: float = 0.01) -> dict[str, Any]:
    generation = {"share": 1, "cpu": cpu, "variance": variance}
    return {"count": count, "missing": 0, "cost_spread": 0, "generations": [generation]}


@cache
def of_servers(count: int, per_minute: float = 6.0) -> Fleet:
    return simulate(scenario(servers=one_generation(count), samples_per_minute=per_minute), seed=5)


def gcpu(fleet: Fleet) -> FloatArray:
    return fleet.dataset.samples / fleet.dataset.totals


@pytest.mark.parametrize("per_minute", [0.5, 6.0, 60.0])
def test_the_variance_of_gcpu_is_that_of_appendix_a3(per_minute: float) -> None:
    """Expression 9 with independent parts is p(1 - p) σ²/μ² for a server; sampling adds p(1 - p)/N."""
    servers = 400
    ratios = gcpu(of_servers(servers, per_minute))
    p = ratios.mean(axis=1)
    chosen = (p > 0.002) & (p < 0.5)
    p, ratios = p[chosen], ratios[chosen]
    assert len(p) > 30
    sampled = servers * per_minute * 10
    expected = p * (1 - p) * (1 / sampled + (0.01 / 0.4**2) / servers)
    assert np.median(ratios.var(axis=1) / expected) == pytest.approx(1, abs=0.04)
    assert np.all(np.abs(ratios.var(axis=1) / expected - 1) < 0.25)
    beyond_sampling = ratios.var(axis=1) - p * (1 - p) / sampled
    bound = p * (1 + p) * (0.01 / 0.4**2) / servers  # Expression 11 with k = 1/p
    assert np.median(beyond_sampling / bound) < 1


def test_the_detectable_size_falls_with_the_root_of_the_servers_as_in_appendix_a2() -> None:
    """Expression 7: Δ ≈ s/√n · T, here of one day of windows at 99 %."""
    windows = 144
    detectable = [
        gcpu(of_servers(count)).std(axis=1, ddof=1) / np.sqrt(windows) * student.ppf(0.99, windows - 1)
        for count in (100, 400, 1600)
    ]
    typical = [float(np.median(sizes)) for sizes in detectable]
    assert typical[0] / typical[1] == pytest.approx(2, rel=0.05)
    assert typical[1] / typical[2] == pytest.approx(2, rel=0.05)


def test_sixteen_times_the_servers_make_a_regression_four_times_as_significant() -> None:
    small, large = gcpu(of_servers(100)), gcpu(of_servers(1600))
    rows = np.flatnonzero((small.mean(axis=1) > 0.002) & (small.mean(axis=1) < 0.1))
    delta = 4 * small[rows].std(axis=1) * np.sqrt(2 / 144)  # four standard errors: a day against a day

    def typical(series: FloatArray) -> float:
        before, after = series[:, :144], series[:, 144:288] + delta[:, None]
        error = np.sqrt((before.var(axis=1) + after.var(axis=1)) / 144)
        return float(np.mean((after.mean(axis=1) - before.mean(axis=1)) / error))

    assert len(rows) > 30
    assert typical(small[rows]) == pytest.approx(4, abs=0.6)
    assert typical(large[rows]) == pytest.approx(16, abs=1)


def test_counts_vary_more_than_poisson_by_the_servers_variance() -> None:
    totals = of_servers(400).dataset.totals
    fano = 1 + 60 * 0.01 / 0.4**2  # 60 samples of a server and window
    assert totals.var() / totals.mean() == pytest.approx(fano, rel=0.12)


def test_drift_is_autocorrelated_and_as_wide_as_ordered() -> None:
    noise = {"drift": 0.05, "mix_drift": 0, "correlation": "4h", "dispersion": 0}
    made = simulate(
        scenario(servers=one_generation(200_000), noise=noise, graph={"subroutines": 20, "endpoints": 2}),
        seed=2,
    )
    leaf = made.counts[np.argsort(made.counts.sum(axis=1))[-10:]] / made.dataset.totals
    relative = leaf / leaf.mean(axis=1, keepdims=True)
    centred = relative - 1
    lag_one = (centred[:, 1:] * centred[:, :-1]).mean(axis=1) / centred.var(axis=1)
    assert np.median(lag_one) == pytest.approx(np.exp(-600 / 14_400), abs=0.04)
    assert 0.02 < np.median(relative.std(axis=1)) < 0.06


def test_load_and_mix_have_days_and_weekends() -> None:
    cycles = {"daily": 0.4, "weekly": 0.2}
    still = simulate(scenario(load={**cycles, "mix_daily": 0, "mix_weekly": 0}), seed=1).dataset
    made = simulate(scenario(load={**cycles, "mix_daily": 0.2, "mix_weekly": 0.1}), seed=1).dataset
    days = still.totals.reshape(14, 144)
    assert days[:, 90].mean() / days[:, 18].mean() == pytest.approx(1.4 / 0.6, rel=0.05)
    assert days[[5, 6, 12, 13]].mean() / days[[0, 1, 2, 3, 4, 7, 8, 9]].mean() == pytest.approx(0.8, rel=0.02)
    endpoints = [row for row, kind in enumerate(made.kinds) if kind == "endpoint"]
    shares = (made.samples / made.totals)[endpoints].reshape(len(endpoints), 14, 144).mean(axis=1)
    swing = (shares.max(axis=1) - shares.min(axis=1)) / shares.mean(axis=1)
    assert swing.max() > 0.1


@cache
def with_everything() -> Fleet:
    return simulate(load_scenario("small"), seed=3)


def test_a_caller_has_at_least_the_samples_of_each_callee_through_it() -> None:
    data, counts = with_everything().dataset, with_everything().counts
    row_of = {key: row for row, key in enumerate(zip(data.kinds, data.names, strict=True))}
    through: dict[tuple[str, str], FloatArray] = {}
    for stack, samples in zip(data.stacks, counts, strict=True):
        edges = {(caller, callee) for caller, callee in zip(stack, stack[1:], strict=False)}
        for edge in edges:
            through[edge] = through.get(edge, np.zeros(len(samples))) + samples
    assert len(through) > 200
    for (caller, callee), samples in through.items():
        assert np.all(data.samples[row_of[series_of(caller)]] >= samples)
        assert np.all(data.samples[row_of[series_of(callee)]] >= samples)


def test_recursion_counts_once_and_no_series_exceeds_the_total() -> None:
    data, counts = with_everything().dataset, with_everything().counts
    recursive = [stack for stack in data.stacks if len(set(stack)) < len(stack)]
    assert recursive
    name = recursive[0][-1]
    holding = np.array([name in stack for stack in data.stacks])
    row = data.names.index(name)
    assert np.array_equal(data.samples[row], counts[holding].sum(axis=0))
    assert np.all(data.samples <= data.totals)


def test_stack_windows_add_up_to_windows() -> None:
    data = with_everything().dataset
    assert np.array_equal(data.stack_samples.sum(axis=0), data.totals.reshape(-1, 6).sum(axis=1))


def test_windows_without_data_are_empty_everywhere() -> None:
    data = with_everything().dataset
    empty = data.totals == 0
    assert empty.sum() == 4
    assert not data.samples[:, empty].any()
    assert all(len(points.timestamps) == (~empty).sum() for points in data.metrics)


def test_late_data_is_missing_at_the_end_alone() -> None:
    keys: dict[str, Any] = {"servers": one_generation(2000, variance=0), "duration": "1d"}
    late = simulate(scenario(late={"share": 0.3, "delay": "30m"}, **keys), seed=1)
    whole = simulate(scenario(**keys), seed=1)
    assert np.array_equal(late.counts[:, :-3], whole.counts[:, :-3])
    share = late.counts[:, -3:].sum() / whole.counts[:, -3:].sum()
    assert share == pytest.approx(0.7, abs=0.01)


SHIFTS = ["move", "rename", "inline", "split", "extract", "class_refactor"]


@pytest.mark.parametrize("kind", SHIFTS)
def test_a_cost_shift_conserves_the_total_and_that_of_every_endpoint(kind: str) -> None:
    made = scenario(inject=[{"kind": "cost_shift", "types": [kind], "delta": [0.005, 0.02]}])
    streams = Streams(4)
    graph = build_graph(made.graph, streams)
    timeline = Timeline(made.start, made.window_s, made.windows)
    injected = inject_all(made, Site(made.service, graph, timeline), streams)
    assert injected[0].moves
    costs = build_costs(made, graph, injected, made.windows)
    assert np.allclose(costs.total, 1, atol=1e-12)
    moved = 0.0
    for endpoint in ("", *graph.endpoints):
        rows = [row for row, stack in enumerate(costs.stacks) if endpoint_of(stack) == endpoint]
        varying = [costs.varying[row] if row in costs.varying else costs.base[row] for row in rows]
        whole = np.sum([value * np.ones((2, made.windows)) for value in varying], axis=0)
        assert np.allclose(whole, whole[:, :1], atol=1e-12)
        moved += sum(float(np.ptp(value)) for value in varying if np.ndim(value))
    assert moved > 0.002


def test_a_rename_leaves_no_trace_in_other_series() -> None:
    keys: dict[str, Any] = {
        "servers": {**one_generation(200_000, variance=0), "cost_spread": 0.1},
        "noise": {"drift": 0.05, "correlation": "100d"},
        "samples_per_minute": 60,
        "duration": "2d",
    }
    group = {"kind": "cost_shift", "types": ["rename"], "delta": [0.05, 0.1]}
    renamed = simulate(scenario(inject=[group], **keys), seed=4).dataset
    plain = simulate(scenario(**keys), seed=4).dataset
    row_of = {key: row for row, key in enumerate(zip(renamed.kinds, renamed.names, strict=True))}
    (truth,) = renamed.truth
    gone = {truth["moved_from"], truth["subroutines"][0]}
    callee = {s for stack in plain.stacks if gone & set(stack) for s in stack} - gone
    assert len(callee) > 4
    day = slice(-20, None)
    for row, (kind, name) in enumerate(zip(plain.kinds, plain.names, strict=True)):
        if name in gone:
            continue
        one = plain.samples[row, day].sum() / plain.totals[day].sum()
        other = renamed.samples[row_of[kind, name], day].sum() / renamed.totals[day].sum()
        noise = np.sqrt(2 * one / plain.totals[day].sum())
        assert other == pytest.approx(one, abs=5 * noise + 1e-9), name


def test_the_largest_preset_has_the_papers_distribution_of_gcpu() -> None:
    spec = load_scenario("large").graph
    assert (spec.subroutines, load_scenario("large").servers.count) == (2000, 10_000)
    graph = build_graph(spec, Streams(7))
    found = incidence(graph.stacks)
    shares = (found.matrix @ graph.weights)[[kind == "subroutine" for kind in found.kinds]]
    assert len(shares) == 2000
    assert graph.weights.sum() == pytest.approx(1)
    assert shares.min() >= 0.99e-5  # every one non-trivial: 0.001 %
    assert np.median(shares) == pytest.approx(0.000083, rel=0.01)  # 0.0083 %
    assert np.quantile(shares, 0.99) / np.median(shares) > 100  # a heavy tail


@pytest.mark.parametrize(
    ("subroutines", "endpoints"), [(20, 2), (20, 5), (61, 3), (500, 120)], ids=lambda n: str(n)
)
def test_a_graph_has_as_many_subroutines_and_endpoints_as_ordered(subroutines: int, endpoints: int) -> None:
    for seed in range(3):
        graph = build_graph(GraphSpec(subroutines=subroutines, endpoints=endpoints), Streams(seed))
        kinds = incidence(graph.stacks).kinds
        assert (kinds.count("subroutine"), kinds.count("endpoint")) == (subroutines, endpoints)
        assert kinds.count("metadata") > 0
