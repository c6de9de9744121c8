"""Probes of a machine and of brokers: free ports, and known brokers."""

from __future__ import annotations

import random
import socket
import struct

from pipeline.model.errors import BrokerUnavailable

# Ports that the kernel gives to outgoing connections begin above these. Else a client that tries a dead
# broker again and again may be given that very port, be connected to itself, and keep the broker from
# coming back.
_PORTS = range(15_000, 32_000)

_ANSWER_TIMEOUT_S = 10.0
_METADATA = struct.pack(">hhihi", 3, 1, 0, -1, 0)  # api key, version, correlation id, no client id, no topics


def free_ports(host: str, count: int) -> list[int]:
    """Return free ports, from a random one on, so that concurrent runs rarely collide.

    Raises:
        BrokerUnavailable: there are too few free ports.
    """
    ports: list[int] = []
    first = random.randrange(len(_PORTS))
    for step in range(len(_PORTS)):
        port = _PORTS[(first + step) % len(_PORTS)]
        with socket.socket() as probe:
            try:
                probe.bind((host, port))
            except OSError:
                continue
        ports.append(port)
        if len(ports) == count:
            return ports
    raise BrokerUnavailable(f"no {count} free ports on {host}")


def known_brokers(host: str, port: int) -> set[int]:
    """Return the brokers that one broker knows; none if it does not answer."""
    try:
        with socket.create_connection((host, port), timeout=_ANSWER_TIMEOUT_S) as connection:
            connection.sendall(struct.pack(">i", len(_METADATA)) + _METADATA)
            with connection.makefile("rb") as answer:
                (size,) = struct.unpack(">i", answer.read(4))
                return _broker_ids(answer.read(size))
    except (OSError, struct.error):
        return set()


def _broker_ids(answer: bytes) -> set[int]:
    _, count = struct.unpack_from(">ii", answer)
    ids, at = set(), 8
    for _ in range(count):
        node, length = struct.unpack_from(">ih", answer, at)
        at += 6 + length + 4
        (rack,) = struct.unpack_from(">h", answer, at)
        at += 2 + max(rack, 0)
        ids.add(node)
    return ids
