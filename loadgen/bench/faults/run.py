"""Run of one fault: start everything, feed, strike at random moments, wait until all is done, compare."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from loadgen.bench.faults.brokers import BrokerKind
from loadgen.bench.faults.catalogue import Fault
from loadgen.bench.faults.check import Differences
from loadgen.bench.faults.disk import SmallDisk
from loadgen.bench.faults.flood import flood
from loadgen.bench.faults.former_version import FORMER, former_version
from loadgen.bench.faults.load import build_load
from loadgen.bench.faults.rig import CODE, Rig, Setup
from loadgen.bench.faults.strikes import Context
from pipeline.clock import Clock, system_clock
from pipeline.errors import ConfigError, SmidgenError
from pipeline.stages.factory import STAGES

_RETRY = "store unavailable, trying again"

_FLOOD_BATCH = 500  # the product's own default: a flood is about how much passes

Advance = Callable[[str, float], None]
"""Takes what is being done, and what share of it is done."""


@dataclass(frozen=True)
class Options:
    """How faults are run."""

    broker: BrokerKind = "embedded"
    seed: int = 1
    outage_s: float | None = None
    malformed: int | None = None
    former: str = FORMER
    stages: tuple[str, ...] = STAGES
    """Which stages are struck, where a fault strikes stages."""
    keep: Path | None = None
    """Folder for the workers' logs of what failed."""
    clock: Clock = system_clock


@dataclass(frozen=True)
class Outcome:
    """What became of a fault."""

    fault: str
    broker: BrokerKind
    strikes: int
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
    """Why it was not run."""
    failure: str = ""
    """What it waited for in vain."""

    @property
    def passed(self) -> bool:
        """Whether nothing differs, or it could not be run here."""
        return bool(self.skipped) or (
            not self.failure and self.differences is not None and not self.differences.any
        )

    def to_json(self) -> dict[str, Any]:
        """Return it as one object."""
        return {**asdict(self), "passed": self.passed}


def run_fault(name: str, fault: Fault, options: Options, advance: Advance) -> Outcome:
    """Run one fault on a rig of its own."""
    began = time.monotonic()
    try:
        with ExitStack() as stack:
            return _run(name, fault, options, advance, stack, began)
    except ConfigError as error:
        return _not_run(name, fault, options, skipped=str(error))
    except SmidgenError as error:
        return _not_run(name, fault, options, failure=str(error))


def _not_run(name: str, fault: Fault, options: Options, **why: str) -> Outcome:
    return Outcome(name, options.broker, fault.times, {}, 0, 0, 0, None, 0, **why)  # type: ignore[arg-type]


def _run(
    name: str, fault: Fault, options: Options, advance: Advance, stack: ExitStack, began: float
) -> Outcome:
    _check_possible(fault, options)
    disk = stack.enter_context(SmallDisk()) if fault.small_disk else None
    code = stack.enter_context(former_version(options.former)) if fault.former else CODE
    advance("drawing the load", 0.0)
    load = build_load(fault.load_shape(options.clock()), options.seed)
    advance("starting", 0.0)
    setup = Setup(
        broker=options.broker,
        proxied=fault.proxied,
        code=code,
        clocks=fault.clocks,
        data=disk.path / "data" if disk else None,
        batch_size=_FLOOD_BATCH if fault.malformed else Setup.batch_size,
    )
    lasts_s = options.outage_s or fault.lasts_s
    seconds = fault.times * (sum(fault.gap_s) / 2 + lasts_s)
    rig = stack.enter_context(Rig(setup, load, seconds=seconds))
    context = Context(
        rig, np.random.default_rng(options.seed), fault.lasts_s, options.outage_s, disk, options.stages
    )
    bad = fault.malformed if options.malformed is None or not fault.malformed else options.malformed
    failed = True
    try:
        with flood(rig.broker.url, rig.topics, bad, options.seed):
            _strike(fault, context, advance)
        advance("waiting for the rest", 1.0)
        rig.feeder.finish()
        rig.wait_drained()
        differences, copies = rig.compare(bad)
        failed = differences.any
    finally:
        if failed and options.keep is not None:
            logs = options.keep / f"{name}-{options.seed}"
            shutil.copytree(rig.folder / "logs", logs, dirs_exist_ok=True)
    if retries := sum(rig.supervisor.log(name).count(_RETRY) for name in rig.supervisor.workers):
        context.notes["calls to the store repeated"] = retries
    return Outcome(
        fault=name,
        broker=options.broker,
        strikes=fault.times,
        details=dict(sorted(context.notes.items())) | ({"malformed": bad} if bad else {}),
        messages=load.messages,
        samples=load.truth.samples,
        events=len(load.truth.events),
        differences=differences,
        copies=copies,
        exits=rig.supervisor.exits,
        recovery_s=round(max(rig.watcher.recoveries, default=0.0), 1),
        seconds=round(time.monotonic() - began, 1),
    )


def _check_possible(fault: Fault, options: Options) -> None:
    if fault.durable and options.broker == "embedded":
        raise ConfigError("the embedded broker keeps its log in memory: a kill loses it")
    if fault.idempotent and options.broker == "embedded":
        raise ConfigError("the embedded broker refuses idempotent producers: an agent may send twice")
    if fault.proxied and options.broker == "kafka3":
        raise ConfigError("a proxy stands before a single broker only")


def _strike(fault: Fault, context: Context, advance: Advance) -> None:
    """Strike at random moments while the load comes in; a strike's share of it is held until its turn."""
    rig = context.rig
    for number in range(fault.times):
        advance(f"strike {number + 1} of {fault.times}", number / fault.times)
        rig.feeder.allow((number + 1.5) / fault.times)
        context.sleep(*fault.gap_s)
        rig.watcher.mark()
        fault.strike(context)
    rig.feeder.allow(1.0)
