"""Endpoints of WSGI and ASGI applications: each request runs under a frame that carries its endpoint.

The endpoint is asked for when a request is sampled, so a request that is not costs nothing, and a route may
be found while the request goes on.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator, MutableMapping
from typing import Any, TypeAlias

from agents.inprocess.marks import Label, put_late, sampling

Environ: TypeAlias = dict[str, Any]
WsgiApp: TypeAlias = Callable[[Environ, Any], Iterable[bytes]]
Scope: TypeAlias = MutableMapping[str, Any]
AsgiApp: TypeAlias = Callable[[Scope, Any, Any], Awaitable[None]]


def wrap_wsgi(app: WsgiApp, endpoint: Callable[[Environ], str | None]) -> WsgiApp:
    """Return a WSGI application that does what ``app`` does, under the endpoint of each request.

    ``endpoint`` gets the environ, perhaps while the request goes on; it returns a route's pattern such as
    ``GET /cart/{id}``, not its path, or None as long as it does not know.
    """

    def wrapped(environ: Environ, start_response: Any) -> Iterable[bytes]:
        if not sampling.on:
            return app(environ, start_response)
        late = _late(endpoint, environ)
        put_late(sys._getframe(), late)
        answer = app(environ, start_response)
        return answer if is_whole(answer, environ) else _Answer(answer, late)

    return wrapped


def is_whole(answer: Iterable[bytes], environ: Environ) -> bool:
    """Return whether an answer of WSGI is there already, or sent by the server in a way of its own."""
    file = environ.get("wsgi.file_wrapper")
    return isinstance(answer, list | tuple) or (isinstance(file, type) and isinstance(answer, file))


def wrap_asgi(app: AsgiApp, endpoint: Callable[[Scope], str | None]) -> AsgiApp:
    """Return an ASGI application that does what ``app`` does, under the endpoint of each request.

    ``endpoint`` gets the scope, perhaps while the request goes on; see ``wrap_wsgi``.
    """

    async def wrapped(scope: Scope, receive: Any, send: Any) -> None:
        if sampling.on and scope["type"] != "lifespan":
            put_late(sys._getframe(), _late(endpoint, scope))
        await app(scope, receive, send)

    return wrapped


class _Answer:
    """An answer whose parts are made one after the other, each under the endpoint."""

    def __init__(self, answer: Iterable[bytes], late: Callable[[], Label | None]) -> None:
        self._answer = answer
        self._parts: Iterator[bytes] | None = None
        self._late = late

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        put_late(sys._getframe(), self._late)
        if self._parts is None:
            self._parts = iter(self._answer)
        return next(self._parts)

    def close(self) -> None:
        """Close the answer, if it can be closed."""
        close = getattr(self._answer, "close", None)
        if close:
            put_late(sys._getframe(), self._late)
            close()


def _late(endpoint: Callable[[Any], str | None], request: Any) -> Callable[[], Label | None]:
    def label() -> Label | None:
        value = endpoint(request)
        return ("endpoint", value) if value else None

    return label
