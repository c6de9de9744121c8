"""Page of an agent's numbers for Prometheus, served by a thread."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator

from aiohttp import web
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from pipeline.http.access import check_reach, is_authorised
from pipeline.http.serving import listening
from pipeline.telemetry.instruments import Sample
from pipeline.telemetry.metrics import exposition


@contextlib.contextmanager
def metrics_page(
    samples: Callable[[], list[Sample]], host: str, port: int, token: str | None = None
) -> Iterator[str]:
    """Serve GET /metrics, and yield its URL; with a token, serve those alone who send it.

    Raises:
        ConfigError: the address cannot be listened on, or other machines could reach it without a token.
    """
    check_reach("--metrics", host, token)

    async def answer(request: web.Request) -> web.Response:
        if not is_authorised(request.headers.get("Authorization"), token):
            return web.Response(status=401, text="wrong or missing bearer token\n")
        body = exposition(samples()).encode()
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_PLAIN_0_0_4})

    app = web.Application(client_max_size=1024)
    app.router.add_get("/metrics", answer)
    opened = contextlib.AsyncExitStack()
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="metrics", daemon=True)
    thread.start()
    try:
        server = opened.enter_async_context(listening(app, host, port, name="--metrics", finish_s=1.0))
        yield asyncio.run_coroutine_threadsafe(server, loop).result() + "/metrics"
    finally:
        asyncio.run_coroutine_threadsafe(opened.aclose(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
