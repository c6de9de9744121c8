"""A dashboard over what the stages found in one service, asked over HTTP."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer

from pipeline.model import Silence, Verdict
from pipeline.storage.arrays import ArrayStore
from pipeline.views.dashboard import Login, Sources, create_app, read_networks
from tests.support.looked_into import SEARCH, WEEKLY, look_into

Client = TestClient[Any, Any]
Serve = Callable[[Login], Client]

PROXIED = Login("X-User", read_networks(["127.0.0.1"]), frozenset({"ada"}), "secret-token")
TOKEN = {"Authorization": "Bearer secret-token"}


@pytest.fixture(scope="module")
def looked_into() -> tuple[ArrayStore, float]:
    store = ArrayStore()
    return store, look_into(store, SEARCH).end


@pytest.fixture
def said() -> list[Any]:
    return []


@pytest.fixture
def serve(looked_into: tuple[ArrayStore, float], said: list[Any]) -> Serve:
    store, end = looked_into

    async def say(one: Verdict | Silence) -> None:
        said.append(one)

    def run(login: Login) -> Client:
        sources = Sources(store, {WEEKLY.name: WEEKLY}, say=say, clock=lambda: end + 60)
        return TestClient(TestServer(create_app(sources, login)))

    return run


async def listed(client: Client, headers: Mapping[str, str] = TOKEN, **query: str) -> list[dict[str, Any]]:
    answer = await client.get("/api/v1/regressions", params={"state": "all", **query}, headers=headers)
    assert answer.status == 200
    found: list[dict[str, Any]] = (await answer.json())["regressions"]
    return found
