"""Start it in a folder that holds ``shop``: ``python -m front --port 8080 --stock http://127.0.0.1:7001``."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Awaitable, Callable

from aiohttp import web

from .layout import fix_layout
from .stock import add_stock

TIMED = frozenset({"/login", "/search"})
"""Handlers that wait for nothing: what the thread uses meanwhile is theirs."""


@web.middleware
async def say_cpu(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Say in the answer how much CPU time the request took."""
    began = time.thread_time_ns()
    answer = await handler(request)
    if request.path in TIMED:
        answer.headers["Server-Timing"] = f"cpu;dur={(time.thread_time_ns() - began) / 1e6}"
    return answer


def main() -> None:
    """Serve until SIGTERM."""
    fix_layout()
    from shop.app import create_app  # type: ignore[import-not-found]  # of the commit in this folder

    parser = argparse.ArgumentParser(prog="front")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--stock", required=True, help="Address of the service of stock.")
    parser.add_argument("--core", type=int, help="Run on this core alone.")
    options = parser.parse_args()
    if options.core is not None:
        os.sched_setaffinity(0, {options.core})
    app = create_app()
    app.middlewares.append(say_cpu)
    add_stock(app, options.stock)
    web.run_app(app, host="127.0.0.1", port=options.port, access_log=None, print=None, shutdown_timeout=1.0)


if __name__ == "__main__":
    main()
