"""Connection to Kafka: its address, its checks, and the reasons for which it fails."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

from aiokafka import errors
from aiokafka.conn import AIOKafkaConnection, create_conn
from aiokafka.protocol.admin import ApiVersionRequest
from aiokafka.protocol.metadata import MetadataRequest

from pipeline.kafka.creation import never_create_topics
from pipeline.kafka.departure import always_leave
from pipeline.kafka.security import KafkaSecurity
from pipeline.model.errors import BrokerUnavailable, ConfigError, SmidgenError
from pipeline.settings.config import Settings

_levels: list[int] = []
"""Of the client library's log, as each found it that keeps it quiet now."""

TIMEOUT_S = 10.0
"""How long a command waits for the broker before it gives up."""

FAILURES = (errors.KafkaError, OSError, TimeoutError, ValueError)
"""What a client raises while it connects; ValueError if the other side answers a login with nonsense."""


@dataclass(frozen=True, slots=True)
class Broker:
    """A Kafka cluster: its bootstrap servers, ``host:port`` each, and how to connect to them."""

    servers: tuple[str, ...]
    security: KafkaSecurity = field(default_factory=KafkaSecurity)

    @classmethod
    def of(cls, settings: Settings) -> Broker:
        """Make it of the settings.

        Raises:
            ConfigError: an address is malformed, or KafkaSecurity cannot be made.
        """
        return cls(tuple(bootstrap_servers(settings.broker)), KafkaSecurity.of(settings))

    def arguments(self) -> dict[str, Any]:
        """Return what clients of aiokafka take: none creates a topic, each leaves its group as it ends."""
        never_create_topics()
        always_leave()
        return {"bootstrap_servers": list(self.servers), **self.security.arguments()}

    def __str__(self) -> str:
        return ", ".join(self.servers)


def as_broker(broker: Broker | str) -> Broker:
    """Return the broker; a text is one without encryption or users.

    Raises:
        ConfigError: the text is not ``host:port``, comma-separated.
    """
    return broker if isinstance(broker, Broker) else Broker(tuple(bootstrap_servers(broker)))


def bootstrap_servers(broker: str) -> list[str]:
    """Return the ``host:port`` of a comma-separated list; ``kafka://`` before them is allowed.

    Raises:
        ConfigError: there is none, or one is not ``host:port``.
    """
    servers = [part.strip().removeprefix("kafka://") for part in broker.split(",") if part.strip()]
    for server in servers:
        host, _, port = server.rpartition(":")
        if "@" in server:  # said without the text: it may hold a password
            raise ConfigError("broker: should be host:port; a user goes into sasl_username")
        if not host or not _is_port(port) or "/" in host or " " in host:
            raise ConfigError(f"broker: should be host:port, comma-separated, not {server!r}")
    if not servers:
        raise ConfigError("broker: should be host:port, comma-separated, not empty")
    return servers


def _is_port(text: str) -> bool:
    """Return whether it is a number that can be one; ``isdigit`` alone takes ² and digits without end."""
    return text.isascii() and text.isdigit() and len(text) <= 5 and 0 < int(text) < 65536


async def why_not(broker: Broker, error: BaseException, *, timeout_s: float = TIMEOUT_S) -> SmidgenError:
    """Return why a client could not connect, by connecting once more: clients keep the cause to themselves.

    ConfigError is what a person has to settle (a login, a certificate, a right), BrokerUnavailable all else.
    """
    if isinstance(error, TimeoutError):
        return BrokerUnavailable(f"broker {broker}: no answer in time")
    if isinstance(error, _DENIED):
        return ConfigError(f"broker {broker}: {denied(broker, error)}")
    found = await check_connection(broker, timeout_s=timeout_s)
    return found or BrokerUnavailable(f"broker {broker}: {text_of(error)}")


async def check_connection(broker: Broker, *, timeout_s: float = TIMEOUT_S) -> SmidgenError | None:
    """Connect to the bootstrap servers until one lets us in, then to every broker that it names.

    Returns what is wrong as ``why_not`` does, None if nothing is.
    """
    found: list[_Trouble] = []
    for server in broker.servers:
        answer = await _knock(server, broker.security, timeout_s)
        if not isinstance(answer, _Trouble):
            return await _check_named(answer, server, broker, timeout_s)
        if answer.settled:
            return ConfigError(f"broker {server}: {answer.text}")
        found.append(answer)
    return BrokerUnavailable(f"broker {broker}: {found[0].text}")


async def listed_requests(broker: Broker, *, timeout_s: float = TIMEOUT_S) -> frozenset[int]:
    """Return the numbers of the requests that the first server to answer knows; none if no one answers."""
    for server in broker.servers:
        with contextlib.suppress(*FAILURES, AssertionError, KeyError), quiet_client():
            host, _, port = server.rpartition(":")
            async with asyncio.timeout(timeout_s):
                connection = await create_conn(host.strip("[]"), int(port), **broker.security.arguments())
                try:
                    answer = await connection.send(ApiVersionRequest())
                finally:
                    connection.close()
            return frozenset(number for number, *_ in answer.api_versions)
    return frozenset()


def denied(broker: Broker, error: BaseException) -> str:
    """Return which right a user lacks; empty if the error does not say that it lacks one."""
    what = next((what for kind, what in _DENIED_WHAT.items() if isinstance(error, kind)), "")
    who = f"the user {broker.security.username!r}" if broker.security.logs_in else "us"
    return f"refuses {who} {what} (see its ACLs)" if what else ""


@contextmanager
def failures_of(broker: Broker) -> Iterator[None]:
    """Turn what a client raises into errors of ours.

    Raises:
        BrokerUnavailable: the broker does not answer, or not as it should.
        ConfigError: it refuses us.
    """
    try:
        yield
    except (errors.KafkaError, OSError, TimeoutError) as error:
        if lacks := denied(broker, error):
            raise ConfigError(f"broker {broker}: {lacks}") from None
        text = "no answer in time" if isinstance(error, TimeoutError) else text_of(error)
        raise BrokerUnavailable(f"broker {broker}: {text}") from None


@contextmanager
def quiet_client() -> Iterator[None]:
    """Keep the client library from logging connection errors that are reported in one line anyway.

    Several tasks may ask for it at once: the last to leave gives the log the level that the first one found.
    """
    logger = logging.getLogger("aiokafka")
    _levels.append(logger.level)
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        before = _levels.pop()
        if not _levels:
            logger.setLevel(before)


@asynccontextmanager
async def started(
    start: Callable[[], Awaitable[Any]],
    close: Callable[[], Coroutine[Any, Any, Any]],
    broker: Broker,
    *,
    timeout_s: float = TIMEOUT_S,
) -> AsyncIterator[None]:
    """Start a client, and close it afterwards.

    Raises:
        BrokerUnavailable: nothing that speaks Kafka answered within ``timeout_s``, or it stopped answering.
        ConfigError: the broker refuses us, or we cannot trust it.
    """
    try:
        with failures_of(broker):
            try:
                with quiet_client():
                    await asyncio.wait_for(start(), timeout_s)
            except FAILURES as error:
                raise await why_not(broker, error, timeout_s=timeout_s) from None
            yield
    finally:
        await finish(close(), timeout_s)


async def finish(closing: Coroutine[Any, Any, Any], timeout_s: float) -> None:
    """Let a client close, for at most ``timeout_s``, whatever comes of it.

    It has a task of its own: with the broker away it may end in a cancellation that is not ours.
    """
    task = asyncio.ensure_future(closing)
    await asyncio.wait({task}, timeout=timeout_s)
    if not task.done():
        task.cancel()
    elif not task.cancelled():
        task.exception()


def text_of(error: BaseException) -> str:
    """Return what an error says, in one line."""
    text = " ".join(str(error).split()) or type(error).__name__
    return "cannot be reached" if "Unable to bootstrap" in text else text


_DENIED_WHAT: dict[type[BaseException], str] = {
    errors.TopicAuthorizationFailedError: "a topic",
    errors.GroupAuthorizationFailedError: "its consumer group",
    errors.ClusterAuthorizationFailedError: "what concerns the whole cluster",
    errors.TransactionalIdAuthorizationFailed: "its transactions",
}
_DENIED = tuple(_DENIED_WHAT)


@dataclass(frozen=True, slots=True)
class _Trouble:
    """Why one server did not let us in; ``settled`` if trying again would not help."""

    text: str
    settled: bool = True


async def _check_named(
    named: Sequence[str], asked: str, broker: Broker, timeout_s: float
) -> SmidgenError | None:
    for server in named:
        if server == asked:
            continue
        answer = await _knock(server, broker.security, timeout_s)
        if isinstance(answer, _Trouble):
            failure = ConfigError if answer.settled else BrokerUnavailable
            return failure(f"broker {server}, which {asked} names: {answer.text}")
    return None


async def _knock(server: str, security: KafkaSecurity, timeout_s: float) -> list[str] | _Trouble:
    """Connect to one server and return the addresses of all brokers that it names."""
    host, _, port = server.rpartition(":")
    connection: AIOKafkaConnection | None = None
    try:
        async with asyncio.timeout(timeout_s):
            connection = await create_conn(
                host.strip("[]"),
                int(port),
                request_timeout_ms=int(timeout_s * 1000),
                **security.arguments(),
            )
            answer = await connection.send(MetadataRequest([]))
    except (*FAILURES, AssertionError, KeyError) as error:
        return _trouble(error, security, greeted=connection is not None)
    finally:
        if connection is not None:
            connection.close()
    return [f"{host}:{port}" for _, host, port, *_ in answer.brokers]


def _trouble(error: BaseException, security: KafkaSecurity, *, greeted: bool) -> _Trouble:
    for cause in (error, error.__cause__):
        if isinstance(cause, ssl.SSLError):
            return _Trouble(_tls(cause))
    if isinstance(error, errors.SaslAuthenticationFailed):
        return _Trouble(f"refuses the user {security.username!r} or its password")
    if isinstance(error, errors.UnsupportedSaslMechanismError):
        return _Trouble(f"does not take sasl_mechanism {security.mechanism.lower()}")
    if isinstance(error, errors.IllegalSaslStateError):
        without = "ssl" if security.encrypted else "plaintext"
        return _Trouble(f"lets nobody log in there: broker_security should be {without}")
    if isinstance(error, TimeoutError):
        return _Trouble("no answer in time", settled=False)
    if isinstance(error, errors.KafkaConnectionError | ConnectionResetError):
        return _closed(error, security, greeted=greeted)
    if isinstance(error, OSError):
        return _Trouble("cannot be reached", settled=False)
    if isinstance(error, AssertionError | ValueError | KeyError):
        return _Trouble("answers the login with nonsense: it may not be who it says")
    return _Trouble(text_of(error), settled=False)


def _closed(error: BaseException, security: KafkaSecurity, *, greeted: bool) -> _Trouble:
    """Guess why a server hung up: one that expects something else says nothing."""
    cause = error.__cause__
    if isinstance(cause, asyncio.IncompleteReadError) and (cause.expected or 0) >> 24 == _TLS_ALERT:
        wanted = "sasl_ssl" if security.logs_in else "ssl"
        return _Trouble(f"wants an encrypted connection: broker_security should be {wanted}")
    if security.encrypted and not greeted:
        return _Trouble("hangs up: perhaps it does not encrypt there (broker_security)", settled=False)
    if greeted and not security.logs_in:
        return _Trouble("hangs up: perhaps it asks for a login (broker_security)", settled=False)
    return _Trouble("hangs up", settled=False)


def _tls(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {error.verify_message.rstrip('.')}"
    alert = str(error.reason or "").replace("_", " ").lower()
    if "alert" in alert and ("certificate" in alert or "unknown ca" in alert):
        return "wants a certificate of ours that it trusts (broker_cert)"
    if "wrong version number" in alert or "record layer failure" in alert:
        return "does not encrypt there: broker_security should not be ssl or sasl_ssl"
    return f"TLS fails: {alert or text_of(error)}"


_TLS_ALERT = 0x15
"""The first byte of what a TLS server answers to a client that does not encrypt."""
