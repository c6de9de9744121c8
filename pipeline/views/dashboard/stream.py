"""Changes of the snapshot, as server-sent events to open pages."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress

import orjson
from aiohttp import web

from pipeline.views.dashboard.access import HEADERS
from pipeline.views.dashboard.board import Board

MOST_CLIENTS = 200
"""Most pages that listen at a time; further ones are refused, and are up to date when loaded."""

MOST_OF_ONE = 50
"""Most listening pages of one person, so that nobody takes them all."""

LONGEST_S = 900.0
"""Time after which a stream ends: the browser connects again, and is authenticated again."""

BEAT_S = 15.0
"""Longest silence of a stream: proxies close silent ones, and a page sees that all is well."""

RETRY_MS = 3000
"""Delay before a browser connects again."""

_HEADERS = {
    **HEADERS,
    "Content-Type": "text/event-stream",
    "Cache-Control": "no-store",
    "X-Accel-Buffering": "no",
}


class Stream:
    """Keeps all pages that listen up to date; it lives in one event loop."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._news = asyncio.Event()
        self._clients: Counter[str] = Counter()  # by person
        self._closing = False

    def publish(self) -> None:
        """Notify every client of the snapshot."""
        self._news.set()
        self._news = asyncio.Event()

    def close(self) -> None:
        """End all streams."""
        self._closing = True
        self.publish()

    async def follow(self, request: web.Request) -> web.StreamResponse:
        """Send the version of the snapshot now and at every change, until either side ends it."""
        name = request["person"].name
        if self._clients.total() >= MOST_CLIENTS or self._clients[name] >= MOST_OF_ONE:
            raise web.HTTPServiceUnavailable(reason="too many pages listen")
        self._clients[name] += 1
        try:
            response = web.StreamResponse(headers=_HEADERS)
            await response.prepare(request)
            await response.write(f"retry: {RETRY_MS}\n\n".encode())
            with suppress(ConnectionError, TimeoutError):
                async with asyncio.timeout(LONGEST_S):
                    await self._send(response)
            return response
        finally:
            self._clients[name] -= 1
            self._clients += Counter()  # drops persons without any

    async def _send(self, response: web.StreamResponse) -> None:
        sent = -1
        while not self._closing:
            news, snapshot = self._news, self._board.snapshot
            kind = "beat" if snapshot.version == sent else "changed"
            body = orjson.dumps({"version": snapshot.version, "open": sum(snapshot.open_items().values())})
            await response.write(b"event: %b\nid: %d\ndata: %b\n\n" % (kind.encode(), snapshot.version, body))
            sent = snapshot.version
            while not self._closing and self._board.snapshot.version == sent:
                try:
                    await asyncio.wait_for(news.wait(), BEAT_S)
                except TimeoutError:
                    break
                news = self._news
