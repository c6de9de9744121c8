"""Kept tests of a service, from its fixed regressions, their causes and its A/A trials."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from pipeline.analysis.rootcause.trials import Caused
from pipeline.experiments.selection import FixedRegression, KeptTest, is_fixed, keep_test
from pipeline.experiments.trials.verdict import steady_differences
from pipeline.messages.fields import EARLIEST_S, LATEST_S
from pipeline.model import FloatArray
from pipeline.settings.workloads import Workload
from pipeline.stages.gather.change_findings import all_findings, caused_by
from pipeline.stages.gather.reported import Answered, gather_answered, gather_fixes, gather_repairs
from pipeline.stages.gather.trials import gather_experiments, gather_history
from pipeline.storage.interface import RowQuery, Store


def gather_kept(store: Store, service: str, workloads: Mapping[str, Workload]) -> tuple[KeptTest, ...]:
    """Return the kept tests of a service's fixed regressions, in the order in which these began.

    Args:
        store: Holds regressions, verdicts, changes and trials.
        service: The service.
        workloads: By name; they determine when scans would have contradicted a fix.
    """
    answered = gather_answered(store, service, all_events=True)
    fixes, repairs = gather_fixes(store, answered, workloads), gather_repairs(store, service)
    fixed = []
    for regression in answered:
        event_id = regression.reported.id
        verdict = regression.state.verdict if regression.state else None
        contradicted = fixes.get(event_id) == "contradicted"
        if is_fixed(verdict, contradicted=contradicted, repaired=bool(repairs.get(event_id))):
            event = orjson.loads(regression.event)
            if caused := caused_by(regression, event):
                fixed.append(_fixed(store, regression, caused, event["data"]))
    if not fixed:
        return ()
    findings = all_findings(store, service, EARLIEST_S, LATEST_S)
    differences = _differences(store, service)
    return tuple(keep_test(regression, findings, differences) for regression in fixed)


def _fixed(store: Store, answered: Answered, caused: Caused, data: Mapping[str, Any]) -> FixedRegression:
    lines, members = (data.get(name) or () for name in ("stacks", "group"))
    risen = {name for line in lines if line["after"] > line["before"] for name in line["stack"]}
    group = {member["metric"] for member in members if member["metric_kind"] == "subroutine"}
    return FixedRegression(
        id=answered.reported.id,
        service=answered.reported.service,
        kind=caused.kind,
        metric=caused.metric,
        size=caused.size,
        cause=caused.change,
        modified=_modified(store, answered.reported.service, caused.change, data),
        seen=frozenset(risen | group),
    )


def _modified(store: Store, service: str, change: str, data: Mapping[str, Any]) -> frozenset[str]:
    """Return the subroutines that a change modified, as announced, or else as the event lists them.

    ``change`` may be a prefix of the id, as a person may have written it.
    """
    columns = ("id", "subroutines")
    rows = store.rows(RowQuery("changes", service, columns=columns, id_prefix=change))
    suspects = [row["change"] for row in data.get("root_causes") or ()]
    matches = rows or [row for row in suspects if row["id"].startswith(change)]
    exact = [row for row in matches if row["id"] == change]
    return frozenset(name for row in exact or matches for name in row["subroutines"])


def _differences(store: Store, service: str) -> dict[str, FloatArray]:
    """Return the differences between sides of A/A trials in the last two weeks of trials, by metric."""
    experiments = gather_experiments(store, service)
    last = max((side.time for experiment in experiments for side in experiment.sides), default=EARLIEST_S)
    history = gather_history(store, service, experiments, last)
    return {metric: steady_differences(sides) for metric, sides in history.items()}
