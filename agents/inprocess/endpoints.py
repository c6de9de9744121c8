"""Endpoints of WSGI and ASGI applications: each request runs under a frame that carries its endpoint.

The endpoint is asked for only when a request is sampled: other requests cost nothing, and the route may be
found while the request goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from agents.inprocess.marks import Label, put_late, sampling
from agents.inprocess.observer import (
    AsgiApp,
    Environ,
    Observation,
    Scope,
    WsgiApp,
    observe_asgi,
    observe_wsgi,
)


def wrap_wsgi(app: WsgiApp, endpoint: Callable[[Environ], str | None]) -> WsgiApp:
    """Return a WSGI application that does what ``app`` does, under the endpoint of each request.

    ``endpoint`` gets the environ, perhaps while the request goes on; it returns a route's pattern such as
    ``GET /cart/{id}``, not its path, or None while the route is unknown.
    """
    return observe_wsgi(app, partial(_begin, endpoint))


def wrap_asgi(app: AsgiApp, endpoint: Callable[[Scope], str | None]) -> AsgiApp:
    """Return an ASGI application that does what ``app`` does, under the endpoint of each request.

    ``endpoint`` gets the scope, perhaps while the request goes on; see ``wrap_wsgi``.
    """

    def begin(scope: Scope) -> Observation | None:
        return None if scope["type"] == "lifespan" else _begin(endpoint, scope)

    return observe_asgi(app, begin)


def _begin(endpoint: Callable[[Any], str | None], request: Any) -> Observation | None:
    if not sampling.on:
        return None

    def label() -> Label | None:
        value = endpoint(request)
        return ("endpoint", value) if value else None

    return Observation(run=lambda frame: put_late(frame, label))
