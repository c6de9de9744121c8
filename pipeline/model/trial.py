"""Trials before a release: what one side of a trial measured, and that an experiment has ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from pipeline.model.arrays import FloatArray

ExperimentKind = Literal["A/B", "A/A"]
"""The old code against the new, or two runs of the same code, by which models are chosen."""

SideName = Literal["A", "B"]


@dataclass(frozen=True, slots=True)
class TrialMetric:
    """What one side of a trial measured of one metric."""

    metric: str
    points: FloatArray  # (points,) in the order of time
    warm_up: int = 0  # first points that the sender marks as warm-up
    threshold: float = 0.0  # relative difference that is a regression; 0: the judge's own
    direction: Literal["up", "down"] = "up"


@dataclass(frozen=True, slots=True)
class TrialSide:
    """One side of one trial. ``time`` is when it ended, epoch seconds."""

    service: str
    experiment: str
    trial: str
    side: SideName
    kind: ExperimentKind
    time: float
    metrics: tuple[TrialMetric, ...]
    release: str = ""  # what this side runs, such as a commit
    factors: Mapping[str, str] = field(default_factory=dict)  # of its machine
    trials: int = 0  # how many the experiment will have; 0 is not known
    sequential: bool = False  # whether it ends as soon as it is decided
    digest: str = ""  # of the message: the same bytes are one side of one trial, however often they come


@dataclass(frozen=True, slots=True)
class ExperimentEnd:
    """No more trials of an experiment come. ``trials`` is how many there are; 0 is not known."""

    service: str
    experiment: str
    time: float
    trials: int = 0
    digest: str = ""
