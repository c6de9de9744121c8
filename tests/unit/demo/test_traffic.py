from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from loadgen.demo.driver import LoadDriver, ServiceFailed
from loadgen.demo.traffic import make_rounds

ENDPOINTS = ("/browse", "/search", "/product", "/checkout", "/feed", "/login", "/monthly")


def test_every_round_asks_each_endpoint_once() -> None:
    for requests in make_rounds(20, seed=3):
        asked = Counter("/" + request.path.split("?")[0].split("/")[1] for request in requests)
        assert asked == Counter(ENDPOINTS)


def test_traffic_follows_from_the_seed() -> None:
    assert make_rounds(5, seed=3) == make_rounds(5, seed=3)
    assert make_rounds(5, seed=3) != make_rounds(5, seed=4)


def test_the_order_differs_from_round_to_round() -> None:
    orders = {
        tuple(request.path.split("?")[0] for request in requests) for requests in make_rounds(20, seed=3)
    }
    assert len(orders) > 10


class Service:
    """Answers everything with one status, and counts."""

    def __init__(self, status: int = 200) -> None:
        self.status = status
        self.answered = 0

    async def answer(self, request: web.Request) -> web.Response:
        await request.read()
        await asyncio.sleep(0.005)
        self.answered += 1
        return web.Response(status=self.status)


@asynccontextmanager
async def serving(service: Service) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", service.answer)
    async with TestServer(app) as server:
        yield str(server.make_url("")).rstrip("/")


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.005)


async def test_traffic_moves_over_and_the_old_instance_owes_no_answer() -> None:
    old, new = Service(), Service()
    driver = LoadDriver(seed=1)
    async with serving(old) as old_base, serving(new) as new_base:
        running = asyncio.create_task(driver.run())
        await driver.switch(old_base)
        await until(lambda: old.answered > 10)
        await driver.switch(new_base)
        last = old.answered
        await until(lambda: new.answered > 10)
        running.cancel()
        await asyncio.wait({running})
        assert old.answered == last
        assert old.answered + new.answered - driver.requests in (0, 1, 2)


async def test_an_error_of_the_service_ends_the_load() -> None:
    driver = LoadDriver(seed=1)
    async with serving(Service(status=500)) as base:
        await driver.switch(base)
        with pytest.raises(ServiceFailed, match="the shop answered 500"):
            await asyncio.wait_for(driver.run(), 60)


async def test_a_service_that_is_gone_ends_the_load() -> None:
    driver = LoadDriver(seed=1)
    async with serving(Service()) as base:
        pass
    await driver.switch(base)
    with pytest.raises(ServiceFailed, match="the shop did not answer"):
        await asyncio.wait_for(driver.run(), 60)
