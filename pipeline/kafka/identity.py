"""Identity of topics: the id that Kafka gives a topic when it is made (KIP-516).

A topic that is deleted and made anew has the same name and begins at offset 0 again, under another id. The
library asks for metadata without ids, so that the question with them stands here: version 10 of Metadata,
which Kafka has since 2.8.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Collection
from io import BytesIO
from typing import Any

from aiokafka.errors import IncompatibleBrokerVersion
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import (
    AbstractType,
    Boolean,
    CompactArray,
    CompactString,
    Int16,
    Int32,
    Schema,
    TaggedFields,
)

from pipeline.kafka.admin import admin_client, retried
from pipeline.kafka.connection import TIMEOUT_S, Broker
from pipeline.model.errors import BrokerUnavailable

_NOBODY = uuid.UUID(int=0)
"""The id of a topic of a broker that gives none."""

_PAUSE_S = 0.2

_TEXT = CompactString("utf-8")


class _Uuid(AbstractType[uuid.UUID]):  # type: ignore[misc]  # the library has no types
    @classmethod
    def encode(cls, value: uuid.UUID) -> bytes:
        return value.bytes

    @classmethod
    def decode(cls, data: BytesIO) -> uuid.UUID:
        return uuid.UUID(bytes=data.read(16))


class _Answer(Response):  # type: ignore[misc]  # the library has no types
    API_KEY = 3
    API_VERSION = 10
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "brokers",
            CompactArray(
                ("node_id", Int32), ("host", _TEXT), ("port", Int32), ("rack", _TEXT), ("tags", TaggedFields)
            ),
        ),
        ("cluster_id", _TEXT),
        ("controller_id", Int32),
        (
            "topics",
            CompactArray(
                ("error_code", Int16),
                ("name", _TEXT),
                ("topic_id", _Uuid),
                ("is_internal", Boolean),
                (
                    "partitions",
                    CompactArray(
                        ("error_code", Int16),
                        ("partition", Int32),
                        ("leader", Int32),
                        ("leader_epoch", Int32),
                        ("replicas", CompactArray(Int32)),
                        ("isr", CompactArray(Int32)),
                        ("offline_replicas", CompactArray(Int32)),
                        ("tags", TaggedFields),
                    ),
                ),
                ("authorized_operations", Int32),
                ("tags", TaggedFields),
            ),
        ),
        ("authorized_operations", Int32),
        ("tags", TaggedFields),
    )


class _Question(RequestStruct):  # type: ignore[misc]  # the library has no types
    API_KEY = 3
    API_VERSION = 10
    FLEXIBLE_VERSION = True
    RESPONSE_TYPE = _Answer
    SCHEMA = Schema(
        ("topics", CompactArray(("topic_id", _Uuid), ("name", _TEXT), ("tags", TaggedFields))),
        ("allow_auto_topic_creation", Boolean),
        ("include_cluster_authorized_operations", Boolean),
        ("include_topic_authorized_operations", Boolean),
        ("tags", TaggedFields),
    )


class _TopicIds(Request[_Question]):  # type: ignore[misc]  # the library has no types
    API_KEY = 3

    def __init__(self, names: Collection[str]) -> None:
        self._names = names

    def build(self, request_struct_class: type[_Question]) -> _Question:
        asked: list[tuple[uuid.UUID, str, dict[int, bytes]]] = [(_NOBODY, name, {}) for name in self._names]
        return request_struct_class(asked, False, False, False, {})


async def topic_ids(broker: Broker | str, names: Collection[str]) -> dict[str, str]:
    """Return the id of each topic (broker's name), in hexadecimal digits; empty where the broker gives none.

    A topic that is not there is absent.

    Raises:
        BrokerUnavailable: the broker does not answer.
        ConfigError: it refuses us.
    """
    async with admin_client(broker) as client:

        async def asked() -> Any:
            # The client's own requests take this way too; it has no public one for others.
            return await client._send_request(_TopicIds(names))

        try:
            answer = await retried(asked)
        except (IncompatibleBrokerVersion, NotImplementedError):  # older than ids, or knows no versions
            return dict.fromkeys(names, "")
    return {
        str(name): "" if topic_id == _NOBODY else topic_id.hex
        for error_code, name, topic_id, *_ in answer.topics
        if error_code == 0
    }


async def require_topic_ids(
    broker: Broker | str, names: Collection[str], *, patience_s: float = TIMEOUT_S
) -> dict[str, str]:
    """Return what ``topic_ids`` does, of all topics; brokers learn of a new one one after the other.

    Raises:
        BrokerUnavailable: the broker does not answer, or does not know one of them for ``patience_s``.
        ConfigError: it refuses us.
    """
    deadline = time.monotonic() + patience_s
    while True:
        found = await topic_ids(broker, names)
        unknown = sorted(set(names) - found.keys())
        if not unknown:
            return found
        if time.monotonic() > deadline:
            raise BrokerUnavailable(f"broker {broker}: does not say which topic {unknown[0]} is")
        await asyncio.sleep(_PAUSE_S)
