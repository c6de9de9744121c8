"""What trials before its release say of a change that may have caused a regression.

A verdict is a test whose errors are known from A/A experiments, so it is evidence by Bayes' rule: by how much
likelier the verdict is of a change that slows the service down than of another one. Production sees much
smaller regressions than trials do. A change that passed is as likely the cause of those as before.
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
"""Bounds of a model's errors: few A/A experiments show none, and a trial's load is not production's."""

_SHORTEST_ID = 7  # characters by which a commit is named


@dataclass(frozen=True, slots=True)
class MetricFinding:
    """What an experiment found of one metric.

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
        """Return whether it is a measure of a series."""
        return measures(self.metric, kind, metric)

    @property
    def evidence(self) -> float:
        """The logarithm of how much likelier the finding is of a change that regresses than of another."""
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
    """What the last verdict on an experiment found, of the metrics that are decided.

    Args:
        names: By which the new code was called: its releases, and last the experiment.
        metrics: Those that passed or failed.
    """

    names: tuple[str, ...]
    metrics: tuple[MetricFinding, ...]

    @property
    def experiment(self) -> str:
        """Its name."""
        return self.names[-1]

    def is_of(self, change: str) -> bool:
        """Return whether the experiment tested a change: by its id, one of both perhaps shortened."""
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

    Of metrics that measure the regressed series those count; otherwise the one that failed most clearly,
    since one cause shows in many metrics. One that passed counts only where it measures the series, and
    where the regression is as large as its threshold.
    """
    return np.array([_of_change(change, candidate, findings) for change in changes], dtype=np.float64)


def _of_change(change: Change, candidate: Candidate, findings: Sequence[TrialFinding]) -> float:
    metrics = [metric for one in findings if one.is_of(change.id) for metric in one.metrics]
    own = [metric for metric in metrics if metric.measures(*candidate.series)]
    failed = [metric.evidence for metric in own or metrics if metric.failed]
    if failed:
        return max(failed)
    size = size_of(candidate.metric_kind, candidate.delta, candidate.relative)
    return min((metric.evidence for metric in own if size >= metric.threshold), default=0.0)


def size_of(kind: MetricKind, delta: float, relative: float) -> float:
    """Return a regression as trials measure it: gCPU is a share of the whole service, so its rise is, too."""
    return delta if is_gcpu(kind) else abs(relative)


def missed_regressions(
    findings: Sequence[TrialFinding], caused: Sequence[Caused]
) -> dict[str, dict[str, int]]:
    """Return how many changes that passed production found to regress, by metric and model.

    They are false negatives of trials: as large as the threshold, of a series that the metric measures.
    """
    found: dict[str, dict[str, int]] = {}
    for finding in findings:
        for metric in finding.metrics:
            changes = {
                one.change
                for one in caused
                if not metric.failed
                and one.size >= metric.threshold
                and metric.measures(one.kind, one.metric)
                and finding.is_of(one.change)
            }
            if changes:
                models = found.setdefault(metric.metric, {})
                models[metric.model] = models.get(metric.model, 0) + len(changes)
    return found
