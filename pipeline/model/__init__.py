"""The values that travel between stages: frozen, without behaviour, free of any encoding.

Times are seconds since the epoch (UTC); gCPU is a ratio between 0 and 1.
"""

from pipeline.model.arrays import BoolArray, FloatArray, Int32Array, IntArray
from pipeline.model.candidate import Candidate, Dropped, Joined, divide
from pipeline.model.decision import CostlierRequests, Decision, DomainDecision, DomainFinding
from pipeline.model.messages import (
    Annotation,
    Change,
    MetricPoints,
    Outgoing,
    Profile,
    Progress,
    Record,
    RouteCall,
    RouteReach,
)
from pipeline.model.metric_kind import METRIC_KINDS, AnnotationKind, MetricKind, RegressionKind, is_gcpu
from pipeline.model.metric_metadata import MetricMetadata
from pipeline.model.regression import Regression, SetupExplanation, StackChange, Suspect
from pipeline.model.requests import (
    BUCKETS_AN_OCTAVE,
    RESPONSE_CLASSES,
    RequestCounts,
    RequestPeriods,
    TypeCounts,
    is_time_column,
    time_column,
    time_type,
)
from pipeline.model.scan import Rename, Scan, Unjudged
from pipeline.model.series import (
    Detector,
    Direction,
    SeriesKey,
    SeriesMatrix,
    SharedVariancePrior,
    StackMatrix,
)
from pipeline.model.silence import AppliedSilence, CostMeasure, ExpectedCost, Silence, SilenceKind
from pipeline.model.strata import RATE_LABEL, StrataMatrix, Stratum, StratumCounts
from pipeline.model.trial import ExperimentEnd, ExperimentKind, SideName, TrialMetric, TrialSide
from pipeline.model.verdict import Verdict, VerdictKind

__all__ = [
    "BUCKETS_AN_OCTAVE",
    "RATE_LABEL",
    "METRIC_KINDS",
    "RESPONSE_CLASSES",
    "Annotation",
    "AnnotationKind",
    "AppliedSilence",
    "BoolArray",
    "Candidate",
    "Change",
    "SharedVariancePrior",
    "Detector",
    "Direction",
    "CostMeasure",
    "CostlierRequests",
    "Decision",
    "DomainDecision",
    "DomainFinding",
    "Dropped",
    "ExpectedCost",
    "ExperimentEnd",
    "ExperimentKind",
    "FloatArray",
    "Int32Array",
    "IntArray",
    "Joined",
    "MetricKind",
    "MetricMetadata",
    "MetricPoints",
    "Outgoing",
    "Profile",
    "Progress",
    "Record",
    "Regression",
    "RegressionKind",
    "Rename",
    "RequestCounts",
    "RequestPeriods",
    "RouteCall",
    "RouteReach",
    "Scan",
    "SeriesKey",
    "SeriesMatrix",
    "Silence",
    "SideName",
    "SilenceKind",
    "SetupExplanation",
    "StackChange",
    "StackMatrix",
    "StrataMatrix",
    "Stratum",
    "StratumCounts",
    "Suspect",
    "TrialMetric",
    "TrialSide",
    "TypeCounts",
    "Unjudged",
    "Verdict",
    "VerdictKind",
    "divide",
    "is_gcpu",
    "is_time_column",
    "time_column",
    "time_type",
]
