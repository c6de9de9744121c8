"""The last two stages over a service whose stacks are given second by second, for tests of groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pipeline.messages.events import decode_event
from pipeline.messages.scans import decode_scan
from pipeline.model import Candidate, Record, Scan
from pipeline.settings.workloads import Workload
from pipeline.stages.dedup import DedupStage
from pipeline.stages.rootcause import RootcauseStage
from pipeline.storage.interface import Store
from tests.contract.rows import gcpu, stacks, totals
from tests.support.builders import build_candidate
from tests.support.fleets import LIVE

START = 1_700_000_000.0
OTHER = LIVE.model_copy(update={"name": "other"})
CHANGE = 50
"""The second from which on ``lib.parse`` costs more in all three callers."""

BEFORE = {"main/cart.total/lib.parse": 40, "main/cart.tax/lib.parse": 40, "main/shop.list/lib.parse": 40}
STEADY = {"main/shop.page": 800, "main/shop.sort": 80}


class Pipeline:
    """The last two stages over a service whose stacks are given second by second."""

    before = BEFORE

    def levels(self, second: int) -> int:
        """Return what ``before`` is multiplied by."""
        return 1 + (second >= CHANGE)

    def counts(self, second: int) -> dict[str, int]:
        """Return the samples of each stack."""
        return {**STEADY, **{name: n * self.levels(second) for name, n in self.before.items()}}

    def __init__(self, store: Store, service: str) -> None:
        self.store, self.service = store, service
        self.restart()
        seconds = [self.counts(second) for second in range(120)]
        rows = [
            (tuple(name.split("/")), START + second, n)
            for second, counts in enumerate(seconds)
            for name, n in counts.items()
        ]
        store.insert("stacks", stacks(service, rows, width=1))
        sums = [(START + second, sum(counts.values())) for second, counts in enumerate(seconds)]
        store.insert("totals", totals(service, sums))
        store.insert("gcpu", gcpu(service, [("main", START + s, 1000) for s in range(120)]))

    def restart(self) -> None:
        self.dedup = DedupStage(store=self.store, workloads=[LIVE, OTHER])
        self.rootcause = RootcauseStage(store=self.store, workloads=[LIVE, OTHER])

    def scan(self, second: float, *candidates: Candidate, workload: Workload = LIVE) -> Scan:
        end = START + second
        return Scan(
            service=self.service,
            workload=workload.name,
            start=end - 50,
            analysis_start=end - 20,
            analysis_end=end - 5,
            end=end,
            series=5,
            candidates=candidates,
        )

    def run(self, *scans: Scan) -> list[dict[str, Any]]:
        """Hand scans over one by one and return the events."""
        events = []
        for scan in scans:
            messages = self.dedup.handle([Record("filtered", 0, 0, scan)])
            unique = [Record("unique", 0, i, decode_scan(m.value)) for i, m in enumerate(messages)]
            events += [decode_event(message.value) for message in self.rootcause.handle(unique)]
        return events


def caller(name: str, *, at: float = CHANGE) -> Candidate:
    return build_candidate(name, before=0.04, after=0.0714, change_time=START + at)


def reported(events: Sequence[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(event["type"].rsplit(".", 1)[1], event["subject"]) for event in events]
