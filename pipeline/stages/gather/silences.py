"""The evidence on silences in a scan: what people said, and the regressions that it silenced so far."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pipeline.analysis.lifecycle import SilenceCase, Silenced, SilenceEvidence, Spending, asks_for_stacks
from pipeline.analysis.stacks import index_stacks
from pipeline.messages.inputs import silence_of_row
from pipeline.messages.silenced_regressions import silenced_of_row
from pipeline.model import Change, Regression, Scan, Silence
from pipeline.model.errors import InvalidMessage
from pipeline.settings.workloads import Workload
from pipeline.stages.gather.evidence import stacks_around
from pipeline.stages.gather.lifecycle import FOLLOW_S
from pipeline.stages.gather.scan_store import as_scanned
from pipeline.stages.gather.verdicts import gather_expected
from pipeline.storage.interface import RowQuery, Store

log = logging.getLogger(__name__)

_FOLLOWED = ("expected", "muted")


@dataclass(frozen=True, slots=True)
class SilencedSoFar:
    """What earlier scans left of the regressions that silences are about."""

    followed: tuple[Silenced, ...] = ()  # not reported and not gone, of any workload, newest first
    spendings: tuple[Spending, ...] = ()  # of those that were reported, too
    events: Mapping[str, str] = field(default_factory=dict)  # by id, as they would have been published


def gather_silenced(store: Store, scan: Scan) -> SilencedSoFar:
    """Return the regressions of a service that earlier scans silenced.

    A scan leaves out what it and later scans noted, so that one that comes again decides as the first time.
    """
    rows = store.rows(RowQuery("silenced", scan.service, scan.end - FOLLOW_S, scan.end))
    latest: dict[str, dict[str, Any]] = {}
    for row in sorted(rows, key=lambda row: row["scan_end"]):
        if row["scan_end"] < scan.end:
            latest[row["id"]] = row
    if not latest:
        return SilencedSoFar()
    reported = {
        row["id"]
        for row in store.rows(RowQuery("regressions", scan.service, scan.end - FOLLOW_S, scan.end))
        if row["detected_time"] < scan.end
    }
    followed = []
    for row in latest.values():
        if row["state"] not in _FOLLOWED or row["id"] in reported:
            continue
        try:
            followed.append(silenced_of_row(row))
        except InvalidMessage as error:
            log.warning("regression %s stays silent: its stored event is unreadable: %s", row["id"], error)
    spendings = tuple(
        Spending(row["id"], row["silence"], row["size"], row["error"])
        for row in latest.values()
        if row["state"] in ("expected", "reported")
    )
    return SilencedSoFar(tuple(followed), spendings, {row["id"]: row["event"] for row in latest.values()})


def gather_silences(
    store: Store, scan: Scan, spendings: Sequence[Spending], changes: Callable[[], Sequence[Change]]
) -> SilenceEvidence:
    """Return what people said of a service's regressions: changes announce costs, verdicts expect them."""
    rows = store.rows(RowQuery("silences", scan.service))
    silences = [silence_of_row(row) for row in rows]
    announced = [silence for change in changes() for silence in announced_costs(change)]
    answered = gather_expected(store, scan)
    return SilenceEvidence(scan.end, (*silences, *announced, *answered), tuple(spendings))


def announced_costs(change: Change) -> list[Silence]:
    """Return the costs that a change announces for itself as expectations."""
    return [
        Silence(
            id=change.id if number == 0 else f"{change.id}#{number + 1}",
            service=change.service,
            kind="expected",
            time=change.time,
            start=change.time,
            owner=change.author,
            subroutine=expected.subroutine,
            cost=expected.cost,
            change=change.id,
            reason=change.title,
        )
        for number, expected in enumerate(change.expected)
    ]


def silence_case(
    store: Store,
    scan: Scan,
    workload: Workload | None,
    regression: Regression,
    suspects: frozenset[str],
    evidence: SilenceEvidence,
) -> SilenceCase:
    """Return a regression as silences look at it, with its stacks where a mute leaves members out."""
    candidate, stacks = regression.candidate, None
    if workload and workload.series == "gcpu" and asks_for_stacks(candidate, evidence):
        matrix = stacks_around(as_scanned(store, scan, workload), scan, [candidate], workload)
        stacks = index_stacks(matrix) if matrix.stacks else None
    return SilenceCase(regression.id, candidate, suspects, stacks)
