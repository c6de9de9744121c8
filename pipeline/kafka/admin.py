"""Administration client: connected, patient, and asked which cluster this is."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

from pipeline.kafka.connection import TIMEOUT_S, Broker, as_broker, quiet_client, started
from pipeline.model.errors import BrokerUnavailable

_PAUSE_S = 0.2

T = TypeVar("T")


@contextlib.asynccontextmanager
async def admin_client(
    broker: Broker | str, *, timeout_s: float = TIMEOUT_S
) -> AsyncIterator[AIOKafkaAdminClient]:
    """Connect an administration client, and close it afterwards; raises what ``started`` does."""
    broker = as_broker(broker)
    client = AIOKafkaAdminClient(**broker.arguments(), request_timeout_ms=int(timeout_s * 1000))
    with quiet_client():
        async with started(client.start, client.close, broker, timeout_s=timeout_s):
            yield client


async def cluster_id(broker: Broker | str, *, timeout_s: float = TIMEOUT_S) -> str:
    """Return the broker's cluster id: the identity of the log, stored in every counted row.

    Raises:
        BrokerUnavailable: the broker did not answer, or has no cluster id.
    """
    async with admin_client(broker, timeout_s=timeout_s) as client:
        found = (await retried(client.describe_cluster)).get("cluster_id")
    if not found:
        raise BrokerUnavailable(f"broker {broker}: has no cluster id")
    return str(found)


async def retried(call: Callable[[], Awaitable[T]]) -> T:
    """Make a call of a client again while it may still succeed; at most as long as a command waits.

    A client asks any broker that it knows, also one that has just gone.
    """
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        try:
            return await call()
        except KafkaError as error:
            if not error.retriable or time.monotonic() > deadline:
                raise
        await asyncio.sleep(_PAUSE_S)
