"""Kept tests of a service, by the regressions that were fixed, their causes and its A/A trials."""

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
    """Return the tests that fixed regressions of a service leave, those that began first before others.

    Args:
        store: Where regressions, verdicts, changes and trials are.
        service: Whose.
        workloads: By name: they say when scans would have seen that something is not fixed.
    """
    answered = gather_answered(store, service, all_events=True)
    fixes, repairs = gather_fixes(store, answered, workloads), gather_repairs(store, service)
    fixed = []
    for one in answered:
        known = one.reported.id
        verdict = one.state.verdict if one.state else None
        contradicted = fixes.get(known) == "contradicted"
        if is_fixed(verdict, contradicted=contradicted, repaired=bool(repairs.get(known))):
            event = orjson.loads(one.event)
            if caused := caused_by(one, event):
                fixed.append(_fixed(store, one, caused, event["data"]))
    if not fixed:
        return ()
    findings = all_findings(store, service, EARLIEST_S, LATEST_S)
    differences = _differences(store, service)
    return tuple(keep_test(one, findings, differences) for one in fixed)


def _fixed(store: Store, one: Answered, caused: Caused, data: Mapping[str, Any]) -> FixedRegression:
    lines, members = (data.get(name) or () for name in ("stacks", "group"))
    risen = {name for line in lines if line["after"] > line["before"] for name in line["stack"]}
    group = {member["metric"] for member in members if member["metric_kind"] == "subroutine"}
    return FixedRegression(
        id=one.reported.id,
        service=one.reported.service,
        kind=caused.kind,
        metric=caused.metric,
        size=caused.size,
        cause=caused.change,
        modified=_modified(store, one.reported.service, caused.change, data),
        seen=frozenset(risen | group),
    )


def _modified(store: Store, service: str, change: str, data: Mapping[str, Any]) -> frozenset[str]:
    """Return the subroutines that a change modified: as it was announced, or else as the event has them.

    A person may have named it by the beginning of its id.
    """
    columns = ("id", "subroutines")
    rows = store.rows(RowQuery("changes", service, columns=columns, id_prefix=change))
    suspects = [one["change"] for one in data.get("root_causes") or ()]
    found = rows or [one for one in suspects if one["id"].startswith(change)]
    exact = [one for one in found if one["id"] == change]
    return frozenset(name for one in exact or found for name in one["subroutines"])


def _differences(store: Store, service: str) -> dict[str, FloatArray]:
    """Return how the sides of A/A trials differ, in the two weeks before the service's last trial."""
    experiments = gather_experiments(store, service)
    last = max((side.time for one in experiments for side in one.sides), default=EARLIEST_S)
    past = gather_history(store, service, experiments, last)
    return {metric: steady_differences(sides) for metric, sides in past.items()}
