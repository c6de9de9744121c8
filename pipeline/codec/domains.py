"""What cost domains said of a candidate, as JSON: the same in scans, ledger lines and events."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

from pipeline.codec import fields
from pipeline.errors import InvalidMessage
from pipeline.model import DomainDecision, DomainFinding

if TYPE_CHECKING:
    from pipeline.codec.schema import scans as shapes


def domain_to_json(said: DomainDecision) -> shapes.DomainDecision:
    """Return what a cost domain says as a JSON object."""
    return {
        "domain": said.domain,
        "finding": said.finding,
        "before": said.before,
        "after": said.after,
        "statistic": said.statistic,
        "bound": said.bound,
    }


def domain_from_json(raw: object) -> DomainDecision:
    """Check what a cost domain says that is already parsed.

    Raises:
        InvalidMessage: the field that is missing or wrong.
    """
    if not isinstance(raw, dict):
        raise InvalidMessage("domains: each should be an object")
    finding = fields.text(raw, "finding")
    if finding not in get_args(DomainFinding):
        raise InvalidMessage(f"domains: unknown finding {finding[:40]!r}")
    return DomainDecision(
        domain=fields.text(raw, "domain", limit=4 * fields.MAX_NAME),  # the names of several callers
        finding=finding,  # type: ignore[arg-type]  # one of the literal's values, just checked
        before=fields.number(raw, "before"),
        after=fields.number(raw, "after"),
        statistic=fields.number(raw, "statistic"),
        bound=fields.number(raw, "bound"),
    )
