"""HTTP server of an application: an address to listen on, and an orderly end."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from pipeline.model.errors import ConfigError

FINISH_S = 10.0
"""How long requests under way may go on when a server ends."""


def bracketed(host: str) -> str:
    """Return a host as it stands in front of a port: IPv6 addresses in brackets."""
    return f"[{host}]" if ":" in host else host


@asynccontextmanager
async def listening(
    app: web.Application,
    host: str,
    port: int,
    *,
    name: str = "--listen",
    finish_s: float = FINISH_S,
    context: ssl.SSLContext | None = None,
) -> AsyncIterator[str]:
    """Serve an application, and yield its URL.

    Bodies stay as they were sent: whoever unpacks them does it within a bound of its own.

    Args:
        app: the application.
        host: a name or an address of this machine.
        port: 0 takes a free one.
        name: what an error calls the address.
        finish_s: how long requests under way may go on at the end.
        context: that of TLS, for an HTTPS server.

    Raises:
        ConfigError: the address cannot be listened on.
    """
    runner = web.AppRunner(app, access_log=None, auto_decompress=False, shutdown_timeout=finish_s)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, host, port, backlog=1024, ssl_context=context).start()
        except OSError as error:
            raise ConfigError(f"{name}: {host}:{port}: {error.strerror or error}") from None
        scheme = "https" if context else "http"
        yield f"{scheme}://{bracketed(host)}:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()
