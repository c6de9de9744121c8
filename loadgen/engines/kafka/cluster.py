"""Brokers of Apache Kafka on loopback, each also a controller (KRaft), for tests that kill or suspend."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from loadgen.engines.kafka.folders import format_folders, reason_in
from loadgen.engines.kafka.jars import Jars, kafka_jars, locked
from loadgen.engines.kafka.probe import free_ports, known_brokers
from pipeline.model.errors import BrokerUnavailable
from pipeline.processes import Child

_START_TIMEOUT_S = 180.0
_POLL_S = 0.1
_ATTEMPTS = 3  # another process may take a free port before the broker listens on it
_STOP_TIMEOUT_S = 60.0

_INTERNAL, _CONTROLLER, _CLIENT = "INTERNAL", "CONTROLLER", "CLIENT"

# A broker of tests lives for seconds or minutes: compile little, collect simply, hold little.
_JVM = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-Xms64m")


@dataclass(frozen=True, slots=True)
class ScramUser:
    """A user that exists from the first start; no comma, bracket or equals sign in the password."""

    name: str
    password: str
    mechanism: str = "SCRAM-SHA-256"


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """Setup of a cluster's brokers.

    ``security_protocol`` is that of the listener that ``url`` names: PLAINTEXT, SSL, SASL_PLAINTEXT or
    SASL_SSL; ``listener_properties`` are its settings, without the prefix ``listener.name.client.``. Brokers
    talk to each other over a listener of their own, always in plain text. ``properties`` are further settings
    of every broker, and win over the ones made here. ``scram`` are users to create.
    """

    security_protocol: str = "PLAINTEXT"
    listener_properties: Mapping[str, str] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)
    scram: Sequence[ScramUser] = ()
    heap: str = "256m"  # of Java, for each broker
    jvm: Sequence[str] = ()  # further options of Java
    host: str = "127.0.0.1"  # a loopback address or name
    jars: Jars | None = None  # the jars to run; by default those that pom.xml names, fetched if need be


@dataclass(slots=True)
class _Broker:
    """One broker; its folder outlives its process."""

    folder: Path
    ports: dict[str, int]
    child: Child | None = None
    starts: int = 0
    paused: bool = False

    @property
    def running(self) -> bool:
        return self.child is not None and self.child.running

    @property
    def log(self) -> Path:
        return self.folder / f"server-{self.starts}.log"


class KafkaCluster:
    """Apache Kafka for as long as the ``with`` block runs; brokers are named by their index, from 0.

    A broker's index is its node id too. Its data are in a temporary folder and survive ``kill`` and
    ``restart``; ``stop`` removes them. Everything listens on ``host`` alone. Its processes end with the
    thread that started them.

    Args:
        brokers: number of brokers; each is broker and controller.
        settings: setup of the brokers.

    Raises:
        ConfigError: Java or Maven is missing, or Kafka cannot be fetched.
        BrokerUnavailable: a broker did not start; the text says why.
    """

    def __init__(self, brokers: int = 1, settings: ClusterSettings | None = None) -> None:
        self._count = brokers
        self._settings = settings or ClusterSettings()
        self._protocol = self._settings.security_protocol
        self._host = self._settings.host
        self._jars = self._settings.jars
        self._nodes: list[_Broker] = []
        self._folder: Path | None = None

    @property
    def url(self) -> str:
        """Bootstrap servers, comma-separated, of the listener for clients."""
        return self._servers(_INTERNAL if self._protocol == "PLAINTEXT" else _CLIENT)

    @property
    def plain_url(self) -> str:
        """Bootstrap servers of the plain-text listener, whatever the security of the clients' listener."""
        return self._servers(_INTERNAL)

    @property
    def pids(self) -> tuple[int, ...]:
        """The process id of each broker; 0 for one that does not run."""
        return tuple(node.child.pid if node.child and node.child.running else 0 for node in self._nodes)

    def folder(self, index: int) -> Path:
        """Return a broker's folder, which has ``data`` and a log of each start."""
        return self._nodes[index].folder

    def log(self, index: int) -> str:
        """Return what one broker has logged since its last start."""
        with contextlib.suppress(FileNotFoundError):
            return self._nodes[index].log.read_text(errors="replace")
        return ""

    def start(self) -> None:
        """Start all brokers and wait until they know each other."""
        self._jars = self._jars or prepared_jars()
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                with contextlib.ExitStack() as started:
                    started.callback(self.stop)
                    self._start()
                    started.pop_all()
                return
            except _PortTaken:
                if attempt == _ATTEMPTS:
                    raise

    def stop(self) -> None:
        """End all brokers and remove their data."""
        for index in range(len(self._nodes)):
            self.kill(index)
        self._nodes = []
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        self._folder = None

    def kill(self, index: int) -> int | None:
        """End one broker with SIGKILL, suspended or not; return its exit code, None if it did not run."""
        node = self._nodes[index]
        if node.running and node.child is not None:
            node.child.send(signal.SIGKILL)
        return self._collect(node)

    def shut_down(self, index: int) -> None:
        """End one broker in order: it hands its partitions over first."""
        node = self._nodes[index]
        if node.running and node.child is not None:
            node.child.send(signal.SIGTERM)
            node.child.wait(_STOP_TIMEOUT_S)
        self.kill(index)

    def pause(self, index: int) -> None:
        """Suspend one broker with SIGSTOP: its connections stay, and nothing is answered."""
        os.kill(self._pid(index), signal.SIGSTOP)
        self._nodes[index].paused = True

    def resume(self, index: int) -> None:
        """Let a suspended broker go on."""
        os.kill(self._pid(index), signal.SIGCONT)
        self._nodes[index].paused = False

    def restart(self, *indexes: int) -> None:
        """Start brokers that have ended, on their data and ports, and wait until the cluster has them again.

        After SIGKILL the cluster first has to consider the broker dead, which takes 9 s by default. Brokers
        that need each other for a majority must be restarted in one call.
        """
        for index in indexes:
            if self._nodes[index].running:
                raise ValueError(f"broker {index} is still running")
            self._launch(index)
        self.wait_ready(*indexes)

    def wait_ready(self, *indexes: int) -> None:
        """Wait until these brokers (default: all that run) answer and know all brokers that run.

        A suspended broker does not count as running: the other brokers consider it dead after a while.

        Raises:
            BrokerUnavailable: a broker ended, or is not ready in time.
        """
        wanted = self._live()
        for index in indexes or sorted(wanted):
            self._wait_known(index, lambda brokers: wanted <= brokers, f"Kafka broker {index} is not ready")

    def wait_gone(self, index: int) -> None:
        """Wait until the running brokers consider an ended or suspended broker dead.

        Raises:
            BrokerUnavailable: a running broker ended, or the time is over.
        """
        for live_index in sorted(self._live()):
            self._wait_known(
                live_index,
                lambda brokers: bool(brokers - {index}) and index not in brokers,
                f"Kafka broker {index} is not gone",
            )

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _start(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="smidgen-kafka-"))
        ports = iter(free_ports(self._host, 3 * self._count))
        for index in range(self._count):
            folder = self._folder / f"broker-{index}"
            folder.mkdir()
            names = (_INTERNAL, _CONTROLLER, _CLIENT)
            self._nodes.append(_Broker(folder, {name: next(ports) for name in names}))
        for index, node in enumerate(self._nodes):
            lines = [f"{key}={value}\n" for key, value in self._properties(index).items()]
            (node.folder / "server.properties").write_text("".join(lines))
        self._format()
        for index in range(self._count):
            self._launch(index)
        self.wait_ready(*range(self._count))

    def _live(self) -> set[int]:
        return {i for i, node in enumerate(self._nodes) if node.running and not node.paused}

    def _wait_known(self, index: int, enough: Callable[[set[int]], bool], failure: str) -> None:
        """Ask one broker for the known brokers until ``enough`` accepts them."""
        node = self._nodes[index]
        deadline = time.monotonic() + _START_TIMEOUT_S
        while not enough(known_brokers(self._host, node.ports[_INTERNAL])):
            if not node.running:
                self._raise_end(index)
            if time.monotonic() > deadline:
                raise BrokerUnavailable(f"{failure} after {_START_TIMEOUT_S:g} s")
            time.sleep(_POLL_S)

    def _properties(self, index: int) -> dict[str, str]:
        node = self._nodes[index]
        secured = self._protocol != "PLAINTEXT"
        protocols = {_INTERNAL: "PLAINTEXT", _CONTROLLER: "PLAINTEXT"}
        if secured:
            protocols[_CLIENT] = self._protocol
        copies = str(min(3, self._count))
        made = {
            "process.roles": "broker,controller",
            "node.id": str(index),
            "controller.quorum.voters": ",".join(
                f"{i}@{self._host}:{voter.ports[_CONTROLLER]}" for i, voter in enumerate(self._nodes)
            ),
            "listeners": ",".join(f"{name}://{self._host}:{node.ports[name]}" for name in protocols),
            "listener.security.protocol.map": ",".join(f"{k}:{v}" for k, v in protocols.items()),
            "inter.broker.listener.name": _INTERNAL,
            "controller.listener.names": _CONTROLLER,
            "log.dirs": os.fspath(node.folder / "data"),
            "auto.create.topics.enable": "false",
            "offsets.topic.num.partitions": "6",
            "offsets.topic.replication.factor": copies,
            "transaction.state.log.num.partitions": "3",
            "transaction.state.log.replication.factor": copies,
            "transaction.state.log.min.isr": "1",
            "share.coordinator.state.topic.replication.factor": copies,
            "share.coordinator.state.topic.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",  # no other broker is about to start
            "log.cleaner.dedupe.buffer.size": "2097152",
        }
        if secured:
            prefix = f"listener.name.{_CLIENT.lower()}."
            made |= {prefix + key: value for key, value in self._settings.listener_properties.items()}
        return made | dict(self._settings.properties)

    def _format(self) -> None:
        assert self._jars is not None, "not started"
        users = [
            part
            for user in self._settings.scram
            for part in ("--add-scram", f"{user.mechanism}=[name={user.name},password={user.password}]")
        ]
        format_folders([node.folder for node in self._nodes], self._jars, self._java(), users)

    def _launch(self, index: int) -> None:
        node = self._nodes[index]
        self._collect(node)
        node.starts += 1
        config = os.fspath(node.folder / "server.properties")
        node.child = Child([*self._java(node.log), "kafka.Kafka", config])
        node.child.drain()

    def _java(self, log: Path | None = None) -> list[str]:
        assert self._jars is not None, "not started"
        jvm = (*_JVM, f"-Xmx{self._settings.heap}", *self._settings.jvm)
        command = [self._jars.java, *jvm, *_archive_options(self._jars)]
        level = "-Dorg.slf4j.simpleLogger.defaultLogLevel=" + ("warn" if log is None else "info")
        command += [level, "-Dorg.slf4j.simpleLogger.showDateTime=true"]
        command += ["-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS"]
        if log is not None:
            command.append(f"-Dorg.slf4j.simpleLogger.logFile={log}")
        return [*command, "-cp", self._jars.classpath]

    def _collect(self, node: _Broker) -> int | None:
        code = node.child.stop() if node.child is not None else None
        node.child = None
        node.paused = False
        return code

    def _raise_end(self, index: int) -> None:
        node = self._nodes[index]
        words = reason_in(self.log(index)) or (node.child.last_words() if node.child else "")
        failure = _PortTaken if "Address already in use" in self.log(index) else BrokerUnavailable
        raise failure(f"Kafka broker {index} ended: {words or 'it said nothing'}")

    def _pid(self, index: int) -> int:
        pid = self.pids[index]
        if not pid:
            raise ValueError(f"broker {index} is not running")
        return pid

    def _servers(self, listener: str) -> str:
        return ",".join(f"{self._host}:{node.ports[listener]}" for node in self._nodes)


class _PortTaken(BrokerUnavailable):
    """Another process listens on a port that was free a moment ago."""


def prepared_jars(cache: Path | None = None) -> Jars:
    """Return the jars with their archive of loaded classes, which a first start makes if need be.

    Raises:
        ConfigError: Java or Maven is missing, or Kafka cannot be fetched.
        BrokerUnavailable: that first start failed.
    """
    jars = kafka_jars(cache)
    with locked(jars.archive):
        if not jars.archive.exists():
            # Java writes the archive when it ends in order; only a complete one counts.
            partial = jars.archive.with_suffix(".partial")
            settings = ClusterSettings(jars=jars, jvm=[f"-XX:ArchiveClassesAtExit={partial}"])
            with KafkaCluster(settings=settings) as training:
                training.shut_down(0)
            if partial.exists():
                partial.rename(jars.archive)
    return jars


def _archive_options(jars: Jars) -> list[str]:
    # A Java that cannot use the archive runs without it.
    return [f"-XX:SharedArchiveFile={jars.archive}"] if jars.archive.exists() else []
