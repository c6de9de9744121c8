"""filter: scans in, the same scans out with only the candidates that look like lasting regressions."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from pipeline.codec.scans import decode_scan, encode_scan, split_scan
from pipeline.filters.same_regression import ESCALATED, Known, judge_same_regression
from pipeline.filters.threshold import judge_significance, judge_threshold
from pipeline.model import Candidate, Decision, Dropped, Outgoing, Record, Scan
from pipeline.stages.ablation import NOTHING, Without
from pipeline.stages.base import Decoder, Stage
from pipeline.stages.gather.candidate_series import CandidateSeries
from pipeline.stages.gather.history import Memory, recall, remember
from pipeline.steps import divide, sentence
from pipeline.storage.interface import Store
from pipeline.workloads import Workload

log = logging.getLogger(__name__)

Judge = Callable[[Sequence[Candidate]], Sequence[Decision]]
"""One step: a decision on each candidate."""


_SHORT_TERM_ONLY = ("went_away", "seasonality")
"""The long-term path takes the season out first, and looks at lasting trends by itself (FBDetect §5.4.5)."""


class FilterStage(Stage):
    """Runs the filters of each scan in the paper's order and passes on what survives."""

    name = "filter"

    def __init__(self, *, store: Store, workloads: Sequence[Workload], without: Without = NOTHING) -> None:
        self._store = store
        self._without = without
        self._workloads = {workload.name: workload for workload in workloads}
        self.inputs: Mapping[str, Decoder] = {"change-points": decode_scan}

    def handle(self, batch: Sequence[Record]) -> list[Outgoing]:
        """Filter each scan, in order."""
        outgoing = []
        for record in batch:
            scan = self._filter(record.payload)
            outgoing += [Outgoing("filtered", scan.service, encode_scan(part)) for part in split_scan(scan)]
        return outgoing

    def _filter(self, scan: Scan) -> Scan:
        workload = self._workloads.get(scan.workload)
        if workload is None:
            unknown = Decision("workload", False, code="unknown", subjects=(repr(scan.workload),))
            gone = tuple(Dropped(candidate, unknown) for candidate in scan.candidates)
            log.warning("scan dropped: %s", sentence(unknown))
            return replace(scan, candidates=(), dropped=(*scan.dropped, *gone))
        if not scan.candidates:
            return scan
        series = CandidateSeries(self._store, scan, workload, without=self._without)
        threshold = workload.threshold.model_dump()
        left, dropped = scan.candidates, [*scan.dropped]
        steps: tuple[tuple[str, Judge], ...] = (
            ("went_away", series.judge_went_away),
            ("seasonality", series.judge_seasonality),
            ("threshold", lambda cs: [judge_threshold(c, **threshold) for c in cs]),
            ("significance", lambda cs: [judge_significance(c, series=scan.series) for c in cs]),
        )
        for step, judge in steps:
            if step in self._without:
                continue
            asked = [c for c in left if c.kind == "short_term" or step not in _SHORT_TERM_ONLY]
            others = [c for c in left if c.kind == "long_term" and step in _SHORT_TERM_ONLY]
            passed, gone = divide(zip(asked, judge(asked), strict=True))
            left = (*passed, *others)
            dropped += gone
        known: Sequence[Known] = ()
        if left and "same_regression" not in self._without:
            # What grows for longer than a scan sees began before it, and was told when it was in sight.
            memories = recall(
                self._store,
                self.name,
                scan,
                self._workloads,
                same_workload=True,
                back_s=scan.end - scan.start,
            )
            known = [Known(memory.candidate, memory.scan_end) for memory in memories]
        repeats = [
            judge_same_regression(
                c,
                [k for k in known if _same_series(k.candidate, c)],
                recent=series.recent(c),
                analysis_s=workload.analysis_s,
                gradual_since=partial(series.is_gradual, c),
                **threshold,
            )
            for c in left
        ]
        fresh, same = divide(zip(left, repeats, strict=True))
        grown = tuple(c for c, decision in zip(left, repeats, strict=True) if decision.code == ESCALATED)
        remember(self._store, self.name, scan, [Memory(candidate) for candidate in (*fresh, *grown)])
        return replace(scan, candidates=fresh, dropped=(*dropped, *same), grown=grown)


def _same_series(one: Candidate, other: Candidate) -> bool:
    """Tell whether two candidates are of one series; a regression is one, whichever detector saw it first."""
    return (one.metric_kind, one.metric) == (other.metric_kind, other.metric)
