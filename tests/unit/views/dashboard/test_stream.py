from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import orjson
import pytest
from aiohttp import StreamReader
from aiohttp.test_utils import TestClient, TestServer

from pipeline.storage.arrays import ArrayStore
from pipeline.views.dashboard import Sources, create_app, stream
from pipeline.views.dashboard.board import Snapshot
from pipeline.views.dashboard.site import SITE

Client = TestClient[Any, Any]


@asynccontextmanager
async def run() -> AsyncIterator[Client]:
    async with asyncio.timeout(60), TestClient(TestServer(create_app(Sources(ArrayStore())))) as client:
        yield client


async def event(content: StreamReader) -> tuple[str, Any]:
    lines = (await content.readuntil(b"\n\n")).decode().splitlines()
    found = dict(line.split(": ", 1) for line in lines if line)
    return found["event"], orjson.loads(found["data"])


async def test_a_page_hears_of_the_snapshot_and_of_each_change(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "BEAT_S", 0.05)
    async with run() as client, client.get("/stream") as answer:
        assert answer.content_type == "text/event-stream"
        assert "script-src 'self'" in answer.headers["Content-Security-Policy"]
        assert await answer.content.readuntil(b"\n\n") == b"retry: 3000\n\n"
        kind, said = await event(answer.content)
        assert (kind, said["open"]) == ("changed", 0)
        assert (await event(answer.content))[0] == "beat"
        site = client.app[SITE]
        site.board.snapshot = replace(Snapshot(), version=said["version"] + 1)
        site.stream.publish()
        while (heard := await event(answer.content))[0] == "beat":
            pass
        assert heard[1]["version"] == said["version"] + 1


@pytest.mark.parametrize("bound", ["MOST_CLIENTS", "MOST_OF_ONE"])
async def test_more_pages_than_may_listen_are_sent_away_until_one_leaves(
    monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    monkeypatch.setattr(stream, bound, 1)
    monkeypatch.setattr(stream, "BEAT_S", 0.05)
    async with run() as client:
        async with client.get("/stream") as first:
            assert first.status == 200
            assert (await client.get("/stream")).status == 503
        while (await client.get("/live")).status == 200:  # until the server has seen it go
            again = await client.get("/stream")
            again.close()
            if again.status == 200:
                return


async def test_a_stream_ends_by_itself_so_that_a_login_that_is_over_hears_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stream, "LONGEST_S", 0.05)
    async with run() as client, client.get("/stream") as answer:
        assert answer.status == 200
        assert (await answer.content.read()).startswith(b"retry: 3000")


async def test_a_stream_ends_with_the_server() -> None:
    async with run() as client, client.get("/stream") as answer:
        await answer.content.readuntil(b"\n\n")
        client.app[SITE].stream.close()
        while await answer.content.readline():
            pass
