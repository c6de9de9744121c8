"""Repeated runs of the whole pipeline, one per value of a setting: the sound way to its ROC curve."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from loadgen.evaluation.matching import Tolerances, in_reach, tolerance_s
from loadgen.evaluation.model import FunnelStep, RunFunnel, ScoredEvent, TruthRow
from loadgen.evaluation.rates import Rate
from loadgen.evaluation.reading import events_from_json
from loadgen.evaluation.scoring import Score, score
from loadgen.evaluation.sweep import SweepCurve, SweepPoint
from pipeline.backtest.dataset import Dataset
from pipeline.backtest.funnel import count_funnel
from pipeline.backtest.run import Backtest, run_backtest
from pipeline.settings.workloads import Threshold, Workload

FACTORS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
"""By what a workload's threshold is multiplied, one run each."""


def score_backtest(truth: Sequence[TruthRow], found: Backtest, workloads: Sequence[Workload]) -> Score:
    """Score a backtest, funnel included; rows that no workload scans are left out."""
    tolerances = Tolerances({workload.name: tolerance_s(workload) for workload in workloads})
    truth = in_reach(truth, workloads)
    return score(truth, backtest_events(found), tolerances=tolerances, funnel=backtest_funnel(found))


def backtest_events(found: Backtest) -> tuple[ScoredEvent, ...]:
    """Return a backtest's events in the form for scoring."""
    return events_from_json(found.events)


def backtest_funnel(found: Backtest) -> RunFunnel:
    """Return a backtest's funnel over all workloads."""
    counted = count_funnel(found.scans)
    steps = (("detected", counted.change_points), *counted.remaining)
    return RunFunnel(counted.scans, counted.series, tuple(FunnelStep(*step) for step in steps))


def threshold_curve(
    dataset: Dataset,
    workload: Workload,
    truth: Sequence[TruthRow],
    *,
    factors: Sequence[float] = FACTORS,
    advance: Callable[[], None] | None = None,
) -> SweepCurve:
    """Backtest a dataset with several thresholds and return a point for each.

    Args:
        dataset: One service.
        workload: Workload whose threshold, absolute or relative, is multiplied.
        truth: Truth of the service.
        factors: Factors of the threshold.
        advance: Called after each run.
    """
    points = []
    for factor in sorted(factors, reverse=True):
        bound = factor * (workload.threshold.absolute or workload.threshold.relative or 0.0)
        absolute = workload.threshold.absolute is not None
        threshold = Threshold(absolute=bound) if absolute else Threshold(relative=bound)
        chosen = workload.model_copy(update={"threshold": threshold})
        figures = score_backtest(truth, run_backtest(dataset, [chosen]), [chosen])
        points.append(SweepPoint(bound, figures.recall, figures.false_positive_rate or Rate(0, 0)))
        if advance:
            advance()
    return SweepCurve("threshold", tuple(points))
