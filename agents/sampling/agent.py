"""The agent itself: sampler → profile → publisher, until the process ends."""

from __future__ import annotations

import logging
import math
import signal
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Self
from uuid import uuid4

from agents.profiles.formats.collapsed import parse_collapsed
from agents.profiles.message import Source, build_profile, encode_within
from agents.profiles.profile_files import profile_key
from agents.publishing.broker import check_broker, connect
from agents.publishing.message_queue import MessageQueue
from agents.publishing.publisher import BackgroundPublisher, Delivery, report_delivery
from agents.sampling.kernels import AUTO, CallGraph, Kernel, Sampling, make_kernel
from agents.sampling.process import ExistingProcess, SampledProcess, StartedCommand
from agents.sampling.sampler import Interval, Sampler, stop_limit_s
from agents.source.changes.history import change_message
from pipeline.model import Change, Outgoing
from pipeline.model.clock import Clock
from pipeline.settings.config import Settings
from pipeline.settings.topics import Topics

log = logging.getLogger(__name__)

DEFAULT_HZ = 101
"""Not a divisor or multiple of what periodic work runs at; py-spy randomises its pauses besides."""

MAX_WAITING = 10_000
"""Most messages that wait during an outage."""

FLUSH_S = 10.0
"""Seconds for which waiting messages are still published at the end."""

OVERHEAD_BYTES = 4096
"""Bytes of a message besides its value: key, headers and the record's own fields."""

ORPHAN_S = 60
"""Most seconds that a sampler outlives a killed agent, besides two intervals."""

_STOPS = (signal.SIGINT, signal.SIGTERM)


@dataclass(frozen=True, slots=True)
class Plan:
    """What to sample and how; either ``pid`` or ``command``."""

    source: Source
    pid: int | None
    command: tuple[str, ...]
    rate_hz: int
    interval_s: float
    native: bool
    subprocesses: bool
    idle: bool
    buffer_bytes: int
    kernel: str = AUTO
    nonblocking: bool = False
    call_graph: CallGraph = "fp"
    change: Change | None = None  # published at start


def with_change(plan: Plan, change: Change) -> Plan:
    """Add the change that was deployed; its commit names the release if nothing else does."""
    source = replace(plan.source, release=plan.source.release or change.id)
    return replace(plan, source=source, change=change)


def run_agent(plan: Plan, settings: Settings, topics: Topics, *, clock: Clock) -> int:
    """Sample and publish until the process ends or SIGINT or SIGTERM comes; return the exit code.

    Must run in the main thread, which receives signals. A command that the plan starts ends with the
    agent; if it fails by itself, or if the broker did not take every sample, the exit code is 1.

    Raises:
        ConfigError: no such process or command, or the broker refuses us.
        SamplerError: the process cannot be sampled.
    """
    with tempfile.TemporaryDirectory(prefix="smidgen-agent-") as folder:
        kernel = make_kernel(plan.kernel, _sampling(plan, Path(folder), clock))
        check_broker(settings)
        with _StopSignals() as signals:

            def sample(process: SampledProcess) -> bool:
                sampler = _sampler(plan, kernel, process, clock)
                signals.stop(sampler)
                return _publish_intervals(plan, sampler, settings, topics)

            if not plan.command:
                return 0 if sample(ExistingProcess(plan.pid or 0)) else 1
            return _sample_command(plan.command, sample, signals)


def _sampling(plan: Plan, folder: Path, clock: Clock) -> Sampling:
    return Sampling(
        folder=folder,
        clock=clock,
        rate_hz=plan.rate_hz,
        longest_s=math.ceil(2 * plan.interval_s) + ORPHAN_S,
        native=plan.native,
        idle=plan.idle,
        subprocesses=plan.subprocesses,
        nonblocking=plan.nonblocking,
        call_graph=plan.call_graph,
    )


def _sampler(plan: Plan, kernel: Kernel, process: SampledProcess, clock: Clock) -> Sampler:
    limit_s = stop_limit_s(plan.rate_hz)
    return Sampler(kernel, process, interval_s=plan.interval_s, clock=clock, stop_s=limit_s)


def _sample_command(
    words: tuple[str, ...], sample: Callable[[SampledProcess], bool], signals: _StopSignals
) -> int:
    """Start a command, sample it to its end and return the agent's exit code."""
    command = StartedCommand(words)
    try:
        complete = sample(command)
        code = 0 if signals.received else command.exit_code()
    finally:
        command.stop()
    if code:
        log.error("%s failed with exit code %d", words[0], code)
    return 1 if code or not complete else 0


def _publish_intervals(plan: Plan, sampler: Sampler, settings: Settings, topics: Topics) -> bool:
    """Publish interval after interval; return whether the broker has confirmed everything."""
    queue = MessageQueue(max_messages=MAX_WAITING, max_bytes=plan.buffer_bytes)
    publisher = BackgroundPublisher(lambda: connect(settings, topics), queue)
    publisher.start()
    try:
        if plan.change:
            publisher.offer(change_message(plan.change))
        for interval in sampler.intervals():
            for message, samples in _messages(interval, plan.source, topics["profiles"].max_message_bytes):
                publisher.offer(message, samples)
    finally:
        complete = report_sampling(publisher.close(FLUSH_S))
    return complete


def _messages(interval: Interval, source: Source, max_bytes: int) -> Iterator[tuple[Outgoing, int]]:
    """Yield the messages of an interval and the samples in each, one without samples if it was idle."""
    stacks = parse_collapsed(interval.data).stacks
    profile_id = uuid4().hex  # another process of this host may have the same stacks
    profile = build_profile(stacks, source=source, start=interval.start, end=interval.end, id=profile_id)
    parts, lost = encode_within(profile, max_bytes - OVERHEAD_BYTES)
    if lost:
        log.warning("%d samples of stacks too large for a message were left out", lost)
    for part in parts:
        yield Outgoing("profiles", profile_key(source), part.value), part.samples


def report_sampling(delivery: Delivery) -> bool:
    """Log what became of everything that was offered; return whether nothing was lost."""
    if delivery.published.messages and not delivery.published.samples:
        log.warning("the process used no CPU while it was sampled; --idle counts what waits, too")
    return report_delivery(delivery, "agent")


class _StopSignals:
    """Lets SIGINT and SIGTERM end sampling in order, also those that come before it began."""

    def __init__(self) -> None:
        self.received = False
        self._sampler: Sampler | None = None
        self._before: dict[signal.Signals, Any] = {}

    def stop(self, sampler: Sampler) -> None:
        """Make signals stop this sampler, at once if one came already."""
        self._sampler = sampler
        if self.received:
            sampler.stop()

    def __enter__(self) -> Self:
        self._before = {number: signal.signal(number, self._receive) for number in _STOPS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _receive(self, _number: int, _frame: FrameType | None) -> None:
        self.received = True
        if self._sampler:
            self._sampler.stop()
