"""rootcause: deduplicated scans in, regression events out: detected with ranked suspects, updated, resolved.

It is the last stage of a scan, with all candidates that were dropped before: so it writes the ledger.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial

from pipeline.analysis.feedback import learn_ranking
from pipeline.analysis.lifecycle import (
    LifecycleEvidence,
    Update,
    confirm_fallbacks,
    decide_updates,
    find_fallbacks,
)
from pipeline.analysis.rootcause import Cause, Gates, RankingConfig, find_causes
from pipeline.messages.events import encode_event, regression_event, regression_id, update_event
from pipeline.messages.ledger import (
    LedgerEntry,
    dropped_entries,
    entry_from_json,
    ledger_columns,
    reported_entries,
)
from pipeline.messages.lifecycle import regression_columns, update_columns
from pipeline.messages.outcomes import Columns, ScanOutcome
from pipeline.messages.scans import decode_scan
from pipeline.messages.silenced_regressions import silenced_columns
from pipeline.model import Candidate, Change, Outgoing, Record, Regression, RegressionKind, Scan, SeriesKey
from pipeline.model.clock import Clock, system_clock
from pipeline.model.metric_kind import is_gcpu
from pipeline.settings.workloads import Workload, workload_of
from pipeline.stages.abilities import Counted, Skipping
from pipeline.stages.base import Decoder, Stage
from pipeline.stages.event_counts import Brought, EventCounts
from pipeline.stages.gather.changes import recent_changes
from pipeline.stages.gather.lifecycle import FallbackContext, gather_lifecycle, lifecycle_config, with_changes
from pipeline.stages.gather.scan_store import as_scanned, by_present_names
from pipeline.stages.gather.silences import SilencedSoFar, gather_silenced
from pipeline.stages.gather.suspects import CauseEvidence, cause_config
from pipeline.stages.gather.verdicts import ConfirmedCauses
from pipeline.stages.outcomes import Outcomes
from pipeline.stages.silences import FoundInScan, SilencedScan, apply_silences
from pipeline.storage.interface import Store
from pipeline.telemetry.metrics import Sample

log = logging.getLogger(__name__)

_CONTENT_TYPE = (("content-type", b"application/cloudevents+json"),)

LEDGER_ROWS = 10_000
"""Most rows of the ledger in one insert: a scan of a large service drops hundreds of thousands."""

Changes = Callable[[], Sequence[Change]]
"""Returns the changes of a scan's service, which are read once, on the first call."""

_CauseKey = tuple[SeriesKey, RegressionKind]


class RootcauseStage(Stage, Skipping, Counted):
    """The stage that finds the possible causes of each regression, reports it, and follows it up."""

    name = "rootcause"

    def __init__(
        self,
        *,
        store: Store,
        workloads: Sequence[Workload],
        gates: Gates | None = None,
        config: RankingConfig | None = None,
        learns: bool = True,
        without: frozenset[str] = frozenset(),
        clock: Clock = system_clock,
    ) -> None:
        self._store = store
        self._outcomes = Outcomes(store, self.name)
        self._clock = clock
        self._ranking = config
        self._without = without
        self._causes = CauseEvidence(store, gates)
        self._confirmed = ConfirmedCauses(store) if learns else None
        self._fallbacks = FallbackContext(store)
        self._workloads = {workload.name: workload for workload in workloads}
        self._counts = EventCounts(self.name, self._workloads)
        self.inputs: Mapping[str, Decoder] = {"unique": decode_scan}

    def samples(self) -> list[Sample]:
        """Return events by type, the funnel, and the delays between changes and reports."""
        return self._counts.samples()

    def handle(self, batch: Sequence[Record]) -> list[Outgoing]:
        """Report the remaining candidates of each scan, and updates of earlier regressions."""
        outgoing: list[Outgoing] = []
        lines: list[Columns] = []
        self._counts.begin()
        for record in batch:
            scan: Scan = record.payload
            outcome = self._outcomes.of(scan, partial(self._decide, scan))
            # Kept at once: the next scan of the batch asks for it.
            self._outcomes.write(outcome)
            outgoing += outcome.messages
            if scan.dropped:
                lines.insert(0, ledger_columns(dropped_entries(scan)))
            if own := outcome.noted["ledger"]:
                lines.append(own)
            self._counts.hold(Brought(scan, **outcome.noted["counts"]))
        # What this stage dropped and reported comes last: it wins where a series was dropped before as well.
        self._write_ledger(lines)
        return outgoing

    def settled(self) -> None:
        """Count the published outcomes."""
        self._counts.publish(self._clock())

    def _judge(self, scan: Scan) -> SilencedScan:
        """Return the events to report of a scan."""
        workload = workload_of(scan, self._workloads)
        changes = cache(partial(recent_changes, by_present_names(self._store, scan), scan))
        regressions = self._explain(scan, workload, changes) if scan.candidates else []
        so_far = gather_silenced(self._store, scan)
        lifecycle, updates = self._follow(scan, workload, changes, so_far) if workload else (None, [])
        return apply_silences(
            self._store, FoundInScan(scan, workload, regressions, so_far, lifecycle, updates, changes)
        )

    def _explain(self, scan: Scan, workload: Workload | None, changes: Changes) -> list[Regression]:
        """Return the regressions of a scan with the findings on their causes."""
        causes: dict[_CauseKey, Cause] = {}
        if workload is None:
            log.warning("no suspects sought: this worker does not know workload %s", scan.workload)
        else:
            causes = self._find_causes(scan, workload, changes)
        servers = self._causes.servers(scan)
        regressions = []
        for candidate in scan.candidates:
            cause = causes.get(_key(candidate), Cause())
            regressions.append(
                Regression(
                    id=regression_id(scan.service, scan.workload, candidate, scan.end),
                    service=scan.service,
                    workload=scan.workload,
                    candidate=candidate,
                    detected_time=scan.end,
                    suspects=cause.suspects,
                    stacks=cause.stacks,
                    explanations=cause.explanations,
                    servers=servers,
                )
            )
        return regressions

    def _find_causes(self, scan: Scan, workload: Workload, changes: Changes) -> dict[_CauseKey, Cause]:
        """Return the findings on the causes of a scan's candidates."""
        config = cause_config(workload, self._weighing(scan), self._without)
        causes: dict[_CauseKey, Cause] = {}
        for cluster in self._causes.gather(scan, workload, changes()):
            pairs = zip(cluster.candidates, find_causes(cluster, config), strict=True)
            causes |= {_key(candidate): cause for candidate, cause in pairs}
        return causes

    def _weighing(self, scan: Scan) -> RankingConfig | None:
        """Return the weighting of evidence on suspects, learnt from causes confirmed before a scan ended."""
        confirmed = self._confirmed.gather(scan) if self._confirmed else []
        return learn_ranking(self._ranking or RankingConfig(), confirmed) if confirmed else self._ranking

    def _follow(
        self, scan: Scan, workload: Workload, changes: Changes, so_far: SilencedSoFar
    ) -> tuple[LifecycleEvidence, list[Update]]:
        """Return the updates of regressions that earlier scans reported or silenced."""
        config, store = lifecycle_config(workload), as_scanned(self._store, scan, workload)
        evidence = gather_lifecycle(store, scan, workload, config, so_far.followed)
        fallbacks = find_fallbacks(evidence, config)
        # Gathered last, and for these alone: share factors read many series, changes carry diffs.
        fallbacks = self._fallbacks.with_share_factors(fallbacks, scan, workload, config)
        confirmed = confirm_fallbacks(evidence, fallbacks, config)
        updates = decide_updates(evidence, with_changes(confirmed, workload, changes), config)
        return evidence, [self._with_suspects(update, scan, workload, changes) for update in updates]

    def _with_suspects(self, update: Update, scan: Scan, workload: Workload, changes: Changes) -> Update:
        """Return an update with suspects if subroutines joined a metric, which has no stacks itself."""
        joined = [candidate for candidate in update.joined if is_gcpu(candidate.metric_kind)]
        if not joined or is_gcpu(update.regression.candidate.metric_kind):
            return update
        largest = max(joined, key=lambda candidate: abs(candidate.delta))
        cause = self._find_causes(replace(scan, candidates=(largest,)), workload, changes)
        return replace(update, suspects=cause[_key(largest)].suspects)

    def _decide(self, scan: Scan) -> ScanOutcome:
        """Return the events of a scan, and the rows of regressions, silenced ones and updates."""
        judged = self._judge(scan)
        regressions = [*judged.reported, *(regression for regression, _ in judged.late)]
        detected = [encode_event(regression_event(regression, scan)) for regression in judged.reported]
        detected += [encode_event(event) for _, event in judged.late]
        updated = [encode_event(update_event(update)) for update in judged.updates]
        rows: list[tuple[str, Columns]] = []
        if judged.notes:
            rows.append(("silenced", silenced_columns(judged.notes, scan.end)))
        if regressions:
            rows.append(("regressions", regression_columns(regressions, detected)))
        if judged.updates:
            rows.append(("updates", update_columns(judged.updates, updated)))
        messages = [
            Outgoing("regressions", scan.service, event, _CONTENT_TYPE) for event in (*detected, *updated)
        ]
        counts = {
            "dropped": [line.decision.step for line in judged.dropped],
            "change_times": [reported.candidate.change_time for reported in judged.reported],
            "late": len(judged.late),
            "updates": [update.kind for update in judged.updates],
        }
        own = _ledger(scan, judged)
        noted = {"counts": counts, "ledger": ledger_columns(own) if own else {}}
        return ScanOutcome(tuple(rows), tuple(messages), noted)

    def _write_ledger(self, lines: Sequence[Columns]) -> None:
        """Insert lines of the ledger; of lines with the same id the last one stays."""
        if not lines:
            return
        every = {name: [cell for columns in lines for cell in columns[name]] for name in lines[0]}
        for first in range(0, len(every["id"]), LEDGER_ROWS):
            self._store.insert(
                "ledger", {name: cells[first : first + LEDGER_ROWS] for name, cells in every.items()}
            )


def _ledger(scan: Scan, judged: SilencedScan) -> list[LedgerEntry]:
    """Return an entry for each candidate that comes to this stage, and for each earlier one reported now."""
    candidates = tuple(regression.candidate for regression in judged.reported)
    whole = replace(scan, candidates=candidates, dropped=tuple(judged.dropped))
    late = [entry_from_json(event) for _, event in judged.late]
    return [*dropped_entries(whole), *reported_entries(whole), *late]


def _key(candidate: Candidate) -> _CauseKey:
    return candidate.series, candidate.kind
