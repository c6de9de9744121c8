"""The values that travel between stages: frozen, without behaviour, free of any encoding.

Times are seconds since the epoch (UTC); gCPU is a ratio between 0 and 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

MetricKind = Literal["subroutine", "endpoint", "metadata", "service"]
"""What a series measures: gCPU of a subroutine, endpoint or metadata value, or a service-level metric."""

AnnotationKind = Literal["endpoint", "metadata"]
"""What a stack frame can be annotated with (FBDetect §3.2, ``SetFrameMetadata``)."""

RegressionKind = Literal["short_term", "long_term"]
"""Which of the two detection paths found a regression (FBDetect §5.4.1)."""

Detector = Literal["short_term", "long_term", "kdd2018"]
"""What looks for change points: FBDetect §5.4.2, §5.4.5, or the scaled CUSUM of the KDD 2018 paper."""

Direction = Literal["up", "down"]
"""The way in which a regression moves: a rise in gCPU, a drop in throughput."""


@dataclass(frozen=True, slots=True)
class Record:
    """A decoded message with its place in the log."""

    topic: str  # logical name, a key of topics.yaml
    partition: int
    offset: int
    payload: Any


@dataclass(frozen=True, slots=True)
class Outgoing:
    """An encoded message to publish. ``topic`` is a logical name, a key of topics.yaml."""

    topic: str
    key: str
    value: bytes
    headers: tuple[tuple[str, bytes], ...] = ()


@dataclass(frozen=True, slots=True)
class Annotation:
    """Metadata on the frame at ``frame`` (an index into the profile's frames)."""

    frame: int
    kind: AnnotationKind
    value: str


@dataclass(frozen=True, slots=True)
class Profile:
    """One host's stack samples of one interval, identical stacks counted once.

    ``stack_frames[stack_starts[i]:stack_starts[i + 1]]`` are the frames of stack i from the root to the
    leaf, as indexes into ``frames``; ``counts[i]`` is how many samples had that stack. Profiles of a
    service with the same ``id`` are one that was published again; without an id each stands for itself.
    """

    service: str
    host: str
    start: float
    end: float
    frames: tuple[str, ...]
    stack_frames: IntArray  # (frames of all stacks,)
    stack_starts: IntArray  # (stacks + 1,)
    counts: IntArray  # (stacks,)
    annotations: tuple[Annotation, ...] = ()
    release: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    id: str = ""


@dataclass(frozen=True, slots=True)
class MetricPoints:
    """Points of one service-level metric. ``setup`` marks one that explains but is never judged itself."""

    service: str
    metric: str
    timestamps: FloatArray  # (points,)
    values: FloatArray  # (points,)
    setup: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    """A deployed code or configuration change. ``time`` is when it was deployed, not when it was written."""

    id: str
    service: str
    time: float
    title: str
    author: str = ""
    summary: str = ""
    files: tuple[str, ...] = ()
    subroutines: tuple[str, ...] = ()  # modified ones, spelt as in stack frames
    gates: tuple[str, ...] = ()
    content: str = ""  # the diff's text, cut to a bound, for its words


@dataclass(frozen=True, slots=True)
class Progress:
    """Everything of a service in one partition of one topic is stored up to ``watermark``.

    ``earliest`` is the start of the oldest data in the batch that was stored last; a service that is seen
    for the first time is scanned from there on.
    """

    service: str
    topic: str
    partition: int
    watermark: float
    earliest: float


@dataclass(frozen=True, slots=True)
class Judgement:
    """A step's decision on a candidate: the number that it looked at and the bound that it held it against.

    ``reason`` says why the candidate was dropped; it is empty, or a remark, where it passed.
    """

    step: str
    statistic: float
    bound: float
    reason: str = ""


DomainFinding = Literal["new", "too large", "rose", "shifted"]
"""What became of a cost domain (FBDetect §5.4.6): it did not exist before; it is too large to tell the
change from its own noise; it rose with the candidate; it did not, so that the cost came from within."""


@dataclass(frozen=True, slots=True)
class DomainVerdict:
    """What one cost domain says of a candidate; the first three findings let it pass."""

    domain: str  # its kind and what it is, for people: "callers: shop.cart.total"
    finding: DomainFinding
    before: float  # the domain's gCPU before the change
    after: float
    statistic: float  # by how much of what was expected of a true regression the domain rose
    bound: float


@dataclass(frozen=True, slots=True)
class Candidate:
    """A change point that may be a regression, with its levels on both sides.

    Levels are gCPU ratios for gCPU series and the metric's own unit for service-level metrics.
    ``change_time`` is the start of the first window of the new regime.
    """

    metric_kind: MetricKind
    metric: str
    kind: RegressionKind
    change_time: float
    before: float
    after: float
    p_value: float
    statistic: float  # the test's value: likelihood-ratio chi-squared
    group: tuple[Candidate, ...] = ()  # merged members, the representative left out
    passed: tuple[Judgement, ...] = ()  # what steps decided that let it through, in order
    domains: tuple[DomainVerdict, ...] = ()  # what its cost domains said

    @property
    def delta(self) -> float:
        """The change of level, in the series' own unit."""
        return self.after - self.before

    @property
    def relative(self) -> float:
        """The change as a share of the level before; infinite for what did not exist before."""
        return self.delta / self.before if self.before else float("inf")


@dataclass(frozen=True, slots=True)
class Dropped:
    """A candidate that a step dropped: the ledger's line."""

    candidate: Candidate
    step: str
    statistic: float
    bound: float
    reason: str


@dataclass(frozen=True, slots=True)
class Joined:
    """A candidate that turned out to be part of a regression which an earlier scan passed on."""

    regression: str  # the id of its event
    candidate: Candidate


@dataclass(frozen=True, slots=True)
class Scan:
    """One look at one service by one workload: [start, end) with everything found and dropped so far."""

    service: str
    workload: str
    start: float
    analysis_start: float
    analysis_end: float  # where the extended window begins; equals ``end`` without one
    end: float
    series: int  # how many series were scanned
    candidates: tuple[Candidate, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    grown: tuple[Candidate, ...] = ()  # what a regression of an earlier scan has become; also in ``dropped``
    joined: tuple[Joined, ...] = ()  # what belongs to regressions of earlier scans; also in ``dropped``
    part: int = 0
    parts: int = 1


@dataclass(frozen=True, slots=True)
class Suspect:
    """A change that may have caused a regression: relevance from 0 to 1 and the factors it is made of."""

    change: Change
    score: float
    factors: Mapping[str, float]


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
    servers: float | None = None  # how many the service runs on, where that is known


@dataclass(frozen=True, slots=True)
class CommonNoise:
    """What the noise of a service's gCPU series is like at each level, and what that tells of one of them."""

    log_levels: FloatArray  # (knots,) ascending
    log_variances: FloatArray  # (knots,) of a mean of exposure 1, see detect.noise
    freedom: float  # degrees of freedom that it is worth to each series


@dataclass(frozen=True, slots=True)
class SeriesMatrix:
    """Series × windows of one service, gathered for a scan.

    For gCPU ``samples[i, j]`` of ``totals[j]`` samples held series i in window j, and a window with a total
    of 0 has no data. For service-level metrics ``samples`` holds the mean value of each window, ``totals``
    is 1, and a window without points is NaN.
    """

    start: float
    resolution_s: float
    kinds: tuple[MetricKind, ...]  # (series,)
    names: tuple[str, ...]  # (series,)
    samples: FloatArray  # (series, windows)
    totals: FloatArray  # (windows,)
    dilution: FloatArray | None = None  # (windows,) by which all shares moved: detect.composition
    noise: CommonNoise | None = None  # of all the service's series: detect.common_noise


@dataclass(frozen=True, slots=True)
class StackMatrix:
    """Distinct stacks of one service with their sample counts in two spans of time, before and after.

    ``total_before`` and ``total_after`` count all the service's samples in the same spans, so that a
    quotient of the two is a gCPU ratio.
    """

    stacks: tuple[tuple[str, ...], ...]  # root first
    before: FloatArray  # (stacks,)
    after: FloatArray  # (stacks,)
    total_before: float
    total_after: float
