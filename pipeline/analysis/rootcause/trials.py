"""Evidence of trials before a release on a change that may have caused a regression.

A verdict is a test whose errors are known from A/A experiments, so its evidence is a likelihood ratio: the
probability of the verdict for a change that slows the service down, over that for another change. Production
sees much smaller regressions than trials do. A change that passed is as likely the cause of those as before.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.model import Candidate, Change, FloatArray, MetricKind
from pipeline.model.metric_kind import is_gcpu

_FALSE_POSITIVES = (0.01, 0.5)
_FALSE_NEGATIVES = (0.05, 0.95)
"""Bounds on a model's error rates: few A/A experiments show none, and trials are no production load."""

_SHORTEST_ID = 7  # fewest characters that name a commit


@dataclass(frozen=True, slots=True)
class MetricFinding:
    """Result of an experiment for one metric.

    Args:
        metric: Its name.
        failed: Whether the new code is worse; else a regression of the threshold is excluded.
        threshold: Relative.
        false_positives: Share of A/A experiments that its model calls different.
        false_negatives: Share of regressions of the threshold that it misses.
        model: Name of the model.
    """

    metric: str
    failed: bool
    threshold: float
    false_positives: float
    false_negatives: float
    model: str = ""

    def measures(self, kind: MetricKind, metric: str) -> bool:
        """Return whether the metric measures a series."""
        return measures(self.metric, kind, metric)

    @property
    def evidence(self) -> float:
        """Log likelihood ratio of the finding: a change that regresses, against another change."""
        wrong, missed = (
            min(max(error, low), high)
            for error, (low, high) in (
                (self.false_positives, _FALSE_POSITIVES),
                (self.false_negatives, _FALSE_NEGATIVES),
            )
        )
        if self.failed:
            return max(math.log((1.0 - missed) / wrong), 0.0)
        return min(math.log(missed / (1.0 - wrong)), 0.0)


@dataclass(frozen=True, slots=True)
class TrialFinding:
    """Last verdict on an experiment, for its decided metrics.

    Args:
        names: By which the new code was called: its releases, and last the experiment.
        metrics: Those that passed or failed.
    """

    names: tuple[str, ...]
    metrics: tuple[MetricFinding, ...]

    @property
    def experiment(self) -> str:
        """Name of the experiment."""
        return self.names[-1]

    def is_of(self, change: str) -> bool:
        """Return whether the experiment tested a change: its id or the name may be shortened."""
        return any(
            min(len(name), len(change)) >= _SHORTEST_ID
            and (name.startswith(change) or change.startswith(name))
            for name in self.names
        )


@dataclass(frozen=True, slots=True)
class Caused:
    """A regression of production: its series, its size relative to the service or metric, and its change."""

    change: str
    kind: MetricKind
    metric: str
    size: float


def measures(trial_metric: str, kind: MetricKind, metric: str) -> bool:
    """Return whether a metric of trials measures a series: it is the metric itself, or of gCPU one of CPU."""
    return "cpu" in trial_metric.lower() if is_gcpu(kind) else trial_metric == metric


def trial_evidence(
    changes: Sequence[Change], candidate: Candidate, findings: Sequence[TrialFinding]
) -> FloatArray:
    """Return the evidence of trials for each change, in nats: (changes,), 0 where there was none.

    Metrics that measure the regressed series count; if there are none, the metric that failed most clearly,
    since one cause shows in many metrics. A passed metric counts only if it measures the series and the
    regression is as large as its threshold.
    """
    return np.array([_of_change(change, candidate, findings) for change in changes], dtype=np.float64)


def _of_change(change: Change, candidate: Candidate, findings: Sequence[TrialFinding]) -> float:
    metrics = [metric for finding in findings if finding.is_of(change.id) for metric in finding.metrics]
    own = [metric for metric in metrics if metric.measures(*candidate.series)]
    failed = [metric.evidence for metric in own or metrics if metric.failed]
    if failed:
        return max(failed)
    size = size_of(candidate.metric_kind, candidate.delta, candidate.relative)
    return min((metric.evidence for metric in own if size >= metric.threshold), default=0.0)


def size_of(kind: MetricKind, delta: float, relative: float) -> float:
    """Return the size of a regression as trials measure it: the rise of gCPU is a share of the service."""
    return delta if is_gcpu(kind) else abs(relative)


def missed_regressions(
    findings: Sequence[TrialFinding], caused: Sequence[Caused]
) -> dict[str, dict[str, int]]:
    """Return the number of changes that passed trials and regressed in production, by metric and model.

    They are false negatives of trials: regressions of at least the threshold, in a series of the metric.
    """
    missed: dict[str, dict[str, int]] = {}
    for finding in findings:
        for metric in finding.metrics:
            changes = {
                regression.change
                for regression in caused
                if not metric.failed
                and regression.size >= metric.threshold
                and metric.measures(regression.kind, regression.metric)
                and finding.is_of(regression.change)
            }
            if changes:
                models = missed.setdefault(metric.metric, {})
                models[metric.model] = models.get(metric.model, 0) + len(changes)
    return missed
