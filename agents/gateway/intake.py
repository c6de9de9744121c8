"""The way of a request: identify its sender, decode it, check for room, and put it into the buffer."""

from __future__ import annotations

import asyncio
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Protocol

from agents.gateway.access import EVERYBODY, Client, find_client
from agents.gateway.base import (
    Decoded,
    DecodeSetup,
    MessagePart,
    PushProtocol,
    Refusal,
    Request,
    RequestResult,
    malformed,
)
from agents.gateway.counts import GatewayCounts
from agents.gateway.quota import Rates, TokenBuckets
from agents.gateway.service_clocks import ServiceClocks, services_of
from agents.gateway.unpacking import unpack_body
from pipeline.model import Outgoing
from pipeline.model.clock import Clock
from pipeline.model.errors import InvalidMessage

MAX_UNDER_WAY_BYTES = 256 * 1024**2
"""Most bytes of all bodies that are read or decoded at a time."""

DECODERS = 2
"""Threads that decode: each holds one unpacked body, and more would only wait for the interpreter's lock."""

FULL_RETRY_S = 5.0
BUSY_RETRY_S = 1.0

REMEMBERED = 100_000
"""Most parts that are remembered, so that one that is sent again is not published again."""


class Outbox(Protocol):
    """Buffer in which messages wait until the broker has them."""

    def has_room(self, messages: int, size: int) -> bool:
        """Return whether this number of messages with this total of bytes fits."""

    def offer(self, message: Outgoing, samples: int) -> None:
        """Take a message; the caller has checked that there is room."""


@dataclass(frozen=True, slots=True)
class IntakeRules:
    """Clients and rates. Without clients everybody may send."""

    setup: DecodeSetup = field(default_factory=DecodeSetup)
    clients: tuple[Client, ...] = (Client(EVERYBODY),)
    default: Rates = Rates()  # of a service
    services: Mapping[str, Rates] = field(default_factory=dict)

    def rates_of(self, service: str) -> Rates:
        """Return the rates that a service keeps to."""
        return self.services.get(service, self.default)


class RequestIntake:
    """Takes requests. Only decoding leaves the event loop, so checking for room and adding are atomic."""

    def __init__(self, rules: IntakeRules, outbox: Outbox, counts: GatewayCounts, *, clock: Clock) -> None:
        self.rules = rules
        self.counts = counts
        self._outbox = outbox
        self._clock = clock
        self._threads = ThreadPoolExecutor(DECODERS, thread_name_prefix="decode")
        self._under_way_bytes = 0
        self._clocks = ServiceClocks()
        self._known: OrderedDict[str, None] = OrderedDict()
        self._of_clients = TokenBuckets(), TokenBuckets()  # samples, bytes
        self._of_services = TokenBuckets(), TokenBuckets()

    def admit(self, authorization: str | None, size: int) -> Client:
        """Return the sender of a body of ``size`` bytes, before it is read.

        Raises:
            Refusal: the sender is unknown or over its rate, or there is no room.
        """
        client = self.identify(authorization)
        if self._under_way_bytes + size > MAX_UNDER_WAY_BYTES:
            raise Refusal(503, "busy", "too much is under way", retry_s=BUSY_RETRY_S)
        if not self._outbox.has_room(1, 0):
            raise _full()
        for budget in self._of_clients:
            _check_budget(budget, client.name, self._clock(), f"client {client.name}")
        return client

    def identify(self, authorization: str | None) -> Client:
        """Return the sender of this header.

        Raises:
            Refusal: the sender is unknown.
        """
        client = find_client(self.rules.clients, authorization)
        if client is None:
            raise Refusal(401, "token", "wrong or missing token")
        return client

    @contextmanager
    def under_way(self, size: int) -> Iterator[None]:
        """Count a body of ``size`` bytes as under way."""
        self._under_way_bytes += size
        try:
            yield
        finally:
            self._under_way_bytes -= size

    async def take(self, receiver: PushProtocol, client: Client, request: Request) -> RequestResult:
        """Decode a request and publish its messages, all or none."""
        began = time.perf_counter()
        try:
            result = await self._take(receiver, client, request)
        except Refusal as refusal:
            result = refusal.result()
        sender = request.peer if client.name == EVERYBODY else f"{client.name} at {request.peer}"
        self.counts.request(receiver.name, result, sender, time.perf_counter() - began)
        return result

    def publish(self, receiver: str, client: Client, decoded: Decoded, size: int) -> RequestResult:
        """Put the decoded messages into the buffer, all or none; ``size`` counts against rates.

        Raises:
            Refusal: a service is not the client's, a rate is spent, or there is no room.
        """
        now = self._clock()
        for part in self._clocks.release(now):
            self._outbox.offer(part.message, part.samples)
        decoded = self._clocks.without_wall(decoded, now)
        new = [part for part in decoded.parts if not part.id or part.id not in self._known]
        self._check({part.service for part in new} | decoded.services, client, now)
        size_new = sum(len(part.message.value) for part in new)
        if not self._outbox.has_room(
            len(new) + self._clocks.held_messages, size_new + self._clocks.held_bytes
        ):
            raise _full()
        late = self._clocks.note_cpu(services_of(decoded.parts, "cpu"), now)
        self.counts.skip(receiver, "not_cpu", len(late))
        for part in new:
            if not self._clocks.hold(part, now):
                self._outbox.offer(part.message, part.samples)
            if part.id:
                self._known[part.id] = None
        while len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
        if decoded.apply:
            decoded.apply(client.name)
        self._spend(new, client, size, now)
        self.counts.samples(receiver, sum(part.samples for part in new))
        return _result(decoded)

    def close(self) -> None:
        """End the threads; what is held of the wall is left out, as nobody knows what its service sends."""
        held = self._clocks.held_messages
        if held:
            self.counts.say(
                "gateway", "held", f"left out: {held:,} profiles of the wall, which waited for CPU"
            )
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _take(self, receiver: PushProtocol, client: Client, request: Request) -> RequestResult:
        decode = _decoding(receiver, request, self.rules.setup)
        decoded = await asyncio.get_running_loop().run_in_executor(self._threads, decode)
        return self.publish(receiver.name, client, decoded, len(request.body))

    def _check(self, services: Iterable[str], client: Client, now: float) -> None:
        for service in services:
            if not client.may_send(service):
                raise Refusal(403, "service", f"{service!r} is no service of client {client.name}")
            for budget in self._of_services:
                _check_budget(budget, service, now, f"service {service}")

    def _spend(self, parts: Sequence[MessagePart], client: Client, size: int, now: float) -> None:
        self._of_clients[0].spend(client.name, sum(p.samples for p in parts), client.rates.samples_per_s, now)
        self._of_clients[1].spend(client.name, size, client.rates.bytes_per_s, now)
        for part in parts:
            rates = self.rules.rates_of(part.service)
            self._of_services[0].spend(part.service, part.samples, rates.samples_per_s, now)
            self._of_services[1].spend(part.service, len(part.message.value), rates.bytes_per_s, now)


def decode_request(receiver: PushProtocol, request: Request, setup: DecodeSetup) -> Decoded:
    """Unpack and decode a request.

    Raises:
        Refusal: no part of it can be taken.
    """
    encoding = request.headers.get("content-encoding", "")
    body = unpack_body(request.body, encoding, setup.max_unpacked_bytes)
    try:
        return receiver.decode(replace(request, body=body), setup)
    except InvalidMessage as error:
        raise malformed(error) from None


def _decoding(receiver: PushProtocol, request: Request, setup: DecodeSetup) -> Callable[[], Decoded]:
    return lambda: decode_request(receiver, request, setup)


def _result(decoded: Decoded) -> RequestResult:
    """Return the result of a request that was taken; if all of its parts are wrong, it is malformed."""
    taken = len(decoded.parts)
    wrong = [skipped for skipped in decoded.skipped if skipped.is_wrong]
    if wrong and not taken:
        return RequestResult(400, wrong[0].text, wrong[0].reason, decoded.skipped)
    left = "; ".join(f"left out: {skipped.text}" for skipped in decoded.skipped[:3])
    text = "; ".join(part for part in (f"took {taken}", left) if part)
    return RequestResult(200, text, "", decoded.skipped, headers=decoded.headers)


def _check_budget(budget: TokenBuckets, name: str, now: float, what: str) -> None:
    wait_s = budget.wait_s(name, now)
    if wait_s > 0:
        raise Refusal(429, "rate", f"{what} is over its rate", retry_s=math.ceil(wait_s))


def _full() -> Refusal:
    return Refusal(503, "full", "the broker is away and no more can wait for it", retry_s=FULL_RETRY_S)
