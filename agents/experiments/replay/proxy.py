"""A reverse proxy: it passes requests on unchanged, and shows them to a recorder."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping

import aiohttp
from aiohttp import web
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from agents.experiments.replay.recorder import Recorder, Ticket
from pipeline.http.serving import listening

CONNECT_S = 10.0
CONNECTIONS = 1000
"""Most connections to the service; further requests wait for one."""

HOP_BY_HOP = frozenset(
    {"connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"}
)
"""Headers of one connection (RFC 9110, 7.6.1), which are not passed on."""


def make_proxy(upstream: str, recorder: Recorder) -> web.Application:
    """Return the application: every request goes to ``upstream``, bodies streamed both ways.

    If the service cannot be reached, the answer is a 502; its own answers are passed through.
    """
    app = web.Application()

    async def session(_: web.Application) -> AsyncIterator[None]:
        app[_SESSION] = open_session()
        yield
        await app[_SESSION].close()

    async def handle(request: web.Request) -> web.StreamResponse:
        ticket = recorder.begin(request.method, request.raw_path, request.headers.items())
        status = 0
        try:
            answer, status = await pass_on(app[_SESSION], request, upstream, ticket=ticket)
            return answer
        finally:
            ticket.answered(status)

    app.cleanup_ctx.append(session)
    app.router.add_route("*", "/{path:.*}", handle)
    return app


_SESSION: web.AppKey[aiohttp.ClientSession] = web.AppKey("session", aiohttp.ClientSession)


def open_session() -> aiohttp.ClientSession:
    """Return a session without cookies, decompression, or headers of its own."""
    return aiohttp.ClientSession(
        auto_decompress=False,
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S),
        connector=aiohttp.TCPConnector(limit=CONNECTIONS),
        skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding", "Content-Type"),
    )


async def pass_on(
    session: aiohttp.ClientSession,
    request: web.Request,
    upstream: str,
    *,
    ticket: Ticket | None = None,
    headers: Mapping[str, str] | None = None,
) -> tuple[web.StreamResponse, int]:
    """Pass a request on and its answer back; return the answer and its status, 0 without an answer.

    Args:
        session: Session from ``open_session``.
        request: The request of the client.
        upstream: ``http://host:port``, before the path.
        ticket: Receives the chunks of the body.
        headers: More headers of the request.
    """
    sent = end_to_end(request.headers)
    sent.update(headers or {})
    body = _chunks(request, ticket) if request.body_exists else None
    address = URL(upstream.rstrip("/") + request.raw_path, encoded=True)
    try:
        exchange = session.request(request.method, address, headers=sent, data=body, allow_redirects=False)
        async with exchange as response:
            answer = web.StreamResponse(status=response.status, reason=response.reason)
            answer.headers.extend(end_to_end(response.headers))
            await answer.prepare(request)
            await _send_back(response, answer)
            return answer, response.status
    except (aiohttp.ClientError, TimeoutError) as error:
        return web.Response(status=502, text=f"no answer from the service: {type(error).__name__}\n"), 0


async def _send_back(response: aiohttp.ClientResponse, answer: web.StreamResponse) -> None:
    """Send the chunks of an answer on; an answer that breaks off breaks off here, too."""
    try:
        async for chunk in response.content.iter_any():
            await answer.write(chunk)
    except (aiohttp.ClientError, TimeoutError):
        raise ConnectionResetError("the service's answer broke off") from None
    await answer.write_eof()


async def _chunks(request: web.Request, ticket: Ticket | None) -> AsyncIterator[bytes]:
    async for chunk in request.content.iter_any():
        if ticket:
            ticket.body(chunk)
        yield chunk


def end_to_end(headers: CIMultiDictProxy[str]) -> CIMultiDict[str]:
    """Return headers without those of the connection (hop-by-hop)."""
    named = {name.strip().lower() for name in headers.get("Connection", "").split(",")}
    left_out = HOP_BY_HOP | named
    return CIMultiDict((name, value) for name, value in headers.items() if name.lower() not in left_out)


async def serve(
    app: web.Application, host: str, port: int, ready: Callable[[str], None], stop: asyncio.Event
) -> None:
    """Serve an application until ``stop`` is set; ``ready`` is called with its address.

    Raises:
        ConfigError: the address cannot be listened on.
    """
    async with listening(app, host, port) as address:
        ready(address)
        await stop.wait()
