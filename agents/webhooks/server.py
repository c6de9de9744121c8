"""The HTTP server: reads bodies within bounds, hands them to the receiver, and ends in order."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial

from aiohttp import web

from agents.publishing.publisher import Connect
from agents.webhooks import tracker_receiver
from agents.webhooks.answers import WebhookAnswer
from agents.webhooks.flag_receiver import SIGNED_BY, FlagReceiver
from agents.webhooks.mapping import Forge, ServiceMap
from agents.webhooks.receiver import DeliveryReceiver
from agents.webhooks.reply_receiver import ReplyReceiver
from agents.webhooks.sending import ConfirmedSender
from agents.webhooks.tracker_receiver import TrackerReceiver
from pipeline.http.access import is_loopback
from pipeline.http.serving import FINISH_S, listening
from pipeline.model.clock import Clock
from pipeline.processes import stop_event
from pipeline.storage.interface import Store
from pipeline.telemetry.metrics import exposition

log = logging.getLogger(__name__)

MAX_BODY_BYTES = 25 * 1024**2
"""Largest delivery: GitHub sends none above 25 MB."""

LARGE_BODY_BYTES = 1024**2
LARGE_BODIES = 4
"""Size from which the number of deliveries that are read at a time is bounded, and so their memory."""

BODY_S = 20.0
"""Seconds that reading a body may take."""

_SIGNED_BY: Mapping[Forge, Sequence[str]] = {
    "github": ("X-Hub-Signature-256",),
    "gitlab": ("X-Gitlab-Token", "webhook-signature"),
}
"""Headers with the signature or token; a request of a forge has one of them."""

Receive = Callable[[Mapping[str, str], bytes], Awaitable[WebhookAnswer]]


async def serve(
    services: ServiceMap,
    connect: Connect,
    *,
    host: str,
    port: int,
    clock: Clock,
    ready: Callable[[str], None],
    store: Store | None = None,
) -> None:
    """Receive webhooks until SIGINT or SIGTERM; ``ready`` is given the address once requests are taken.

    With a ``store``, which knows what alerts wrote where, replies to them are answers.

    Raises:
        ConfigError: the address cannot be listened on.
    """
    stop = stop_event()
    sender = ConfirmedSender(connect)
    replies = ReplyReceiver(store, sender.send, clock=clock) if store else None
    receiver = DeliveryReceiver(services, sender.send, clock=clock, replies=replies)
    flags = FlagReceiver(services.flag_sources, sender.send, clock=clock)
    trackers = TrackerReceiver(services.trackers, replies) if replies else None
    try:
        # A signature is over the body as it was sent, and ``listening`` unpacks none.
        async with listening(make_app(receiver, flags, replies, trackers), host, port) as address:
            if not is_loopback(host):
                log.warning("%s can be reached from other machines; webhooks should come through TLS", host)
            ready(address)
            await stop.wait()
    finally:
        await receiver.finish(FINISH_S)
        await sender.close()


def make_app(
    receiver: DeliveryReceiver,
    flags: FlagReceiver | None = None,
    replies: ReplyReceiver | None = None,
    trackers: TrackerReceiver | None = None,
) -> web.Application:
    """Return the application: POST /github, /gitlab, /jira, flag services, GET /healthz, /metrics."""
    app = web.Application(client_max_size=MAX_BODY_BYTES)
    large = asyncio.Semaphore(LARGE_BODIES)

    def handler(sender: str, signed: Sequence[str], receive: Receive) -> Callable[[web.Request], object]:
        async def handle(request: web.Request) -> web.Response:
            answer = await _answer(receive, signed, request, large)
            if answer.status >= 400:
                log.warning("%s: refused a request from %s: %s", sender, request.remote, answer.text)
            if answer.status == 204:
                return web.Response(status=204)
            return web.Response(status=answer.status, text=answer.text + "\n")

        return handle

    async def health(_: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    for forge, signed in _SIGNED_BY.items():
        taking = handler(forge, signed, partial(receiver.receive, forge))
        app.router.add_post(f"/{forge}", taking)  # type: ignore[arg-type]
    for kind, header in SIGNED_BY.items():
        if flags:
            taking = handler(kind, (header,), partial(flags.receive, kind))
            app.router.add_post(f"/{kind}", taking)  # type: ignore[arg-type]

    if trackers:
        taking = handler("jira", (tracker_receiver.SIGNED_BY,), trackers.receive)
        app.router.add_post("/jira", taking)  # type: ignore[arg-type]

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(text=exposition(replies.samples() if replies else ()))

    app.router.add_get("/healthz", health)
    app.router.add_get("/metrics", metrics)
    return app


async def _answer(
    receive: Receive, signed: Sequence[str], request: web.Request, large: asyncio.Semaphore
) -> WebhookAnswer:
    size = request.content_length
    if size is not None and size > MAX_BODY_BYTES:
        return WebhookAnswer(413, f"larger than {MAX_BODY_BYTES} bytes")
    if not any(request.headers.get(name) for name in signed):
        return WebhookAnswer(401, "wrong or missing signature")
    slot = large if size is None or size > LARGE_BODY_BYTES else contextlib.nullcontext()
    try:
        async with slot:
            async with asyncio.timeout(BODY_S):
                body = await request.read()
            return await receive(request.headers, body)
    except web.HTTPRequestEntityTooLarge:
        return WebhookAnswer(413, f"larger than {MAX_BODY_BYTES} bytes")
    except TimeoutError:
        return WebhookAnswer(408, "the body did not come in time")
