"""Rig of broker, store, proxies and workers for a load, with a watcher of all of them."""

from __future__ import annotations

import contextlib
import os
import signal
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, Self

from loadgen.bench.faults.agents import Agents
from loadgen.bench.faults.brokers import BrokerKind, FaultCluster
from loadgen.bench.faults.check import Differences, compare_all, wrong_positions
from loadgen.bench.faults.feeder import Feeder
from loadgen.bench.faults.load import FaultLoad, workload_file
from loadgen.bench.faults.proxies import StoreProxy
from loadgen.bench.faults.truth import STACK_WINDOW_S, WINDOW_S
from loadgen.bench.faults.watch import OffsetView, OffsetWatcher, content_hash
from loadgen.bench.faults.workers import CODE, Supervisor, Worker
from loadgen.engines.clickhouse.server import ClickHouseServer
from loadgen.harness import run_smidgen
from pipeline.embedded.stack import EmbeddedStore
from pipeline.model.errors import SmidgenError
from pipeline.settings.config import Settings
from pipeline.settings.topics import load_topics
from pipeline.stages.factory import SCAN_STAGES
from pipeline.storage.connect import open_store

READY_S = 180.0
STUCK_S = 240.0
"""Far longer than any delay that ends by itself: sessions, rebalances, pauses between attempts."""

StoreKind = Literal["embedded", "server"]
"""The embedded store's own front, or ClickHouse's HTTP server."""

_POLL_S = 0.6  # longer than the watcher needs for a look


@dataclass(frozen=True)
class Setup:
    """Parts and settings of a rig."""

    broker: BrokerKind = "embedded"
    store: StoreKind = "embedded"
    proxied: bool = False
    """Whether workers and agents reach the broker through a proxy."""
    code: Path = CODE
    clocks: tuple[float, ...] = ()
    """Seconds by which the clocks of the workers are ahead, in turn."""
    data: Path | None = None
    """Folder for the store's tables; one in the rig's own unless given."""
    aggregates: int = 2
    batch_size: int = 50
    """Small, so that many batches are under way at a strike."""
    part_items: int = 0
    """Items of a scan in one message; the product's own number unless given."""
    agents: bool = False
    """Whether each service has an agent process of its own, instead of one publisher in this process."""


class Rig:
    """Real stages, each a process of its own, fed by the publishers of agents."""

    def __init__(self, setup: Setup, load: FaultLoad, *, seconds: float) -> None:
        self.setup = setup
        self.load = load
        self._seconds = seconds
        self.topics = load_topics()
        self._looked = OffsetView(0.0, self.topics)

    def __enter__(self) -> Self:
        with ExitStack() as starting:
            self._start(starting)
            self._running = starting.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._running.close()

    def _start(self, starting: ExitStack) -> None:
        enter = starting.enter_context
        self.folder = Path(enter(tempfile.TemporaryDirectory(prefix="smidgen-faults-")))
        self.broker = enter(FaultCluster(self.setup.broker, proxied=self.setup.proxied))
        run_smidgen("topics", "apply", "--broker", self.broker.url, folder=self.setup.code)
        self._data = self.setup.data or self.folder / "data"
        self.store = self._new_store()
        starting.callback(lambda: self.store.stop())  # whichever it is by then
        self.store.start()
        self.proxy: StoreProxy = enter(StoreProxy(self.store.url))
        run_smidgen("store", "migrate", "--store", self.store.url, folder=self.setup.code)
        (self.folder / "workload.yaml").write_text(workload_file())
        logs = self.folder / "logs"
        logs.mkdir()
        self.supervisor = enter(Supervisor(logs))
        for number, (name, stage) in enumerate(self._crew()):
            clocks = self.setup.clocks or (0.0,)
            self.add_worker(name, stage, code=self.setup.code, clock_ahead_s=clocks[number % len(clocks)])
        self.watcher = enter(OffsetWatcher(self.broker.url, self.topics))
        self.wait(self.supervisor.ready, READY_S, "the workers to get their partitions")
        settings = Settings(broker=self.broker.url, idempotent_producer=self.broker.idempotent)
        self.feeder = self._new_feeder(settings)
        enter(self.feeder)

    def _new_store(self) -> EmbeddedStore | ClickHouseServer:
        return ClickHouseServer(self._data) if self.setup.store == "server" else EmbeddedStore(self._data)

    def _new_feeder(self, settings: Settings) -> Feeder | Agents:
        if self.setup.agents:
            return Agents(self.load, settings, self.folder / "agents", seconds=self._seconds)
        return Feeder(self.load.batches, settings, self.topics, seconds=self._seconds)

    def _crew(self) -> list[tuple[str, str]]:
        first = [(f"aggregate-{number + 1}", "aggregate") for number in range(self.setup.aggregates)]
        return [*first, *((stage, stage) for stage in SCAN_STAGES[1:])]

    def add_worker(self, name: str, stage: str, *, code: Path = CODE, clock_ahead_s: float = 0.0) -> None:
        """Start an additional worker."""
        arguments = [
            *("--broker", self.broker.url, "--store", self.proxy.url),
            *("--workloads", str(self.folder / "workload.yaml")),
            *("--window", f"{WINDOW_S:g}s", "--stack-window", f"{STACK_WINDOW_S:g}s"),
            *("--batch-size", str(self.setup.batch_size), "--batch-wait", "200ms"),
        ]
        if not self.broker.idempotent:
            arguments.append("--no-idempotent-producer")
        self.supervisor.add(Worker(name, stage, tuple(arguments), code, clock_ahead_s, self.setup.part_items))

    def wait(self, condition: Callable[[], bool], seconds: float, what: str) -> None:
        """Wait for a condition.

        Raises:
            SmidgenError: the condition did not hold in time.
        """
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                raise SmidgenError(f"faults: waited {seconds:g} s in vain for {what}\n{self.state()}")
            time.sleep(_POLL_S)

    def wait_drained(self) -> None:
        """Wait until every stage has processed everything, as long as any stage makes progress.

        Raises:
            SmidgenError: nothing moved for STUCK_S.
        """
        moved, before = time.monotonic(), self.watcher.view
        while not self.drained():
            view = self.watcher.view
            if (view.ends, view.committed) != (before.ends, before.committed):
                moved, before = time.monotonic(), view
            if time.monotonic() - moved > STUCK_S:
                raise SmidgenError(f"faults: nothing moved for {STUCK_S:g} s\n{self.state()}")
            time.sleep(_POLL_S)

    def state(self) -> str:
        """Return the lag of every stage and the last log lines of every worker."""
        lines = [f"watcher: {self.watcher.trouble}"] if self.watcher.trouble else []
        lines += [f"lag of {stage}: {self.watcher.view.lag(stage)}" for stage in SCAN_STAGES]
        for name in self.supervisor.workers:
            lines += [f"{name}: {line}" for line in self.supervisor.log(name).splitlines()[-3:]]
        return "\n".join(lines)

    def drained(self) -> bool:
        """Return whether all messages handed over are published and every stage has processed them."""
        view, before = self.watcher.view, self._looked
        self._looked = view
        sent = self.feeder.delivery.published.messages if self.feeder.delivery else 0
        seen = sum(end for (topic, _), end in view.ends.items() if topic in self.topics.inputs("aggregate"))
        if not sent or seen < sent or not view.covers(view):
            return False
        # Checked twice: the first look may have seen a stage's offset, but not its last messages.
        return view.at > before.at and view.ends == before.ends and view.committed == before.committed

    def compare(self, malformed: int = 0) -> tuple[Differences, int]:
        """Return the differences from the truth, and the number of events that came in several copies.

        ``malformed`` is the number of messages that must each have a dead letter. Where agents were killed,
        the truth is that of the messages on the log.
        """
        if self.setup.agents:
            published = self.watcher.published
            self.load = self.load.as_published(lambda m: content_hash(m.topic, m.value) in published)
        with closing(open_store(self.store.url)) as store:  # past the proxy
            rows = self.setup.code == CODE
            differences, copies = compare_all(store, self.load.truths, self.watcher.events, rows=rows)
            return replace(
                differences,
                refused=abs(len(self.watcher.refused) - malformed),
                positions=wrong_positions(store, self.topics, self.watcher.view.ends),
            ), copies

    def kill_store(self) -> int | None:
        """SIGKILL the store, and start it again on the same folder; return its exit code."""
        os.kill(self.store.pid, signal.SIGKILL)
        code = self.store.ended()
        self.store.stop()
        self.start_store()
        return code

    def start_store(self) -> None:
        """Start the store on its folder, wherever its new address is."""
        self.store = self._new_store()
        self.store.start()
        self.proxy.upstream = self.store.url

    def signal_store(self, number: signal.Signals) -> None:
        """Send the store a signal."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.store.pid, number)
