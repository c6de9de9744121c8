"""Load of the demo: clients that send rounds of requests, one request after the other, without a pause."""

from __future__ import annotations

import asyncio
from itertools import cycle
from typing import NoReturn

import aiohttp

from loadgen.demo.traffic import TrafficRequest, make_rounds
from pipeline.model.errors import SmidgenError

_ROUNDS = 97  # number of distinct rounds, which repeat
_TIMEOUT_S = 15.0


class ServiceFailed(SmidgenError):
    """The service did not answer, or answered with an error."""


class LoadDriver:
    """Closed loop that keeps the service busy: a slower service gets fewer requests of the same mix.

    With two clients a request is always waiting when the service has answered one. So the measurement has no
    idle time, which would depend on other load of the machine.
    """

    def __init__(self, seed: int, clients: int = 2) -> None:
        self._rounds = make_rounds(_ROUNDS, seed)
        self._base = ""
        self._ready = asyncio.Event()
        self._in_flight = [asyncio.Lock() for _ in range(clients)]
        self.requests = 0

    async def switch(self, base: str) -> None:
        """Send requests to another instance, ``http://host:port``; wait for the old one's last answers."""
        self._base = base
        self._ready.set()
        for answered in self._in_flight:
            async with answered:
                pass

    async def run(self) -> None:
        """Send requests until cancelled.

        Raises:
            ServiceFailed: a request failed.
        """
        await self._ready.wait()
        try:
            async with (
                aiohttp.ClientSession(auto_decompress=False) as session,
                asyncio.TaskGroup() as clients,
            ):
                for number, in_flight in enumerate(self._in_flight):
                    first = number * _ROUNDS // len(self._in_flight)
                    clients.create_task(self._client(session, in_flight, first))
        except ExceptionGroup as failures:
            raise failures.exceptions[0] from None

    async def warm_up(self, base: str) -> None:
        """Send one round, so that one-time work of a service is done."""
        async with aiohttp.ClientSession(auto_decompress=False) as session:
            for request in self._rounds[0]:
                await send(session, base, request)

    async def _client(self, session: aiohttp.ClientSession, in_flight: asyncio.Lock, first: int) -> NoReturn:
        for requests in cycle(self._rounds[first:] + self._rounds[:first]):
            for request in requests:
                async with in_flight:
                    await send(session, self._base, request)
                self.requests += 1
        raise AssertionError("a cycle has no end")


async def wait_until_healthy(base: str) -> None:
    """Wait until the service answers its health check."""
    async with aiohttp.ClientSession() as session:
        while True:
            try:
                async with session.get(f"{base}/health") as response:
                    if response.status == 200:
                        return
            except aiohttp.ClientConnectionError:
                pass
            await asyncio.sleep(0.05)


async def send(session: aiohttp.ClientSession, base: str, request: TrafficRequest) -> bytes:
    """Send one request and return the answer's body.

    Raises:
        ServiceFailed: no answer, or an error.
    """
    try:
        async with (
            asyncio.timeout(_TIMEOUT_S),
            session.request(request.method, f"{base}{request.path}", data=request.body or None) as response,
        ):
            body = await response.read()
    except (aiohttp.ClientError, TimeoutError) as error:
        raise ServiceFailed(
            f"the shop did not answer {request.path[:60]}: {error or type(error).__name__}"
        ) from None
    if response.status != 200:
        raise ServiceFailed(f"the shop answered {response.status} to {request.path[:60]}: {body[:200]!r}")
    return body
