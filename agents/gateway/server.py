"""The HTTP server of the gateway."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from aiohttp import ClientPayloadError, web

from agents.gateway.access import authorization_of
from agents.gateway.base import AnswerBody, PushProtocol, Refusal, Request, RequestResult
from agents.gateway.intake import RequestIntake
from pipeline.model.clock import Clock
from pipeline.telemetry.metrics import Sample, exposition

MAX_BODY_BYTES = 32 * 1024**2
"""Largest body as it is sent; its unpacked size has a bound of its own."""

LARGE_BODY_BYTES = 1024**2
"""Bytes that a body of unknown length counts for while it is read."""

BODY_S = 30.0
"""Seconds that reading a body may take."""

Metrics = Callable[[], Sequence[Sample]]
Problem = Callable[[], str]
"""Returns why the gateway is not healthy; empty if it is."""


def make_app(
    receivers: Sequence[PushProtocol],
    intake: RequestIntake,
    metrics: Metrics,
    problem: Problem,
    *,
    clock: Clock,
) -> web.Application:
    """Return the application: POST to every route of a receiver, GET /healthz and /metrics."""
    app = web.Application(client_max_size=MAX_BODY_BYTES)

    def handler(receiver: PushProtocol) -> Callable[[web.Request], object]:
        async def handle(request: web.Request) -> web.Response:
            return await _answer(receiver, request, intake, clock)

        return handle

    for receiver in receivers:
        for route in receiver.routes:
            app.router.add_post(route, handler(receiver))  # type: ignore[arg-type]

    async def health(_: web.Request) -> web.Response:
        text = problem()
        return web.Response(status=503 if text else 200, text=f"{text or 'ok'}\n")

    async def show(request: web.Request) -> web.Response:
        try:
            intake.identify(request.headers.get("Authorization"))
        except Refusal as refusal:
            return web.Response(status=refusal.status, text=refusal.text + "\n")
        return web.Response(text=exposition(metrics()))

    app.router.add_get("/healthz", health)
    app.router.add_get("/metrics", show)
    return app


async def _answer(
    receiver: PushProtocol, sent: web.Request, intake: RequestIntake, clock: Clock
) -> web.Response:
    headers = {name.lower(): value for name, value in sent.headers.items()}
    request = Request(sent.path, b"", clock(), sent.remote or "", dict(sent.query), headers)
    try:
        size = _size(sent)
        client = intake.admit(authorization_of(headers), size)
        with intake.under_way(size):
            request = replace(request, body=await _body(sent))
            result = await intake.take(receiver, client, request)
    except Refusal as refusal:
        result = refusal.result()
        intake.counts.request(receiver.name, result, request.peer, 0.0)
    return _response(receiver.reply(request, result), result)


def _size(sent: web.Request) -> int:
    size = LARGE_BODY_BYTES if sent.content_length is None else sent.content_length
    if size > MAX_BODY_BYTES:
        raise _too_large()
    return size


async def _body(sent: web.Request) -> bytes:
    try:
        async with asyncio.timeout(BODY_S):
            return await sent.read()
    except web.HTTPRequestEntityTooLarge:
        raise _too_large() from None
    except (ConnectionError, ClientPayloadError):
        raise Refusal(400, "broken_off", "the body broke off") from None
    except TimeoutError:
        raise Refusal(408, "slow", "the body did not come in time") from None


def _response(reply: AnswerBody, result: RequestResult) -> web.Response:
    response = web.Response(
        status=result.status, body=reply.body, content_type=reply.media_type, headers=result.headers
    )
    if result.retry_s:
        response.headers["Retry-After"] = str(math.ceil(result.retry_s))
    if result.status == 401:
        response.headers["WWW-Authenticate"] = "Bearer"
    return response


def _too_large() -> Refusal:
    return Refusal(413, "too_large", f"larger than {MAX_BODY_BYTES} bytes")
