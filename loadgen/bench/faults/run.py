"""Run of one fault: start everything, feed, strike at random moments, wait until all is done, compare."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from loadgen.bench.faults.brokers import BrokerKind
from loadgen.bench.faults.catalogue import Fault
from loadgen.bench.faults.check import Differences
from loadgen.bench.faults.disk import SmallDisk
from loadgen.bench.faults.flood import flood
from loadgen.bench.faults.former_version import FORMER, former_version
from loadgen.bench.faults.hits import Ground, Hit, Plan, lacking
from loadgen.bench.faults.load import build_fleet
from loadgen.bench.faults.rig import Rig, Setup, StoreKind
from loadgen.bench.faults.strikes import Context
from loadgen.bench.faults.truth import PART_ITEMS
from loadgen.bench.faults.workers import CODE
from loadgen.engines.kafka.cluster import prepared_jars
from pipeline.model.clock import Clock, system_clock
from pipeline.model.errors import ConfigError, SmidgenError
from pipeline.settings.extras import require
from pipeline.stages.factory import SCAN_STAGES

_RETRY = "store unavailable, trying again"

_FLOOD_BATCH = 500  # the product's own default: a flood is about how much passes

Advance = Callable[[str, float], None]
"""Takes a text for the present work, and the share of it that is done."""


@dataclass(frozen=True)
class Options:
    """Settings of the runs of faults."""

    broker: BrokerKind = "embedded"
    store: StoreKind = "embedded"
    seed: int = 1
    outage_s: float | None = None
    malformed: int | None = None
    former: str = FORMER
    stages: tuple[str, ...] = SCAN_STAGES
    """Which stages are struck, where a fault strikes stages."""
    keep: Path | None = None
    """Folder for the workers' logs of what failed."""
    clock: Clock = system_clock


@dataclass(frozen=True)
class Outcome:
    """Outcome of a fault."""

    fault: str
    broker: BrokerKind
    strikes: int
    """Number of strikes that had their effect."""
    details: dict[str, int]
    messages: int
    samples: int
    events: int
    differences: Differences | None
    copies: int
    """Events that came again, with the same id."""
    exits: dict[str, list[int]] = field(default_factory=dict)
    """Exit codes of workers that ended by themselves."""
    recovery_s: float = 0.0
    """The longest time from a strike until all that was on the topics by then had been worked through."""
    seconds: float = 0.0
    skipped: str = ""
    """Why it was not run; known before anything was started."""
    failure: str = ""
    """The condition that did not hold in time, or the error."""
    store: StoreKind = "embedded"
    services: int = 0
    planned: int = 0
    """Number of planned strikes."""
    hits: tuple[Hit, ...] = ()
    """Outcome of each strike."""
    lacking: tuple[str, ...] = ()
    """Gaps in the run's evidence."""
    parted: int = 0
    """Scans that came in parts."""

    @property
    def passed(self) -> bool:
        """Whether the fault struck as planned without differences, or could not be run here."""
        return bool(self.skipped) or (
            not self.failure
            and not self.lacking
            and self.differences is not None
            and not self.differences.any
        )

    def to_json(self) -> dict[str, Any]:
        """Return the outcome as one object."""
        return {**asdict(self), "passed": self.passed}


@dataclass(frozen=True)
class _Ready:
    """Resources that a fault needs of this machine, acquired before anything of the product is started."""

    disk: SmallDisk | None = None
    code: Path = CODE


def run_fault(name: str, fault: Fault, options: Options, advance: Advance) -> Outcome:
    """Run one fault on its own rig.

    The fault is skipped only for reasons known beforehand; later errors are failures.
    """
    began = time.monotonic()
    if fault.former:
        fault = replace(fault, times=len(options.stages))
    with ExitStack() as stack:
        try:
            ready = _check_possible(fault, options, stack)
        except ConfigError as error:
            return _not_run(name, fault, options, skipped=str(error))
        hits: list[Hit] = []
        try:
            return _run(_Run(name, fault, options, ready, hits, began), advance, stack)
        except SmidgenError as error:
            return _not_run(name, fault, options, failure=str(error), hits=tuple(hits))


def _not_run(name: str, fault: Fault, options: Options, **why: Any) -> Outcome:
    struck = sum(hit.struck for hit in why.get("hits", ()))
    return Outcome(
        *(name, options.broker, struck, {}, 0, 0, 0, None, 0), store=options.store, planned=fault.times, **why
    )


def _check_possible(fault: Fault, options: Options, stack: ExitStack) -> _Ready:
    """Return the resources that the fault needs, for as long as ``stack`` is open.

    Raises:
        ConfigError: the fault is impossible with this broker or on this machine; the text says why.
    """
    if fault.durable and options.broker == "embedded":
        raise ConfigError("the embedded broker keeps its log in memory: a kill loses it")
    if fault.idempotent and options.broker == "embedded":
        raise ConfigError("the embedded broker refuses idempotent producers: an agent may send twice")
    if fault.proxied and options.broker == "kafka3":
        raise ConfigError("a proxy stands before a single broker only")
    require("chdb")
    if options.broker != "embedded":
        prepared_jars()
    return _Ready(
        stack.enter_context(SmallDisk()) if fault.small_disk else None,
        stack.enter_context(former_version(options.former)) if fault.former else CODE,
    )


@dataclass(frozen=True)
class _Run:
    """One run of a fault."""

    name: str
    fault: Fault
    options: Options
    ready: _Ready
    hits: list[Hit]
    """Filled as it goes on."""
    began: float

    @property
    def malformed(self) -> int:
        """Number of malformed messages that are sent."""
        number = self.options.malformed
        return self.fault.malformed if number is None or not self.fault.malformed else number

    @property
    def plan(self) -> Plan:
        """The planned strikes."""
        stages = self.options.stages if self.fault.stages else ()
        return Plan(self.fault.times, stages, self.fault.kinds)

    def setup(self) -> Setup:
        """Return the parts and settings of the rig."""
        fault, disk = self.fault, self.ready.disk
        return Setup(
            broker=self.options.broker,
            store=self.options.store,
            proxied=fault.proxied,
            code=self.ready.code,
            clocks=fault.clocks,
            data=disk.path / "data" if disk else None,
            batch_size=_FLOOD_BATCH if fault.malformed else Setup.batch_size,
            part_items=PART_ITEMS,
            agents=fault.agents,
        )


def _run(run: _Run, advance: Advance, stack: ExitStack) -> Outcome:
    fault, options = run.fault, run.options
    advance("drawing the load", 0.0)
    load = build_fleet(fault.load_shape(options.clock()), options.seed)
    advance("starting", 0.0)
    seconds = fault.times * (sum(fault.gap_s) / 2 + (options.outage_s or fault.lasts_s))
    rig = stack.enter_context(Rig(run.setup(), load, seconds=seconds))
    rng = np.random.default_rng(options.seed)
    context = Context(rig, rng, fault.lasts_s, options.outage_s, run.ready.disk, options.stages)
    missing: list[str] = []
    failed = True
    try:
        with flood(rig.broker.url, rig.topics, run.malformed, options.seed):
            _strike(run, context, advance)
        advance("waiting for the rest", 1.0)
        rig.feeder.finish()
        rig.wait_drained()
        differences, copies = rig.compare(run.malformed)
        missing = lacking(run.plan, run.hits, _ground(rig))
        failed = differences.any or bool(missing)
    finally:
        if failed and options.keep is not None:
            logs = options.keep / f"{run.name}-{options.broker}-{options.store}-{options.seed}"
            shutil.copytree(rig.folder / "logs", logs, dirs_exist_ok=True)
    if retries := sum(rig.supervisor.log(name).count(_RETRY) for name in rig.supervisor.workers):
        context.notes["calls to the store repeated"] = retries
    return Outcome(
        fault=run.name,
        broker=options.broker,
        strikes=sum(hit.struck for hit in run.hits),
        details=dict(sorted(context.notes.items())) | ({"malformed": run.malformed} if run.malformed else {}),
        messages=load.messages,
        samples=rig.load.samples,
        events=rig.load.events,
        differences=differences,
        copies=copies,
        exits=rig.supervisor.exits,
        recovery_s=round(max(rig.watcher.recoveries, default=0.0), 1),
        seconds=round(time.monotonic() - run.began, 1),
        store=options.store,
        services=len(load.truths),
        planned=fault.times,
        hits=tuple(run.hits),
        lacking=tuple(missing),
        parted=len(rig.watcher.parted),
    )


def _ground(rig: Rig) -> Ground:
    return Ground(len(rig.load.truths), rig.load.events, rig.load.parted, len(rig.watcher.parted))


def _strike(run: _Run, context: Context, advance: Advance) -> None:
    """Strike at random moments while the load comes in; each strike's share of the load waits for it."""
    rig, fault = context.rig, run.fault
    for number in range(fault.times):
        advance(f"strike {number + 1} of {fault.times}", number / fault.times)
        rig.feeder.allow((number + 1.5) / fault.times)
        context.sleep(*fault.gap_s)
        rig.watcher.mark()
        run.hits.append(fault.strike(context))
    rig.feeder.allow(1.0)
