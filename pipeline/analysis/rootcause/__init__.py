"""Root-cause analysis: the changes that may have caused a regression, ranked by the evidence on each."""

from pipeline.analysis.rootcause.correlation import SERVERS
from pipeline.analysis.rootcause.evidence import (
    Cause,
    CauseConfig,
    ClusterEvidence,
    ScanEvidence,
    find_causes,
    latest_value,
    weigh_changes,
)
from pipeline.analysis.rootcause.gates import Gates
from pipeline.analysis.rootcause.ranking import (
    FEATURES,
    Evidence,
    RankingConfig,
    candidate_changes,
    confidences,
    features,
    first_announcements,
    leave_out,
    over_cases,
    weights_of,
)
from pipeline.analysis.rootcause.request_changes import RequestReach, attribute_reach, rank_request_changes
from pipeline.analysis.rootcause.request_evidence import request_types, route_reached
from pipeline.analysis.rootcause.text import NO_WORDS, ChangeTexts, Words, change_words, compact

__all__ = [
    "FEATURES",
    "NO_WORDS",
    "SERVERS",
    "Cause",
    "CauseConfig",
    "ChangeTexts",
    "ClusterEvidence",
    "Evidence",
    "Gates",
    "RankingConfig",
    "RequestReach",
    "ScanEvidence",
    "Words",
    "attribute_reach",
    "candidate_changes",
    "change_words",
    "compact",
    "confidences",
    "features",
    "find_causes",
    "first_announcements",
    "latest_value",
    "leave_out",
    "over_cases",
    "rank_request_changes",
    "request_types",
    "route_reached",
    "weigh_changes",
    "weights_of",
]
