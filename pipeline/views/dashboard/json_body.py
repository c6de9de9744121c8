"""JSON bodies of the HTTP API: requests of programs, and answers."""

from __future__ import annotations

from typing import Any

import orjson
from aiohttp import web

from pipeline.model.errors import ConfigError


async def read_json(request: web.Request) -> Any:
    """Return the JSON of a request.

    Raises:
        ConfigError: it is no JSON.
    """
    try:
        return orjson.loads(await request.read())
    except orjson.JSONDecodeError as error:
        raise ConfigError(f"body: no JSON: {error}") from None


def json_response(body: object, status: int = 200) -> web.Response:
    """Return an answer of one line; NaN becomes null."""
    return web.Response(body=orjson.dumps(body) + b"\n", status=status, content_type="application/json")
