"""An access log written by a Python application itself, as JSON lines that ``smidgen agent logs`` reads.

For applications behind no server that writes one. A line that cannot be written is lost, never its request.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from logging.handlers import WatchedFileHandler
from os import PathLike
from typing import Any

from agents.inprocess.endpoints import AsgiApp, Environ, Scope, WsgiApp, is_whole

log = logging.getLogger(__name__)

_FAILED = 500  # what servers answer for an application that raises


class AccessLog:
    """Writes a line a request to a file; one that is renamed or removed is begun anew, as in a rotation.

    Lines have the keys ``time`` (of the end, epoch seconds), ``method``, ``path``, ``status`` and
    ``duration`` (seconds). Query strings are not written.

    Args:
        path: The file, to whose end lines are added.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self._file = _File(path, encoding="utf-8", delay=True)
        self._has_failed = False

    def wsgi(self, app: WsgiApp, endpoint: Callable[[Environ], str | None] | None = None) -> WsgiApp:
        """Return a WSGI application that does what ``app`` does, and logs its requests.

        Args:
            app: The application.
            endpoint: As of ``wrap_wsgi``: its pattern is written for the path, so that it is the type.
        """

        def wrapped(environ: Environ, start_response: Any) -> Iterable[bytes]:
            request = _Request(
                self, environ["REQUEST_METHOD"], environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", "")
            )

            def start(status: str, headers: Any, *error: Any) -> Any:
                request.status = int(status[:3])
                return start_response(status, headers, *error)

            def end() -> None:
                request.end(lambda: endpoint(environ) if endpoint else None)

            answer: Iterable[bytes] = ()  # whole, as long as there is none
            try:
                answer = app(environ, start)
            finally:
                if is_whole(answer, environ):
                    end()
            return answer if is_whole(answer, environ) else _Answer(answer, end)

        return wrapped

    def asgi(self, app: AsgiApp, endpoint: Callable[[Scope], str | None] | None = None) -> AsgiApp:
        """Return an ASGI application that does what ``app`` does, and logs its requests over HTTP.

        Args:
            app: The application.
            endpoint: As of ``wrap_asgi``, likewise.
        """

        async def wrapped(scope: Scope, receive: Any, send: Any) -> None:
            if scope["type"] != "http":
                await app(scope, receive, send)
                return
            request = _Request(self, scope["method"], scope["path"])

            async def send_noted(message: Any) -> None:
                if message["type"] == "http.response.start":
                    request.status = message["status"]
                await send(message)

            try:
                await app(scope, receive, send_noted)
            finally:
                request.end(lambda: endpoint(scope) if endpoint else None)

        return wrapped

    def write(self, line: str) -> None:
        """Add a line; the first that cannot be written is a warning of the application's log."""
        try:
            self._file.handle(logging.LogRecord("smidgen", logging.INFO, "", 0, line, None, None))
        except OSError as error:
            if not self._has_failed:
                log.warning("access log: %s", error)
            self._has_failed = True

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class _File(WatchedFileHandler):
    def handleError(self, record: logging.LogRecord) -> None:
        """Hand on why a line could not be written."""
        error = sys.exc_info()[1]
        if error is not None:
            raise error


class _Request:
    """One request, from its begin on."""

    def __init__(self, log: AccessLog, method: str, path: str) -> None:
        self._log = log
        self._method, self._path = method, path
        self._begin = time.perf_counter()
        self.status = _FAILED

    def end(self, ask: Callable[[], str | None]) -> None:
        """Log it, by the endpoint that is asked for; one that fails is none."""
        try:
            endpoint = ask()
        except Exception:  # an application's own code, which must not cost it the request
            endpoint = None
        method, path = endpoint.split(" ", 1) if endpoint and " " in endpoint else (self._method, self._path)
        duration = round(time.perf_counter() - self._begin, 6)
        fields = {"time": round(time.time(), 6), "method": method, "path": path}
        self._log.write(json.dumps({**fields, "status": self.status, "duration": duration}))


class _Answer:
    """An answer that says when it has ended: a server closes every answer, also one that it breaks off."""

    def __init__(self, answer: Iterable[bytes], ended: Callable[[], None]) -> None:
        self._answer = answer
        self._ended = ended

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._answer)

    def close(self) -> None:
        """Close the answer, if it can be closed, and log its request."""
        try:
            getattr(self._answer, "close", lambda: None)()
        finally:
            self._ended()
