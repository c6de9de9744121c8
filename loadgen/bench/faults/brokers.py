"""The brokers that faults strike: the embedded one, and Apache Kafka with one or three brokers."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Literal, Protocol, Self

from loadgen.bench.faults.proxies import BrokerProxy
from loadgen.kafka.cluster import ClusterSettings, KafkaCluster
from pipeline.embedded.broker import EmbeddedBroker
from pipeline.errors import ConfigError

BrokerKind = Literal["embedded", "kafka", "kafka3"]


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

    def __exit__(self, *_: object) -> None:
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
        cluster = KafkaCluster(self._brokers, ClusterSettings(properties=properties))
        self._cluster = self._running.enter_context(cluster)
        self.url = _address(self._cluster.url, self.proxy)
        return self

    def __exit__(self, *_: object) -> None:
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
        self._broker = EmbeddedBroker()
        self.proxy: BrokerProxy | None = None
        self.url = ""

    @property
    def pids(self) -> dict[str, int]:
        """Process ids by name."""
        return {"broker-0": self._broker.pid}

    def __enter__(self) -> Self:
        if self._proxied:
            self.proxy = self._running.enter_context(BrokerProxy(0))
            self._broker = EmbeddedBroker(advertised_port=self.proxy.port)
        self._running.enter_context(self._broker)
        self.url = _address(self._broker.url, self.proxy)
        return self

    def __exit__(self, *_: object) -> None:
        self._running.close()

    def kill(self, number: int) -> None:
        """Refuse: a kill of this broker is the end of its log."""
        raise ConfigError("the embedded broker keeps its log in memory: a kill loses it")

    restart = freeze = thaw = kill


def _address(url: str, proxy: BrokerProxy | None) -> str:
    """Return where clients find a broker: itself, or the proxy that is put before it."""
    if proxy is None:
        return url
    proxy.point_to(int(url.rpartition(":")[2]))
    return f"127.0.0.1:{proxy.port}"
