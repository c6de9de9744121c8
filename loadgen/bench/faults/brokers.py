"""The brokers that faults strike: the embedded one, and Apache Kafka with one or three brokers."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Literal, Self

from loadgen.bench.faults.proxies import BrokerProxy
from loadgen.engines.kafka.cluster import ClusterSettings, KafkaCluster
from pipeline.embedded.broker import EmbeddedBroker
from pipeline.model.errors import ConfigError

BrokerKind = Literal["embedded", "kafka", "kafka3"]


class FaultCluster:
    """One cluster for as long as the ``with`` block runs; everything in it is gone afterwards.

    Args:
        kind: kind of broker.
        proxied: whether a proxy stands before the broker.

    Raises:
        ConfigError: a proxy before more than one broker.
    """

    def __init__(self, kind: BrokerKind, *, proxied: bool) -> None:
        if proxied and kind == "kafka3":
            raise ConfigError("a proxy stands before a single broker only")
        self._kind = kind
        self._running = ExitStack()
        self._server: EmbeddedBroker | KafkaCluster
        self.proxy = BrokerProxy(0) if proxied else None
        self.url = ""

    @property
    def idempotent(self) -> bool:
        """Whether the broker takes idempotent producers."""
        return self._kind != "embedded"

    @property
    def pids(self) -> dict[str, int]:
        """Process ids by name."""
        server = self._server
        pids = (server.pid,) if isinstance(server, EmbeddedBroker) else server.pids
        return {f"broker-{number}": pid for number, pid in enumerate(pids)}

    @property
    def cluster(self) -> KafkaCluster:
        """The cluster whose brokers can be killed and suspended.

        Raises:
            ConfigError: the broker is the embedded one, whose log does not survive a kill.
        """
        if isinstance(self._server, EmbeddedBroker):
            raise ConfigError("the embedded broker keeps its log in memory: a kill loses it")
        return self._server

    def __enter__(self) -> Self:
        enter = self._running.enter_context
        port = enter(self.proxy).port if self.proxy else 0
        if self._kind == "embedded":
            self._server = enter(EmbeddedBroker(advertised_port=port))
        else:
            self._server = enter(self._kafka(port))
        self.url = self._server.url
        if self.proxy:
            self.proxy.point_to(int(self.url.rpartition(":")[2]))
            self.url = f"127.0.0.1:{port}"
        return self

    def __exit__(self, *_: object) -> None:
        self._running.close()

    def _kafka(self, advertised_port: int) -> KafkaCluster:
        properties: dict[str, str] = {}
        if advertised_port:
            properties["advertised.listeners"] = f"INTERNAL://127.0.0.1:{advertised_port}"
        if self._kind == "kafka3":
            properties["min.insync.replicas"] = "2"
        return KafkaCluster(3 if self._kind == "kafka3" else 1, ClusterSettings(properties=properties))
