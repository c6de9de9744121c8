"""Regressions as they are reported, each with its group and its ranked suspects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pipeline.model.candidate import Candidate
from pipeline.model.messages import Change
from pipeline.model.silence import AppliedSilence


@dataclass(frozen=True, slots=True)
class Suspect:
    """A change that may have caused a regression, with its score from 0 to 1 and the score's factors."""

    change: Change
    score: float
    factors: Mapping[str, float]
    switches: tuple[Change, ...] = ()  # the changes of code behind the gates that it flips, latest first
    evidence: Mapping[str, float] | None = (
        None  # evidence that the score's weights multiply, by weight, in nats
    )


@dataclass(frozen=True, slots=True)
class SetupExplanation:
    """A set-up metric that explains a regression better than any change does."""

    metric: str
    change_time: float  # of the metric itself
    before: float
    after: float
    correlation: float  # of the regression's series with it, -1 to 1
    explained: float  # share of the regression that the metric's own change makes


@dataclass(frozen=True, slots=True)
class StackChange:
    """The change of one stack's share of all samples: a line of a stack difference."""

    stack: tuple[str, ...]  # root first
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class Regression:
    """One regression as it is reported, with its group and its ranked suspects."""

    id: str
    service: str
    workload: str
    candidate: Candidate
    detected_time: float
    suspects: tuple[Suspect, ...] = ()
    stacks: tuple[StackChange, ...] = ()  # the largest changes among its stacks
    explanations: tuple[SetupExplanation, ...] = ()  # the likeliest first
    servers: float | None = None  # number of the service's servers; None if unknown
    silences: tuple[AppliedSilence, ...] = ()  # silences about it that do not silence it
