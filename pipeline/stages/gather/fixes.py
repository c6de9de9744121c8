"""What became of the regressions that somebody called fixed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pipeline.analysis.feedback import FixState, fix_state
from pipeline.analysis.lifecycle.recovery import span_s
from pipeline.messages.fields import EARLIEST_S, LATEST_S
from pipeline.settings.workloads import Workload
from pipeline.stages.gather.reported import Answered
from pipeline.storage.interface import Store


def due_s(workload: Workload) -> float:
    """Return how long after a repair scans of a workload must have seen that a regression is gone."""
    return (
        span_s(workload.analysis_s + workload.extended_s, workload.historical_s) + workload.rerun_interval_s
    )


def gather_fixes(
    store: Store, answered: Sequence[Answered], workloads: Mapping[str, Workload]
) -> dict[str, FixState]:
    """Return what became of each regression whose state is ``fixed``, by the event's id.

    One of a workload that is not known waits.
    """
    fixed = [one for one in answered if one.state and one.state.verdict == "fixed"]
    last_scans: dict[tuple[str, str], float] = {}
    found: dict[str, FixState] = {}
    for one in fixed:
        reported, said = one.reported, one.state
        workload = workloads.get(reported.workload)
        if workload is None or said is None:
            continue
        key = (reported.service, reported.workload)
        if key not in last_scans:
            rows = store.rows("scans", reported.service, EARLIEST_S, LATEST_S, workload=reported.workload)
            last_scans[key] = max((row["time"] for row in rows), default=EARLIEST_S)
        found[reported.id] = fix_state(said, reported, last_scans[key], due_s(workload))
    return found
