"""Kept tests: trials that would detect a fixed regression, for changes of the same subroutines."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from pipeline.analysis.rootcause.trials import TrialFinding, measures
from pipeline.experiments.trials import trials_needed
from pipeline.model import FloatArray, MetricKind, VerdictKind
from pipeline.model.frames import element

_REAL: tuple[VerdictKind | None, ...] = (None, "true", "acknowledged")
"""States of a regression that people confirm as unwanted."""


@dataclass(frozen=True, slots=True)
class FixedRegression:
    """A regression of production that was fixed, and whose cause is known.

    Args:
        id: Of its event.
        service: That regressed.
        kind: Of its metric.
        metric: Its name.
        size: As trials measure it: of gCPU a share of the service's CPU, else relative.
        cause: Id of the change that did it.
        modified: Subroutines that the change modified.
        seen: Subroutines that rose with it: its own, those of its group, and those of its stacks.
    """

    id: str
    service: str
    kind: MetricKind
    metric: str
    size: float
    cause: str
    modified: frozenset[str]
    seen: frozenset[str]


@dataclass(frozen=True, slots=True)
class MetricTrials:
    """Number of trials that show a regression in a metric of trials; None if too many."""

    metric: str
    needed: int | None


@dataclass(frozen=True, slots=True)
class KeptTest:
    """Instructions for a trial that would detect a fixed regression if it came back.

    Args:
        regression: Id of its event.
        service: To run.
        cause: Id of the change that caused it.
        metric_kind: Of the metric that regressed.
        metric: That regressed.
        threshold: Size of the regression, as trials measure it.
        subroutines: For whose changes the test is kept.
        experiments: That the causing change had.
        trials: By metric of trials that measures the regression, as far as A/A trials say.
    """

    regression: str
    service: str
    cause: str
    metric_kind: MetricKind
    metric: str
    threshold: float
    subroutines: tuple[str, ...]
    experiments: tuple[str, ...]
    trials: tuple[MetricTrials, ...]

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels of the stacks that reach the test: its subroutines, and the annotation that regressed."""
        own = (
            () if self.metric_kind in ("subroutine", "service") else (element(self.metric_kind, self.metric),)
        )
        return (*self.subroutines, *own)


def is_fixed(verdict: VerdictKind | None, *, contradicted: bool, repaired: bool) -> bool:
    """Return whether a regression is closed as fixed.

    It is if a person says so and scans do not contradict, or if it has been gone since a change that modifies
    its subroutines, unless people call it false or planned.

    Args:
        verdict: The state of its event; None if nobody said anything.
        contradicted: Scans still see it, though they should not.
        repaired: It is resolved, and by a change that is known.
    """
    return not contradicted if verdict == "fixed" else repaired and verdict in _REAL


def keep_test(
    fixed: FixedRegression, findings: Sequence[TrialFinding], differences: Mapping[str, FloatArray]
) -> KeptTest:
    """Return the test that a fixed regression leaves.

    Args:
        fixed: The regression.
        findings: Of experiments of its service.
        differences: By metric, (trials,) relative differences of A/A trials.
    """
    return KeptTest(
        regression=fixed.id,
        service=fixed.service,
        cause=fixed.cause,
        metric_kind=fixed.kind,
        metric=fixed.metric,
        threshold=fixed.size,
        subroutines=tuple(sorted(_subroutines(fixed))),
        experiments=tuple(
            dict.fromkeys(finding.experiment for finding in findings if finding.is_of(fixed.cause))
        ),
        trials=tuple(
            MetricTrials(metric, trials_needed(history, fixed.size))
            for metric, history in sorted(differences.items())
            if len(history) > 1 and measures(metric, fixed.kind, fixed.metric)
        ),
    )


def touched_tests(kept: Sequence[KeptTest], subroutines: Collection[str]) -> tuple[KeptTest, ...]:
    """Return the kept tests of which a change modifies a subroutine, the largest regression first."""
    modified = set(subroutines)
    tests = [test for test in kept if modified.intersection(test.subroutines)]
    return tuple(sorted(tests, key=lambda test: (-test.threshold, test.regression)))


def _subroutines(fixed: FixedRegression) -> frozenset[str]:
    """Return the subroutine that regressed, and those of its cause that rose with it.

    A cause may modify further subroutines. If it is not known which of them rose, all count.
    """
    own = frozenset([fixed.metric] if fixed.kind == "subroutine" else [])
    regressed = own | (fixed.modified & fixed.seen)
    return regressed or fixed.modified
