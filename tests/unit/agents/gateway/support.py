"""A gateway without sockets and brokers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from agents.gateway.base import PushProtocol
from agents.gateway.counts import GatewayCounts
from agents.gateway.intake import IntakeRules, RequestIntake
from agents.gateway.receivers import RECEIVERS
from agents.gateway.server import make_app
from pipeline.messages.measurements import decode_profile
from pipeline.model import Outgoing, Profile
from tests.support.gateway_requests import NOW as NOW

Client = TestClient[web.Request, web.Application]


@dataclass
class Outbox:
    """Keeps what is offered, within a bound of messages."""

    room: int = 1000
    messages: list[Outgoing] = field(default_factory=list)

    def has_room(self, messages: int, size: int) -> bool:
        return len(self.messages) + messages <= self.room

    def offer(self, message: Outgoing, samples: int) -> None:
        self.messages.append(message)

    def profiles(self) -> list[Profile]:
        return [decode_profile(message.value, now=NOW) for message in self.messages]


@dataclass
class Bench:
    """A gateway under test: its clock stands still until it is set."""

    rules: IntakeRules = field(default_factory=IntakeRules)
    outbox: Outbox = field(default_factory=Outbox)
    now: float = NOW
    receivers: Sequence[PushProtocol] = RECEIVERS

    def __post_init__(self) -> None:
        self.counts = GatewayCounts(lambda: self.now, [receiver.name for receiver in self.receivers])
        self.intake = RequestIntake(self.rules, self.outbox, self.counts, clock=lambda: self.now)

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Client]:
        app = make_app(
            self.receivers,
            self.intake,
            self.counts.metrics,
            lambda: "" if self.outbox.has_room(1, 0) else "the buffer is full",
            clock=lambda: self.now,
        )
        server = TestServer(app)
        await server.start_server(auto_decompress=False)
        async with TestClient(server) as client:
            yield client
        self.intake.close()


def stacks_of(profile: Profile) -> dict[str, int]:
    """Return the stacks of a profile, as collapsed lines."""
    starts = profile.stack_starts
    return {
        ";".join(profile.frames[i] for i in profile.stack_frames[a:b]): int(count)
        for a, b, count in zip(starts, starts[1:], profile.counts, strict=False)
    }
