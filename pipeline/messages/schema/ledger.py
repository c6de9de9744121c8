"""A line of the ledger: what became of one candidate of one scan."""

from __future__ import annotations

from typing import NotRequired

from typing_extensions import TypedDict  # pydantic cannot read typing.TypedDict before Python 3.12

from pipeline.messages.schema.scans import Candidate, Decision, DomainDecision
from pipeline.messages.schema.types import LongText, Moment, Name, Several, Text, message


@message
class Windows(TypedDict):
    """Where the windows of a scan lie."""

    start: Moment
    analysis_start: Moment
    analysis_end: Moment
    end: Moment


@message
class ScanOf(TypedDict):
    """Which scan a line or an event is of."""

    service: Name
    workload: Name
    scan: Windows


@message
class LedgerLine(ScanOf):
    """What a ledger file says of one candidate; a line without a step is of one that was reported."""

    id: NotRequired[Text]
    candidate: Candidate
    step: NotRequired[Text | None]
    statistic: float
    bound: float
    reason: NotRequired[Text]
    code: NotRequired[Text]
    subjects: NotRequired[Several[LongText] | None]
    passed: NotRequired[Several[Decision] | None]
    domains: NotRequired[Several[DomainDecision] | None]
