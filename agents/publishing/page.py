"""Pages of an agent's numbers for Prometheus and of its health, served by a thread."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # loaded where there is a page
    from aiohttp import web

    from pipeline.telemetry.instruments import Sample

log = logging.getLogger(__name__)


@contextlib.contextmanager
def metrics_page(
    samples: Callable[[], list[Sample]],
    address: tuple[str, int] | None,
    token: str | None = None,
    *,
    problem: Callable[[], str] = str,
) -> Iterator[str]:
    """Serve GET /metrics and /healthz, and yield and log the URL of the first.

    Args:
        samples: Returns the numbers; another thread calls it.
        address: Host and port to listen on; port 0 takes a free one. None: nothing is served.
        token: Bearer token that a request for the numbers needs; None: none.
        problem: Returns what is wrong with the agent, for a health of 503; empty: nothing.

    Raises:
        ConfigError: the address cannot be listened on, or other machines could reach it without a token.
    """
    if address is None:
        yield ""
        return
    from pipeline.http.access import check_reach
    from pipeline.http.serving import listening

    check_reach("--metrics", address[0], token)
    app = _application(samples, token, problem)
    opened = contextlib.AsyncExitStack()
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="metrics", daemon=True)
    thread.start()
    try:
        server = opened.enter_async_context(listening(app, *address, name="--metrics", finish_s=1.0))
        url = asyncio.run_coroutine_threadsafe(server, loop).result() + "/metrics"
        log.info("metrics: %s", url)
        yield url
    finally:
        asyncio.run_coroutine_threadsafe(opened.aclose(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def _application(
    samples: Callable[[], list[Sample]], token: str | None, problem: Callable[[], str]
) -> web.Application:
    from aiohttp import web
    from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

    from pipeline.http.access import is_authorised
    from pipeline.telemetry.metrics import exposition

    async def numbers(request: web.Request) -> web.Response:
        if not is_authorised(request.headers.get("Authorization"), token):
            return web.Response(status=401, text="wrong or missing bearer token\n")
        body = exposition(samples()).encode()
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_PLAIN_0_0_4})

    async def health(_: web.Request) -> web.Response:
        text = problem()
        return web.Response(status=503 if text else 200, text=f"{text or 'ok'}\n")

    app = web.Application(client_max_size=1024)
    app.router.add_get("/metrics", numbers)
    app.router.add_get("/healthz", health)
    return app
