"""Services and recorders of tests, in this process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from aiohttp import web

from agents.experiments.replay.recording import RecordedRequest, read_recording
from pipeline.http.serving import listening

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def service(handler: Handler) -> AsyncIterator[str]:
    """Serve all paths by one handler, and yield the address."""
    app = web.Application()

    async def handle(request: web.Request) -> web.StreamResponse:
        return await handler(request)

    app.router.add_route("*", "/{path:.*}", handle)
    async with listening(app, "127.0.0.1", 0) as address:
        yield address


@asynccontextmanager
async def raw_service(answer: bytes, *, close: bool = False) -> AsyncIterator[str]:
    """Answer every request with the same bytes."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                writer.write(answer)
                await writer.drain()
                if close:
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


def recorded(path: Path) -> list[RecordedRequest]:
    """Return the requests of a file."""
    return list(read_recording(path).requests)
