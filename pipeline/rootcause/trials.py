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

from pipeline.model import Candidate, Change, FloatArray
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
    """

    metric: str
    failed: bool
    threshold: float
    false_positives: float
    false_negatives: float

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
        names: By which the new code was called: its releases, and the experiment.
        metrics: Those that passed or failed.
    """

    names: tuple[str, ...]
    metrics: tuple[MetricFinding, ...]

    def is_of(self, change: Change) -> bool:
        """Return whether the experiment tested a change: by its id, one of both perhaps shortened."""
        return any(
            min(len(name), len(change.id)) >= _SHORTEST_ID
            and (name.startswith(change.id) or change.id.startswith(name))
            for name in self.names
        )


def trial_evidence(
    changes: Sequence[Change], candidate: Candidate, findings: Sequence[TrialFinding]
) -> FloatArray:
    """Return the evidence of trials for each change, in nats: (changes,), 0 where there was none.

    Of a service-level metric that the experiment measured, too, that metric counts; otherwise the one that
    failed most clearly, since one cause shows in many metrics. A metric that passed counts where the
    regression is as large as its threshold, and is of CPU or of that metric.
    """
    return np.array([_of_change(change, candidate, findings) for change in changes], dtype=np.float64)


def _of_change(change: Change, candidate: Candidate, findings: Sequence[TrialFinding]) -> float:
    metrics = [metric for one in findings if one.is_of(change) for metric in one.metrics]
    cpu = is_gcpu(candidate.metric_kind)
    own = [] if cpu else [metric for metric in metrics if metric.metric == candidate.metric]
    failed = [metric.evidence for metric in own or metrics if metric.failed]
    if failed:
        return max(failed)
    # gCPU is a share of the whole service's CPU, so its rise is relative to that.
    size = candidate.delta if cpu else abs(candidate.relative)
    passed = [metric.evidence for metric in (metrics if cpu else own) if size >= metric.threshold]
    return min(passed, default=0.0)
