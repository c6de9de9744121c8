"""Accuracy suite: scenarios × seeds, each simulated, backtested and scored, and their summaries."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from loadgen.evaluation.encode import rate_to_json, score_to_json
from loadgen.evaluation.rates import Rate
from loadgen.evaluation.reading import truth_from_json
from loadgen.evaluation.runs import score_backtest
from loadgen.evaluation.scoring import SIZES
from loadgen.fleet.scenario import load_scenario
from loadgen.fleet.simulate import simulate
from loadgen.harness import Mean, mean_of, run_in_workers
from pipeline.backtest.run import Backtest, detect_scans, judge_scans
from pipeline.model.steps import DETECTION
from pipeline.settings.config import Settings
from pipeline.settings.workloads import load_workloads
from pipeline.stages.ablation import Without

Run = Mapping[str, Any]
"""One run as JSON: scenario, seed, steps that were left out, seconds, and its score."""


@dataclass(frozen=True, slots=True)
class Job:
    """One run to make."""

    scenario: str
    seed: int
    workloads: tuple[str, ...]
    without: tuple[str, ...] = ()  # keys of pipeline.model.steps that are left out


@dataclass(frozen=True, slots=True)
class Figure:
    """One column of the suite's table: its path in a score, and its better direction."""

    name: str
    path: tuple[str, ...]
    higher_is_better: bool
    unit: str = "share"  # or "time"


FIGURES = (
    Figure("precision", ("precision",), True),
    Figure("recall", ("recall",), True),
    Figure("detectable", ("rates", "detectable", "value"), True),
    Figure("repeated", ("rates", "repeated", "value"), False),
    Figure("false per series", ("false_positive_rate",), False),
    Figure("delay", ("delay_s", "median"), False, "time"),
    Figure("cost shifts told", ("rates", "cost_shifts", "value"), False),
    Figure("top 1", ("root_cause", "top_1", "value"), True),
    Figure("top 3", ("root_cause", "top_3", "value"), True),
    Figure("false suggestions", ("root_cause", "false_suggestions", "value"), False),
    Figure("group precision", ("grouping", "precision", "value"), True),
    Figure("group recall", ("grouping", "recall", "value"), True),
)


_POOLED = {
    "rates": ("precision", "recall", "repeated", "false_positive_rate", "detectable", "cost_shifts"),
    "root_cause": ("top_1", "top_3", "false_suggestions"),
}
"""Rates of all runs together, by the part of a score that they stand in."""


def run_suite(
    jobs: Sequence[Job],
    *,
    processes: int,
    known: Mapping[Job, Run] | None = None,
    advance: Callable[[Job, Run], None] | None = None,
) -> list[Run]:
    """Make every run not in ``known``, several at a time, and return all in the order of ``jobs``.

    Raises:
        SmidgenError: a scenario or workload is wrong, or a process died.
    """
    done = {job: run for job, run in (known or {}).items() if job in jobs}
    fleets: dict[tuple[str, int, tuple[str, ...]], list[Job]] = {}
    for job in jobs:
        if job not in done:
            fleets.setdefault((job.scenario, job.seed, job.workloads), []).append(job)
    for of_fleet, runs in run_in_workers(run_fleet, fleets.values(), processes):
        for job, run in zip(of_fleet, runs, strict=True):
            done[job] = run
            if advance:
                advance(job, run)
    return [done[job] for job in jobs]


def run_fleet(jobs: Sequence[Job]) -> list[Run]:
    """Make runs of one scenario, seed and workloads, which differ in the steps that they leave out.

    The fleet is simulated once, and scanned once for each set of the detector's parts. Later steps do not
    affect detection, so that runs without one of them judge the same change points.
    """
    began = time.perf_counter()
    first = jobs[0]
    workloads = load_workloads(first.workloads)
    services = load_scenario(first.scenario).of_each_service()
    datasets = [simulate(scenario, first.seed).dataset for scenario in services]
    truth = truth_from_json([row for dataset in datasets for row in dataset.truth])
    seconds = {"simulate": time.perf_counter() - began}
    done: dict[Job, Run] = {}
    for lacking in dict.fromkeys(_lacking_parts(job) for job in jobs):
        began = time.perf_counter()
        detected = [
            list(detect_scans(dataset, workloads, settings=Settings(), without=lacking))
            for dataset in datasets
        ]
        seconds["detect"] = time.perf_counter() - began
        for job in jobs:
            if _lacking_parts(job) != lacking:
                continue
            began = time.perf_counter()
            without = frozenset(job.without)
            backtests = [
                judge_scans(dataset, workloads, scans, settings=Settings(), without=without)
                for dataset, scans in zip(datasets, detected, strict=True)
            ]
            scored = score_to_json(score_backtest(truth, _together(backtests), workloads))
            for detail in ("judged", "missed", "curves"):
                del scored[detail]
            seconds["judge"] = time.perf_counter() - began
            done[job] = {
                "scenario": job.scenario,
                "seed": job.seed,
                "without": list(job.without),
                "seconds": dict(seconds),
                "score": scored,
            }
    return [done[job] for job in jobs]


def _together(backtests: Sequence[Backtest]) -> Backtest:
    """Return the backtests of several services as one."""
    return Backtest(
        tuple(scan for backtest in backtests for scan in backtest.scans),
        tuple(event for backtest in backtests for event in backtest.events),
    )


def _lacking_parts(job: Job) -> Without:
    return frozenset(job.without) & frozenset(DETECTION)


def figure_of(run: Run, figure: Figure) -> float | None:
    """Return one figure of a run; None if it has no value."""
    value: Any = run["score"]
    for key in figure.path:
        value = None if value is None else value.get(key)
    return None if value is None else float(value)


def mean_json(mean: Mean | None) -> dict[str, Any] | None:
    """Return a mean as a JSON object."""
    return asdict(mean) if mean else None


def scenario_means(runs: Sequence[Run]) -> dict[str, dict[str, Mean | None]]:
    """Return scenario → figure → mean over its seeds."""
    return {
        scenario: {
            figure.name: mean_of(
                (figure_of(run, figure) for run in runs if run["scenario"] == scenario),
                lowest=0.0,
                highest=1.0 if figure.unit == "share" else math.inf,
            )
            for figure in FIGURES
        }
        for scenario in dict.fromkeys(run["scenario"] for run in runs)
    }


def pooled(runs: Sequence[Run]) -> dict[str, Any]:
    """Return all runs as one, with counts added up; rates have Wilson's interval.

    Runs of large scenarios weigh more here than in the means, because they have more cases.
    """
    scores = [run["score"] for run in runs]
    rates = {
        name: rate_to_json(_sum(score[part].get(name) for score in scores))
        for part, names in _POOLED.items()
        for name in names
    }
    groups = {name: _sum(score["grouping"][name] for score in scores) for name in ("precision", "recall")}
    return {
        **rates,
        **{f"group_{name}": rate_to_json(rate) for name, rate in groups.items()},
        "cost_shifts_by_form": _by_form(scores),
        "recall_by_size": _by_name(scores, "recall_by_size", "size"),
        "precision_by_size": _by_name(scores, "precision_by_size", "size"),
        "kinds": [
            {"kind": kind, "expected": expected, "reported": rate_to_json(rate)}
            for (kind, expected), rate in _kinds(scores).items()
        ],
        "false_positive_kinds": _added(score["false_positive_kinds"] for score in scores),
        "funnel": _funnel(scores),
    }


def _sum(rates: Iterable[Mapping[str, Any] | None]) -> Rate:
    total = Rate(0, 0)
    for rate in rates:
        total += Rate(rate["hits"], rate["of"]) if rate else Rate(0, 0)
    return total


def _by_name(scores: Sequence[Mapping[str, Any]], field: str, key: str) -> list[dict[str, Any]]:
    rows = []
    for name, _, _ in SIZES:
        rate = _sum(row for score in scores for row in score[field] if row[key] == name)
        if rate.of:
            rows.append({key: name, **rate_to_json(rate)})
    return rows


def _by_form(scores: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    rows = [row for score in scores for row in score.get("cost_shifts", ())]
    forms = sorted({row["form"] for row in rows})
    return [{"form": form, **rate_to_json(_sum(r for r in rows if r["form"] == form))} for form in forms]


def _kinds(scores: Sequence[Mapping[str, Any]]) -> dict[tuple[str, bool], Rate]:
    rows = [row for score in scores for row in score["kinds"]]
    keys = sorted({(row["kind"], row["expected"]) for row in rows}, key=lambda key: (not key[1], key[0]))
    return {key: _sum(r["reported"] for r in rows if (r["kind"], r["expected"]) == key) for key in keys}


def _added(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for count in counts:
        total.update(count)
    return dict(sorted(total.items(), key=lambda item: (-item[1], item[0])))


def _funnel(scores: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Add up funnels; a step that a run lacks passes all of that run's candidates."""
    funnels = [score["funnel"] for score in scores]
    order = list(dict.fromkeys(step["step"] for funnel in funnels for step in funnel["steps"]))
    totals = dict.fromkeys(order, 0)
    for funnel in funnels:
        left = 0
        remaining = {step["step"]: step["remaining"] for step in funnel["steps"]}
        for step in order:
            left = remaining.get(step, left)
            totals[step] += left
    return {
        "scans": sum(funnel["scans"] for funnel in funnels),
        "series": sum(funnel["series"] for funnel in funnels),
        "steps": [{"step": step, "remaining": left} for step, left in totals.items()],
    }
