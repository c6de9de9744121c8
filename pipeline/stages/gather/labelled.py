"""Labelled series: what people answered, as truth, for backtests that try other settings (KDD 2018 §3.2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pipeline.analysis.feedback import is_right
from pipeline.model.clock import to_iso
from pipeline.model.metric_kind import is_gcpu
from pipeline.stages.gather.reported import Answered

_KINDS = {"false": "transient", "cost-shift": "cost_shift"}
"""Verdict → kind of truth, of what is not to be reported. A duplicate has the truth of the other event."""


def truth_of(answered: Sequence[Answered]) -> list[dict[str, Any]]:
    """Return what people answered of gCPU series as rows of a truth file, one an event."""
    rows = []
    for one in answered:
        reported, state = one.reported, one.state
        right = is_right(state, one.cause)
        kind = "regression" if right else _KINDS.get(state.verdict) if state else None
        if right is None or kind is None or not is_gcpu(reported.metric_kind):
            continue
        rows.append(
            {
                **{"id": reported.id, "kind": kind, "service": reported.service},
                **{"subroutines": [reported.metric], "metric_kind": reported.metric_kind},
                **{"start": to_iso(reported.change_time), "end": None, "delta": reported.delta},
                "change": one.cause.subject if one.cause else None,
            }
        )
    return rows
