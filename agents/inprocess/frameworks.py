"""Routes of Flask, Django, aiohttp, Starlette and FastAPI as endpoints; none of them is imported.

Endpoints are spelt as OpenTelemetry spells names of server spans: method and route, ``GET /cart/{id}``.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from agents.inprocess.endpoints import wrap_wsgi
from agents.inprocess.marks import Label, put_late, sampling
from agents.inprocess.observer import AsgiApp, Environ, Scope

_RULE = "smidgen.url_rule"


def watch_flask(app: Any) -> None:
    """Annotate the requests of a Flask application with method and URL rule, streamed answers too."""
    from flask import request

    def note_rule() -> None:
        request.environ[_RULE] = request.url_rule  # Flask forgets the request before it streams

    app.before_request(note_rule)
    app.wsgi_app = wrap_wsgi(app.wsgi_app, flask_endpoint)


def flask_endpoint(environ: Environ) -> str | None:
    """Return the endpoint of a request of Flask, once it is routed."""
    rule = environ.get(_RULE)
    return f"{environ['REQUEST_METHOD']} {rule.rule}" if rule else None


def django_middleware(get_response: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Annotate requests of Django: ``agents.inprocess.django_middleware``, first in ``MIDDLEWARE``."""
    if inspect.iscoroutinefunction(get_response):

        async def middleware(request: Any) -> Any:
            if sampling.on:
                put_late(sys._getframe(), lambda: _label(django_endpoint(request)))
            return await get_response(request)

        return middleware

    def blocking_middleware(request: Any) -> Any:
        if sampling.on:
            put_late(sys._getframe(), lambda: _label(django_endpoint(request)))
        return get_response(request)

    return blocking_middleware


django_middleware.sync_capable = True  # type: ignore[attr-defined]  # Django reads both
django_middleware.async_capable = True  # type: ignore[attr-defined]


def django_endpoint(request: Any) -> str | None:
    """Return the endpoint of a request of Django, once it is routed."""
    match = getattr(request, "resolver_match", None)
    return f"{request.method} /{match.route.lstrip('/')}" if match else None


async def aiohttp_middleware(request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
    """Annotate requests of aiohttp: ``web.Application(middlewares=[aiohttp_middleware])``."""
    if sampling.on:
        put_late(sys._getframe(), lambda: _label(aiohttp_endpoint(request)))
    return await handler(request)


aiohttp_middleware.__middleware_version__ = 1  # type: ignore[attr-defined]  # set by web.middleware


def aiohttp_endpoint(request: Any) -> str | None:
    """Return the endpoint of a request of aiohttp; one that matches no route has none."""
    resource = request.match_info.route.resource
    return f"{request.method} {resource.canonical}" if resource else None


class StarletteMiddleware:
    """Annotates requests of Starlette and FastAPI: ``app.add_middleware(StarletteMiddleware)``."""

    def __init__(self, app: AsgiApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        """Answer a request."""
        if sampling.on and scope["type"] != "lifespan":
            outer = dict(scope)  # routers of mounted applications change the scope itself
            put_late(sys._getframe(), lambda: _label(starlette_endpoint(outer, scope)))
        await self._app(scope, receive, send)


def starlette_endpoint(asked: Mapping[str, Any], scope: Mapping[str, Any]) -> str | None:
    """Return the endpoint of a request of Starlette or FastAPI.

    Args:
        asked: The scope as it came in.
        scope: The scope as it is now; FastAPI names the route in it.
    """
    routed = scope.get("fastapi", {}).get("effective_route_context") or scope.get("route")
    path = _starlette_path(getattr(asked.get("app"), "routes", ()), asked, getattr(routed, "path", ""))
    return f"{scope.get('method', 'WEBSOCKET')} {path}" if path else None


def _starlette_path(routes: Sequence[Any], scope: Mapping[str, Any], routed: str) -> str:
    """Return the pattern of the first route that matches, ``routed`` for a group, which has none."""
    for route in routes:
        match, changes = route.matches(scope)
        if match.name == "FULL":
            path = getattr(route, "path", None)
            if path is None:
                return routed
            inner = getattr(route, "routes", None) or ()
            return str(path) + _starlette_path(inner, {**scope, **changes}, routed)
    return ""


def _label(endpoint: str | None) -> Label | None:
    return ("endpoint", endpoint) if endpoint else None
