"""Start the shop: ``python -m shop --port 8080``."""

from __future__ import annotations

import argparse
import logging

from aiohttp import web

from .app import create_app
from .settings import KEEPALIVE_S, SHUTDOWN_S


def main() -> None:
    """Serve until SIGTERM or Ctrl-C."""
    parser = argparse.ArgumentParser(prog="shop", description="A small shop.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, required=True)
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    logging.getLogger("shop").info("shop starts on port %d", options.port)
    web.run_app(
        create_app(),
        host=options.host,
        port=options.port,
        access_log=None,
        print=None,
        keepalive_timeout=KEEPALIVE_S,
        shutdown_timeout=SHUTDOWN_S,
    )


if __name__ == "__main__":
    main()
