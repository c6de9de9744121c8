"""ASGI and WSGI middleware that shows a recorder the requests of an application."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

from agents.experiments.replay.recorder import Recorder
from agents.inprocess.observer import (
    AsgiApp,
    Environ,
    Observation,
    Scope,
    WsgiApp,
    observe_asgi,
    observe_wsgi,
)

_SAFE = "/:@!$&'()*+,;=~%-._"


class AsgiRecorder:
    """Records the HTTP requests of an ASGI application: ``app = AsgiRecorder(app, recorder)``."""

    def __init__(self, app: AsgiApp, recorder: Recorder) -> None:
        self._recorder = recorder
        self._app = observe_asgi(app, self._begin)

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        """Answer a request; what the application raises is passed on."""
        await self._app(scope, receive, send)

    def _begin(self, scope: Scope) -> Observation | None:
        if scope["type"] != "http":
            return None
        ticket = self._recorder.begin(scope["method"], _asgi_target(scope), _asgi_headers(scope))
        return Observation(body=ticket.body, end=ticket.answered)


class WsgiRecorder:
    """Records the requests of a WSGI application: ``app = WsgiRecorder(app, recorder)``."""

    def __init__(self, app: WsgiApp, recorder: Recorder) -> None:
        self._recorder = recorder
        self._app = observe_wsgi(app, self._begin)

    def __call__(self, environ: Environ, start_response: Any) -> Iterable[bytes]:
        """Answer a request; what the application raises is passed on."""
        return self._app(environ, start_response)

    def _begin(self, environ: Environ) -> Observation:
        headers = _wsgi_headers(environ)
        ticket = self._recorder.begin(environ["REQUEST_METHOD"], _wsgi_target(environ), headers)
        return Observation(body=ticket.body, end=ticket.answered)


def _asgi_target(scope: Scope) -> str:
    raw = scope.get("raw_path")
    path = raw.partition(b"?")[0].decode("latin-1") if raw else quote(scope["path"], safe=_SAFE)
    query = scope.get("query_string", b"").decode("latin-1")
    return f"{path}?{query}" if query else path


def _asgi_headers(scope: Scope) -> list[tuple[str, str]]:
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]]


def _wsgi_target(environ: Environ) -> str:
    path = environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", "")
    quoted = quote(path.encode("latin-1"), safe=_SAFE) or "/"
    query = environ.get("QUERY_STRING", "")
    return f"{quoted}?{query}" if query else quoted


def _wsgi_headers(environ: Environ) -> list[tuple[str, str]]:
    headers = [
        (key[5:].replace("_", "-").title(), value)
        for key, value in environ.items()
        if key.startswith("HTTP_")
    ]
    for key in ("CONTENT_TYPE", "CONTENT_LENGTH"):
        if environ.get(key):
            headers.append((key.replace("_", "-").title(), environ[key]))
    return headers
