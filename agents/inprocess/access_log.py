"""An access log written by a Python application itself, as JSON lines that ``smidgen agent logs`` reads.

For applications behind no server that writes one. A line that cannot be written is lost, never its request.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Callable
from functools import partial
from logging.handlers import WatchedFileHandler
from os import PathLike

from agents.inprocess.observer import (
    AsgiApp,
    Environ,
    Observation,
    Scope,
    WsgiApp,
    observe_asgi,
    observe_wsgi,
)

log = logging.getLogger(__name__)

_FAILED = 500  # status that servers send for an application that raises


class AccessLog:
    """Writes one line per request to a file; after a rename or removal (rotation) it begins a new file.

    Lines have the keys ``time`` (of the end, epoch seconds), ``method``, ``path``, ``status`` and
    ``duration_s``. Query strings are not written.

    Args:
        path: The file to append to.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self._file = _File(path, encoding="utf-8", delay=True)
        self._has_failed = False

    def wsgi(self, app: WsgiApp, endpoint: Callable[[Environ], str | None] | None = None) -> WsgiApp:
        """Return a WSGI application that does what ``app`` does, and logs its requests.

        Args:
            app: The application.
            endpoint: As of ``wrap_wsgi``; its pattern is written instead of the path, so that it is the type.
        """

        def begin(environ: Environ) -> Observation:
            path = environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", "")
            return self._begin(
                environ["REQUEST_METHOD"], path, partial(endpoint, environ) if endpoint else None
            )

        return observe_wsgi(app, begin)

    def asgi(self, app: AsgiApp, endpoint: Callable[[Scope], str | None] | None = None) -> AsgiApp:
        """Return an ASGI application that does what ``app`` does, and logs its requests over HTTP.

        Args:
            app: The application.
            endpoint: As of ``wrap_asgi``, likewise.
        """

        def begin(scope: Scope) -> Observation | None:
            if scope["type"] != "http":
                return None
            return self._begin(scope["method"], scope["path"], partial(endpoint, scope) if endpoint else None)

        return observe_asgi(app, begin)

    def write(self, line: str) -> None:
        """Add a line; the first that cannot be written is logged as a warning."""
        try:
            self._file.handle(logging.LogRecord("smidgen", logging.INFO, "", 0, line, None, None))
        except OSError as error:
            if not self._has_failed:
                log.warning("access log: %s", error)
            self._has_failed = True

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _begin(self, method: str, path: str, endpoint: Callable[[], str | None] | None) -> Observation:
        begin = time.perf_counter()

        def end(status: int) -> None:
            duration = round(time.perf_counter() - begin, 6)
            try:
                name = endpoint() if endpoint else None
            except Exception:  # an error in the application's function must not fail the request
                name = None
            spelt = name.split(" ", 1) if name and " " in name else (method, path)
            fields = {"time": round(time.time(), 6), "method": spelt[0], "path": spelt[1]}
            self.write(json.dumps({**fields, "status": status or _FAILED, "duration_s": duration}))

        return Observation(end=end)


class _File(WatchedFileHandler):
    def handleError(self, record: logging.LogRecord) -> None:
        """Raise the error of a line that could not be written."""
        error = sys.exc_info()[1]
        if error is not None:
            raise error
