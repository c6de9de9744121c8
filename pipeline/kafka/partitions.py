"""Partition of a message: the one rule by which every producer of Smidgen's knows where a key goes."""

from __future__ import annotations

from collections.abc import Mapping

from aiokafka.partitioner import murmur2


def partition_of_key(key: bytes, partitions: int, reserved: Mapping[str, range]) -> int:
    """Return where a key goes in a topic with so many partitions, some of them services' own.

    It is Kafka's default (murmur2 of the key), over the service's own partitions if it has some, or else over
    those that nobody has. ``reserved`` holds the last partitions of the topic, see ``Topics.reserved``.
    """
    hashed = int(murmur2(key)) & 0x7FFFFFFF
    if reserved and (own := reserved.get(_service(key, reserved))):
        return own[hashed % len(own)]
    return hashed % (partitions - sum(map(len, reserved.values())))


def _service(key: bytes, services: Mapping[str, object]) -> str:
    """Return which service a key names, alone or before a slash: the longest, as names may hold slashes."""
    text = key.decode(errors="replace")
    named = (service for service in services if text == service or text.startswith(f"{service}/"))
    return max(named, key=len, default="")
