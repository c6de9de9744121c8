"""Which log this is: the broker's address and its cluster id."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Iterator

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

from pipeline.errors import BrokerUnavailable, ConfigError

TIMEOUT_S = 10.0
"""How long a command waits for the broker before it gives up."""


def bootstrap_servers(broker: str) -> list[str]:
    """Return the ``host:port`` of a comma-separated list; ``kafka://`` before them is allowed.

    Raises:
        ConfigError: there is none, or one is not ``host:port``.
    """
    servers = [part.strip().removeprefix("kafka://") for part in broker.split(",") if part.strip()]
    for server in servers:
        host, _, port = server.rpartition(":")
        if not host or not port.isdigit() or not 0 < int(port) < 65536 or "/" in host or " " in host:
            raise ConfigError(f"broker: should be host:port, comma-separated, not {server!r}")
    if not servers:
        raise ConfigError("broker: should be host:port, comma-separated, not empty")
    return servers


@contextlib.asynccontextmanager
async def admin_client(broker: str, *, timeout_s: float = TIMEOUT_S) -> AsyncIterator[AIOKafkaAdminClient]:
    """Connect an administration client, and close it afterwards.

    Raises:
        BrokerUnavailable: nothing that speaks Kafka answered within ``timeout_s``, or it stopped answering.
    """
    servers = bootstrap_servers(broker)
    client = AIOKafkaAdminClient(bootstrap_servers=servers, request_timeout_ms=int(timeout_s * 1000))
    with quiet_client():
        try:
            await asyncio.wait_for(client.start(), timeout_s)
            yield client
        except (KafkaError, OSError, TimeoutError) as error:
            raise BrokerUnavailable(f"broker {', '.join(servers)}: {_reason(error)}") from None
        finally:
            with contextlib.suppress(KafkaError, OSError, TimeoutError):
                await asyncio.wait_for(client.close(), timeout_s)


async def cluster_id(broker: str, *, timeout_s: float = TIMEOUT_S) -> str:
    """Return the broker's cluster id: the identity of the log, stored in every counted row.

    Raises:
        BrokerUnavailable: the broker did not answer, or has no cluster id.
    """
    async with admin_client(broker, timeout_s=timeout_s) as client:
        found = (await client.describe_cluster()).get("cluster_id")
    if not found:
        raise BrokerUnavailable(f"broker {broker}: has no cluster id")
    return str(found)


@contextlib.contextmanager
def quiet_client() -> Iterator[None]:
    """Keep the client library from logging connection errors that are reported in one line anyway."""
    logger = logging.getLogger("aiokafka")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)


def _reason(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    text = str(error) or type(error).__name__
    return "cannot be reached" if "Unable to bootstrap" in text else text
