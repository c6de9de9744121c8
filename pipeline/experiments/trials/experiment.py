"""State of an experiment: its whole trials, and whether a verdict is due."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.experiments.trials.decision import Bounds
from pipeline.experiments.trials.verdict import Sides
from pipeline.model import FloatArray, TrialMetric

OVERDUE_S = 86_400.0
"""Event time without a trial after which an incomplete experiment gets its verdict."""

HISTORY_S = 14 * 86_400.0
"""Span in which A/A trials count (ServiceLab §4.2: two weeks)."""

THRESHOLD = 0.01
"""Relative difference that is a regression, if the trials name none."""

MOST_CELLS = 20_000_000
"""Most points of one side of a metric, trials times the longest: beyond it only the first points count."""


@dataclass(frozen=True, slots=True)
class ExperimentSide:
    """One side of a trial without its points. Times are epoch seconds."""

    trial: str
    side: str
    kind: str
    time: float
    digest: str
    release: str = ""
    factors: tuple[str, ...] = ()  # as name=value, sorted
    expected: int = 0  # trials of the experiment; 0 is not known
    sequential: bool = False
    points: int = 0


@dataclass(frozen=True, slots=True)
class Experiment:
    """Messages of an experiment in any order: sides of trials, and its end."""

    service: str
    name: str
    sides: tuple[ExperimentSide, ...]  # the ends are those without a trial


@dataclass(frozen=True, slots=True)
class WholeTrial:
    """A trial with both sides: A, then B."""

    name: str
    sides: tuple[ExperimentSide, ExperimentSide]

    @property
    def time(self) -> float:
        """Time when the trial was whole."""
        return max(side.time for side in self.sides)


@dataclass(frozen=True, slots=True)
class ExperimentState:
    """State of an experiment."""

    experiment: Experiment
    whole: tuple[WholeTrial, ...]  # in the order of time
    half: int  # trials of which one side is missing
    expected: int  # trials; 0 is not known
    complete: bool
    overdue: bool
    last_time: float

    @property
    def kind(self) -> str:
        """A/B, or A/A if all sides say so."""
        kinds = {side.kind for side in self.experiment.sides if side.trial}
        return "A/A" if kinds == {"A/A"} else "A/B"

    @property
    def sequential(self) -> bool:
        """Whether it ends as soon as it is decided."""
        return any(side.sequential for side in self.experiment.sides)


def standing_of(experiment: Experiment, now: float) -> ExperimentState:
    """Return the state of an experiment when the event time of its service is ``now``.

    It does not matter in which order its messages came, nor how often: of one side of a trial the message
    with the latest time counts. An experiment is complete with as many whole trials as any message says, or
    if its end names no number, with those that are there.
    """
    latest: dict[tuple[str, str], ExperimentSide] = {}
    for side in sorted(experiment.sides, key=lambda message: (message.time, message.digest)):
        latest[side.trial, side.side] = side
    names = {trial for trial, _ in latest if trial}
    both = [name for name in names if (name, "A") in latest and (name, "B") in latest]
    whole = sorted(
        (WholeTrial(name, (latest[name, "A"], latest[name, "B"])) for name in both),
        key=lambda trial: (trial.time, trial.name),
    )
    expected = max((side.expected for side in experiment.sides), default=0)
    ended = any(not side.trial for side in experiment.sides)
    last = max(side.time for side in experiment.sides)
    complete = bool(whole) and (len(whole) >= expected if expected else ended)
    return ExperimentState(
        experiment,
        tuple(whole),
        len(names) - len(whole),
        expected,
        complete,
        not complete and now - last >= OVERDUE_S,
        last,
    )


def bounds_of(metrics: Iterable[TrialMetric], alpha: float) -> Bounds:
    """Return the bounds of a metric: the strictest of its trials.

    Less is worse if any of them says so.
    """
    every = list(metrics)
    thresholds = [metric.threshold for metric in every if metric.threshold]
    down = any(metric.direction == "down" for metric in every)
    return Bounds(min(thresholds, default=THRESHOLD), alpha, "down" if down else "up")


Measured = Mapping[tuple[str, str], TrialMetric]
"""By digest of the message and name of the metric."""


def metrics_of(trials: Sequence[WholeTrial], measured: Measured) -> dict[str, list[TrialMetric]]:
    """Return the measurements of trials by metric, sides A and B in turn, of metrics that both sides have."""
    names = {name for _, name in measured}
    metrics: dict[str, list[TrialMetric]] = defaultdict(list)
    for trial in trials:
        for name in sorted(names):
            a, b = (measured.get((side.digest, name)) for side in trial.sides)
            if a is not None and b is not None:
                metrics[name] += [a, b]
    return dict(metrics)


def sides_of(pairs: Sequence[TrialMetric]) -> tuple[Sides, tuple[int, ...]]:
    """Return the points of a metric without the sender's warm-up, and the number of dropped points.

    Both sides of a trial lose as many. A trial that is marked whole has no points.

    Args:
        pairs: Sides A and B of each trial in turn.
    """
    a, b = pairs[::2], pairs[1::2]
    marked = [max(side_a.warm_up, side_b.warm_up) for side_a, side_b in zip(a, b, strict=True)]
    lost = tuple(
        min(count, max(len(side_a.points), len(side_b.points)))
        for count, side_a, side_b in zip(marked, a, b, strict=True)
    )
    return Sides(_rows(a, marked), _rows(b, marked)), lost


def _rows(side: Sequence[TrialMetric], marked: Sequence[int]) -> FloatArray:
    rest = [metric.points[count:] for metric, count in zip(side, marked, strict=True)]
    width = min(max((len(points) for points in rest), default=0), MOST_CELLS // max(1, len(rest)))
    rows = np.full((len(rest), max(1, width)), np.nan)
    for row, points in zip(rows, rest, strict=True):
        row[: min(width, len(points))] = points[:width]
    return rows
