"""Loop of the host agent: the times at which it scans, publishes, measures, reads rules again and ends."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import math
import queue
import signal
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from agents.host.agent import Edges, HostAgent
from agents.host.fleet.client import FleetClient
from agents.host.numbers import AgentState, summary
from agents.host.proc import ProcReader
from agents.host.rules_file import HostConfig
from agents.host.rules_source import FileRules, GatewayRules, RulesSource
from agents.publishing.broker import check_broker, connect
from agents.publishing.message_queue import MessageQueue
from agents.publishing.page import metrics_page
from agents.publishing.publisher import BackgroundPublisher, report_delivery
from agents.publishing.spool import Spool
from agents.sampling.agent import FLUSH_S, MAX_WAITING, OVERHEAD_BYTES
from pipeline.model.clock import Clock
from pipeline.processes import TaskSupervisor
from pipeline.settings.config import Settings
from pipeline.settings.topics import Topics

log = logging.getLogger(__name__)

GRACE_S = 1.0
"""Seconds to wait for the parts of an interval after its end: kernels write their stacks when they end."""

SUMMARY_S = 60.0


@dataclass(frozen=True, slots=True)
class HostOptions:
    """Options of the command: the source of rules, the host's name, and the address of the numbers."""

    rules: Path | FleetClient
    host: str
    metrics: tuple[str, int] | None = None
    spool: Path | None = None  # instead of the rules'


class _Signals:
    """Records SIGINT and SIGTERM, which end the agent, and SIGHUP, after which it reads its rules again."""

    def __init__(self) -> None:
        self.wakes: queue.SimpleQueue[None] = queue.SimpleQueue()
        self.stopping = False
        self.reloading = False

    def wake(self) -> None:
        """End the wait of the loop."""
        self.wakes.put(None)

    def wait(self, timeout_s: float | None) -> None:
        """Wait for a signal or a wake, with a timeout in seconds."""
        with contextlib.suppress(queue.Empty):
            self.wakes.get(timeout=timeout_s)

    def stop(self, *_: object) -> None:
        """End the agent."""
        self.stopping = True
        self.wake()

    def reload(self, *_: object) -> None:
        """Have the rules read again."""
        self.reloading = True
        self.wake()


@contextlib.contextmanager
def _signals() -> Iterator[_Signals]:
    signals = _Signals()
    actions = {signal.SIGINT: signals.stop, signal.SIGTERM: signals.stop, signal.SIGHUP: signals.reload}
    before = {number: signal.signal(number, action) for number, action in actions.items()}
    try:
        yield signals
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def run_host_agent(options: HostOptions, settings: Settings, topics: Topics, *, clock: Clock) -> int:
    """Sample and publish until SIGINT or SIGTERM; return the exit code, 1 if samples were lost.

    Must run in the main thread, which receives signals.

    Raises:
        ConfigError: the settings file is wrong, or the broker refuses us.
    """
    tasks = TaskSupervisor()
    source = _source(options, tasks)
    check_broker(settings)
    with (
        _signals() as signals,
        tempfile.TemporaryDirectory(prefix="smidgen-host-") as folder,
        contextlib.closing(source),
    ):
        source.start(signals.wake)
        config = _first_rules(source, signals)
        if config is None:
            return 0
        outbox = message_queue(config, options.spool)
        publisher = BackgroundPublisher(lambda: connect(settings, topics), outbox, tasks)
        edges = Edges(
            host=options.host,
            reader=ProcReader(),
            folder=Path(folder),
            clock=clock,
            wake=signals.wake,
            max_bytes=topics["profiles"].max_message_bytes - OVERHEAD_BYTES,
        )
        agent = HostAgent(config, edges, publisher.offer)

        def state() -> AgentState:
            return agent.state(publisher.delivery, outbox.spooled_bytes)

        with metrics_page(
            lambda: [*agent.numbers.samples(), *tasks.samples()],
            options.metrics,
            settings.token,
            problem=tasks.problem,
        ):
            publisher.start()
            try:
                _Loop(agent, config, source, signals, state, clock).run()
            finally:
                complete = report_delivery(publisher.close(FLUSH_S), "agent")
        return 0 if complete else 1


def _source(options: HostOptions, tasks: TaskSupervisor) -> RulesSource:
    if isinstance(options.rules, Path):
        return FileRules(options.rules)
    return GatewayRules(options.rules, options.host, tasks=tasks)


def _first_rules(source: RulesSource, signals: _Signals) -> HostConfig | None:
    """Wait for rules; return None if a signal ends the agent before."""
    while not signals.stopping:
        if config := source.changed():
            return config
        signals.wait(None)
    return None


class _Loop:
    """Calls the steps of an agent when they are due, until a signal comes."""

    def __init__(
        self,
        agent: HostAgent,
        config: HostConfig,
        source: RulesSource,
        signals: _Signals,
        state: Callable[[], AgentState],
        clock: Clock,
    ) -> None:
        self._agent = agent
        self._config = config
        self._source = source
        self._signals = signals
        self._state = state
        self._clock = clock

    def run(self) -> None:
        """Go on until a signal comes; then publish all that was sampled."""
        scan_at = summary_at = self._clock()
        publish_at = self._next_publication()
        try:
            while not self._signals.stopping:
                now = self._clock()
                if self._follow_rules():
                    scan_at = now
                self._agent.follow_plan(self._source.planned())
                if now >= scan_at:
                    self._agent.scan()
                    scan_at = self._clock() + self._config.scan_s
                if now >= publish_at:
                    self._agent.publish()
                    self._agent.keep_budget()
                    publish_at = self._next_publication()
                    self._agent.numbers.show(self._state())
                if now >= summary_at:
                    self._report()
                    summary_at = now + SUMMARY_S
                self._signals.wait(max(min(scan_at, publish_at, summary_at) - self._clock(), 0.0))
        finally:
            self._agent.stop()
            self._agent.publish()
            log.info("%s", summary(self._state()))

    def _next_publication(self) -> float:
        interval_s = self._config.interval_s
        grace_s = min(GRACE_S, interval_s / 2)
        return (math.floor((self._clock() - grace_s) / interval_s) + 1) * interval_s + grace_s

    def _report(self) -> None:
        state = self._state()
        log.info("%s", summary(state))
        self._source.report(state)

    def _follow_rules(self) -> bool:
        """Use new rules if there are any; return whether there were."""
        if self._signals.reloading:
            self._signals.reloading = False
            self._source.ask()
        config = self._source.changed()
        if config is None:
            return False
        self._config = dataclasses.replace(config, interval_s=self._config.interval_s)
        self._agent.use(self._config)
        log.info("%d other rules are followed", len(config.rules))
        return True


def message_queue(config: HostConfig, spool: Path | None) -> MessageQueue:
    """Return the queue of an agent; the folder of its spool is ``spool``, or that of its rules."""
    folder = spool or config.spool
    on_disk = Spool(folder, config.spool_bytes) if folder else None
    return MessageQueue(max_messages=MAX_WAITING, max_bytes=config.buffer_bytes, spool=on_disk)
