"""Script of the demo: start the pipeline, deploy commit after commit, wait, compare."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from loadgen.demo.comparison import ReportedDeployments, judge
from loadgen.demo.deploy import Deployer
from loadgen.demo.driver import LoadDriver
from loadgen.demo.status import Status
from loadgen.demo.subscriber import Subscriber
from loadgen.demo.tasks import BackgroundTasks
from loadgen.target.history import SLOW_SUBROUTINE
from loadgen.target.repository import Revision, make_repository
from pipeline.embedded.pipeline import PipelineOptions, start_dashboard, start_pipeline
from pipeline.messages.ledger import dropped_entries, entry_to_json
from pipeline.model.clock import Clock
from pipeline.model.errors import SmidgenError
from pipeline.processes import Group, smidgen_command
from pipeline.settings.topics import load_topics
from pipeline.settings.workloads import load_workloads
from pipeline.stages.factory import SCAN_STAGES

WORKLOAD = "live"

BASELINE_S = 30.0
"""Seconds that the first release runs before the first deployment."""

DEPLOY_EVERY_S = 13.0
"""Seconds from one deployment to the next."""

PREPARE_S = 5.0
"""How long before it takes over a release is started; on a busy machine it may take longer."""

ANNOUNCE_S = 1.5
"""How long before it takes over a release is announced: what that takes on an idle machine."""

SHORTEST_S = 11.0
"""The shortest time that a release stays in production."""

_SETTLE_S = 60.0
"""How long the last scans may take beyond the windows that they wait for."""

_MAX_REPORTS = 5
_TICK_S = 0.2


class NotSettled(SmidgenError):
    """Scans did not reach the required time."""


@dataclass(frozen=True, slots=True)
class DemoOutcome:
    """Outcome of the demo; ``reports`` are the pages of the events, in the order of the events."""

    comparison: ReportedDeployments
    reports: tuple[Path, ...]


class Demo:
    """One run of the demo. ``folder`` holds files needed while it runs, ``out`` the results.

    With ``stay`` everything keeps running at the end until the run is cancelled. ``on_outcome`` is called as
    soon as there is an outcome.
    """

    def __init__(
        self,
        *,
        folder: Path,
        out: Path,
        seed: int,
        status: Status,
        clock: Clock,
        on_event: Callable[[dict[str, Any]], None],
        on_outcome: Callable[[DemoOutcome], None],
        stay: bool = False,
    ) -> None:
        self._folder = folder
        self._out = out
        self._status = status
        self._clock = clock
        self._on_event = on_event
        self._on_outcome = on_outcome
        self._stay = stay
        self._driver = LoadDriver(seed)
        self._processes = Group(folder)
        self._topics = load_topics()
        self._workload = load_workloads([WORKLOAD])[0]
        self._broker = ""
        self._store = ""

    async def run(self) -> DemoOutcome:
        """Run the demo to its end; every process is stopped afterwards, however it ends.

        Raises:
            SmidgenError: a failure of the demo itself, which shows nothing about the pipeline.
        """
        try:
            background = BackgroundTasks()
            return await background.lead(self._script(background))
        finally:
            await self._processes.stop_all()
            self._keep_findings()

    async def _script(self, background: BackgroundTasks) -> DemoOutcome:
        background.add(self._processes.watch())
        background.add(self._refresh())
        repository = self._folder / "shop"
        revisions = await asyncio.to_thread(make_repository, repository, self._clock())
        await self._start_pipeline()
        subscriber = Subscriber(self._broker, self._topics, self._status, self._on_event)
        background.add(subscriber.run())
        background.add(self._driver.run())
        await self._deploy_all(revisions, repository)
        await self._settle(subscriber)
        outcome = await self._conclude()
        self._on_outcome(outcome)
        if self._stay:
            self._status.step = f"everything is kept up until Ctrl-C: {self._status.dashboard}"
            await asyncio.Event().wait()
        return outcome

    async def _start_pipeline(self) -> None:
        status = self._status

        def step(text: str) -> None:
            status.step = text

        workers = tuple((stage,) for stage in SCAN_STAGES)
        options = PipelineOptions(self._topics, (WORKLOAD,), workers)
        addresses = await start_pipeline(
            self._processes,
            options,
            on_step=step,
            on_ready=lambda stages: status.stages.update(dict.fromkeys(stages, True)),
        )
        self._broker, self._store = addresses.broker, addresses.store
        status.step = "starting the dashboard"
        status.dashboard = await start_dashboard(self._processes, addresses, (WORKLOAD,))

    async def _deploy_all(self, revisions: list[Revision], repository: Path) -> None:
        status = self._status
        deployer = Deployer(self._processes, repository, self._driver, self._broker, self._clock)
        # The first releases are history; production begins with the last of them.
        first = max(index for index, built in enumerate(revisions) if built.commit.kind == "initial")
        planned = revisions[first:]
        status.planned = len(planned)
        due = self._clock()
        for revision in planned:
            await self._sleep_until(due - PREPARE_S)
            status.step = f"deploying {revision.short} {revision.commit.title!r}"
            release = await deployer.prepare(revision)
            await self._sleep_until(due - ANNOUNCE_S)
            deployment = await deployer.take_over(release)
            status.deployments.append(deployment)
            status.step = f"{revision.short} is in production"
            if revision is planned[0]:
                due = deployment.time + BASELINE_S
            else:  # after a late deployment, return to the schedule, but not at once
                due = max(due + DEPLOY_EVERY_S, deployment.time + SHORTEST_S)

    async def _settle(self, subscriber: Subscriber) -> None:
        """Wait until scans cover the last deployment in full and rootcause has committed all of them."""
        status = self._status
        status.step = "waiting for the last scans"
        wanted = status.deployments[-1].time + self._workload.analysis_s + self._workload.extended_s
        deadline = wanted + _SETTLE_S
        while status.scanned_until.get("unique", 0.0) < wanted:
            if self._clock() > deadline:
                reached = status.scanned_until.get("unique", 0.0)
                raise NotSettled(
                    f"the last scans are missing: scanned {wanted - reached:.0f} s less than due"
                )
            await asyncio.sleep(_TICK_S)
        while not await subscriber.explained():
            if self._clock() > deadline:
                raise NotSettled("rootcause did not finish the last scans")
            await asyncio.sleep(_TICK_S)
        await asyncio.sleep(5 * _TICK_S)  # messages published before the offset commit reach this subscriber

    async def _conclude(self) -> DemoOutcome:
        status = self._status
        status.step = "drawing the report"
        reports = []
        for number, event in enumerate(status.events[:_MAX_REPORTS]):
            path = (self._out / (f"report-{number + 1}.html" if number else "report.html")).resolve()
            target = ("-o", str(path), "--store", self._store)
            await self._processes.run(
                "report", smidgen_command("report", event["id"], *target, "--workloads", WORKLOAD)
            )
            reports.append(path)
        dropped = [line for scan in status.ledger for line in scan.dropped]
        comparison = judge(
            status.deployments, status.events, SLOW_SUBROUTINE, status.dead_letters, dropped=dropped
        )
        return DemoOutcome(comparison=comparison, reports=tuple(reports))

    def _keep_findings(self) -> None:
        """Write the reported events, and the ledger of dropped candidates, for ``smidgen why --ledger``."""
        status = self._status
        _write_lines(self._out / "events.jsonl", [orjson.dumps(event) for event in status.events])
        entries = [entry for scan in status.ledger for entry in dropped_entries(scan)]
        _write_lines(self._out / "ledger.jsonl", [orjson.dumps(entry_to_json(entry)) for entry in entries])

    async def _sleep_until(self, moment: float) -> None:
        await asyncio.sleep(max(0.0, moment - self._clock()))

    async def _refresh(self) -> None:
        while True:
            self._status.requests = self._driver.requests
            await asyncio.sleep(_TICK_S)


def _write_lines(path: Path, lines: Sequence[bytes]) -> None:
    path.write_bytes(b"".join(line + b"\n" for line in lines))
