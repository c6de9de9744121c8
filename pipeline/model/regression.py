"""What is reported: a regression with its group and its ranked suspects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pipeline.model.candidate import Candidate
from pipeline.model.messages import Change
from pipeline.model.silence import AppliedSilence


@dataclass(frozen=True, slots=True)
class Suspect:
    """A change that may have caused a regression: relevance from 0 to 1 and the factors it is made of."""

    change: Change
    score: float
    factors: Mapping[str, float]
    switches: tuple[Change, ...] = ()  # the changes of code behind the gates that it flips, latest first
    evidence: Mapping[str, float] | None = None  # what the score's weights multiply, by weight, in nats


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
    """By how much one stack's share of all samples changed: a line of a stack difference."""

    stack: tuple[str, ...]  # root first
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class Regression:
    """What is reported: one regression with its group and its ranked suspects."""

    id: str
    service: str
    workload: str
    candidate: Candidate
    detected_time: float
    suspects: tuple[Suspect, ...] = ()
    stacks: tuple[StackChange, ...] = ()  # the largest changes among its stacks
    explanations: tuple[SetupExplanation, ...] = ()  # the likeliest first
    servers: float | None = None  # how many the service runs on, where that is known
    silences: tuple[AppliedSilence, ...] = ()  # that are about it, and do not silence it
