"""Page of an agent's numbers for Prometheus, served by a thread."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable

from aiohttp import web

from pipeline.http.access import is_authorised, is_loopback
from pipeline.model.errors import ConfigError
from pipeline.telemetry.instruments import Sample
from pipeline.telemetry.metrics import exposition

log = logging.getLogger(__name__)

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class MetricsPage:
    """Serves GET /metrics until it is closed; with a token, to those alone who send it."""

    def __init__(self, samples: Callable[[], list[Sample]], token: str | None = None) -> None:
        self._samples = samples
        self._token = token
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="metrics", daemon=True)
        self._runner: web.AppRunner | None = None

    def start(self, host: str, port: int) -> str:
        """Listen, and return the address; port 0 takes a free one.

        Raises:
            ConfigError: the address cannot be listened on, or other machines could reach it without a token.
        """
        if self._token is None and not is_loopback(host):
            raise ConfigError(
                f"--metrics: {host} can be reached from other machines: set http_token_file too"
            )
        self._thread.start()
        return asyncio.run_coroutine_threadsafe(self._listen(host, port), self._loop).result()

    def close(self) -> None:
        """Listen no more."""
        if self._runner:
            asyncio.run_coroutine_threadsafe(self._runner.cleanup(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _listen(self, host: str, port: int) -> str:
        app = web.Application(client_max_size=1024)
        app.router.add_get("/metrics", self._answer)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        await runner.setup()
        try:
            await web.TCPSite(runner, host, port).start()
        except OSError as error:
            await runner.cleanup()
            raise ConfigError(f"--metrics: {host}:{port}: {error.strerror or error}") from None
        self._runner = runner
        shown = f"[{host}]" if ":" in host else host
        return f"http://{shown}:{runner.addresses[0][1]}/metrics"

    async def _answer(self, request: web.Request) -> web.Response:
        if not is_authorised(request.headers.get("Authorization"), self._token):
            return web.Response(status=401, text="wrong or missing bearer token\n")
        body = exposition(self._samples()).encode()
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE})
