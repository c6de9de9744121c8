"""Expectations from verdicts: a regression that somebody called expected stays silent, up to its cost."""

from __future__ import annotations

from glob import escape

from pipeline.analysis.lifecycle.silence import size_of
from pipeline.model import Candidate, Silence, Verdict
from pipeline.model.metric_kind import is_gcpu
from pipeline.model.units import DAY_S

EXPECTED_S = 90 * DAY_S
"""Duration of the silence if the verdict gives no end."""


def expectation_of(said: Verdict, candidate: Candidate) -> Silence | None:
    """Return the expectation that a verdict makes of the regression it is about.

    The subroutine may cost the reported amount once more, and a service-level metric may change by it, in
    whichever direction it gets worse; what goes beyond that is reported.

    Args:
        said: A verdict; None is returned for any but ``expected``.
        candidate: The regression, as it was reported.
    """
    own_unit = not is_gcpu(candidate.metric_kind)
    if said.verdict != "expected" or not (own_unit or candidate.delta > 0):
        return None
    return Silence(
        id=f"verdict-{said.event}",
        service=said.service,
        kind="expected",
        time=said.time,
        start=candidate.change_time_span[0],
        end=said.time + EXPECTED_S if said.end is None else said.end,
        owner=said.author,
        subroutine=escape(candidate.metric),
        cost=size_of(candidate)[0],
        reason=said.comment,
        measure="metric" if own_unit else "cpu",
    )
