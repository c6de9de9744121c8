"""Senders of profiles: to a gateway over HTTP, Kafka, a file, or a function."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import SplitResult, unquote, urlsplit

from agents.inprocess.messages import ProfileMessage
from agents.inprocess.options import Identity, Options, SendTo
from agents.inprocess.outbox import Outbox, Refused, Sender, TryLater

TIMEOUT_S = 10.0
PATH = "/profiles"
"""Path at which a gateway takes messages of ``profiles``."""

_TRY_AGAIN = (408, 425, 429)


def open_sender(options: Options) -> Sender:
    """Return the sender that the options name.

    Raises:
        ValueError: the options are invalid.
    """
    to = options.send_to
    if callable(to):
        return Outbox(_to_function(to))
    parts = check_target(to)
    if parts.scheme == "kafka":
        return KafkaSender(to, options.identity)
    if parts.scheme == "file":
        return Outbox(_to_file(Path(parts.path)))
    return Outbox(Gateway(parts, options.token).deliver)


def check_target(to: SendTo) -> SplitResult:
    """Return the parts of an address.

    Raises:
        ValueError: nothing can be sent there.
    """
    parts = urlsplit(str(to))
    if parts.scheme == "kafka" and parts.netloc:
        return parts  # perhaps several brokers, which the client checks
    try:
        _ = parts.port
    except ValueError as error:
        raise ValueError(f"send_to: {error}") from None
    if parts.scheme in ("http", "https") and parts.hostname:
        return parts
    if parts.scheme == "file" and parts.path:
        return parts
    raise ValueError("send_to: should be http://host:port of a gateway, kafka://host:port or file:path")


class Gateway:
    """Posts messages to ``/profiles`` of a gateway, over a persistent connection."""

    def __init__(self, parts: SplitResult, token: str = "") -> None:
        self._secure = parts.scheme == "https"
        self._address = (parts.hostname or "", parts.port)
        self._path = parts.path.rstrip("/") + PATH
        self._headers = {"Content-Type": "application/json"}
        if parts.username:
            user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            self._headers["Authorization"] = f"Basic {base64.b64encode(user.encode()).decode()}"
        elif token:
            self._headers["Authorization"] = f"Bearer {token}"
        self._connection: Any = None

    def deliver(self, value: bytes) -> None:
        """Post one message.

        Raises:
            TryLater: the gateway does not answer, is full, or fails.
            Refused: the gateway will never take this message.
        """
        import http.client  # imported in the sender's thread: it would take most of the time of a start

        reused = self._connection is not None
        try:
            status, reason, after_s = self._post(value)
        except (OSError, http.client.HTTPException) as error:
            self._close()
            if reused:  # closed by the other side while nothing was sent: no outage yet
                return self.deliver(value)
            raise TryLater(f"{self._address[0]}: {error or type(error).__name__}") from None
        if 200 <= status < 300:
            return None
        self._close()
        text = f"{self._address[0]}: {status} {reason}"
        if status >= 500 or status in _TRY_AGAIN:
            raise TryLater(text, after_s)
        raise Refused(text)

    def _post(self, value: bytes) -> tuple[int, str, float]:
        import http.client

        if self._connection is None:
            kind = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
            self._connection = kind(*self._address, timeout=TIMEOUT_S)
        self._connection.request("POST", self._path, value, self._headers)
        response = self._connection.getresponse()
        body = response.read(1000).decode("utf-8", "replace").strip()
        if response.read(1):
            self._close()
        after = response.headers.get("Retry-After", "")
        line = body.splitlines()[0][:200] if body else response.reason
        return response.status, line, min(float(after), 600.0) if after.isdecimal() else 0.0

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class _Publisher(Protocol):
    """Methods of ``agents.publishing.publisher.BackgroundPublisher`` that are used here."""

    def offer(self, message: Any, samples: int = 0) -> None: ...

    def close(self, timeout_s: float) -> Any: ...


class KafkaSender:
    """Publishes with the agent's own publisher.

    Raises:
        ValueError: packages for Kafka are not installed, or its settings are wrong.
    """

    def __init__(self, broker: str, identity: Identity) -> None:
        try:
            from agents.publishing.broker import connect, quiet_client
            from agents.publishing.message_queue import MessageQueue
            from agents.publishing.publisher import BackgroundPublisher
            from pipeline.model import Outgoing
            from pipeline.model.errors import ConfigError
            from pipeline.settings.config import load_settings
        except ImportError as error:
            raise ValueError(f"send_to: Kafka needs all of Smidgen installed ({error})") from None
        try:
            settings = load_settings({"broker": broker})
            topics = settings.read_topics()
        except ConfigError as error:
            raise ValueError(str(error)) from None
        quiet_client(settings)
        self._outgoing = Outgoing
        self._key = f"{identity.service}/{identity.host}"
        self._publisher: _Publisher
        queue = MessageQueue(max_messages=1000, max_bytes=8 * 2**20)
        publisher = BackgroundPublisher(lambda: connect(settings, topics), queue)
        publisher.start()
        self._publisher = publisher

    def offer(self, message: ProfileMessage) -> None:
        """Take a message without waiting."""
        self._publisher.offer(self._outgoing("profiles", self._key, message.value), message.samples)

    def close(self, timeout_s: float) -> None:
        """Send waiting messages, with a timeout in seconds, and end."""
        self._publisher.close(timeout_s)

    def threads(self) -> tuple[int, ...]:
        """Return none: the publisher's threads are sampled as part of the service."""
        return ()


def _to_function(take: Callable[[bytes], object]) -> Callable[[bytes], None]:
    def deliver(value: bytes) -> None:
        try:
            take(value)
        except Exception as error:
            raise Refused(f"{type(error).__name__}: {error}") from None

    return deliver


def _to_file(path: Path) -> Callable[[bytes], None]:
    def deliver(value: bytes) -> None:
        try:
            with path.open("ab") as file:
                file.write(value + b"\n")
        except OSError as error:
            raise Refused(str(error)) from None

    return deliver
