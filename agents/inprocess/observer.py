"""Observer of WSGI and ASGI applications: sees the bodies, statuses and ends of their requests."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator, MutableMapping
from dataclasses import dataclass
from types import FrameType
from typing import Any, TypeAlias

Environ: TypeAlias = dict[str, Any]
WsgiApp: TypeAlias = Callable[[Environ, Any], Iterable[bytes]]
Scope: TypeAlias = MutableMapping[str, Any]
AsgiApp: TypeAlias = Callable[[Scope, Any, Any], Awaitable[None]]


@dataclass(slots=True)
class Observation:
    """The callbacks of one observed request.

    ``run`` is given each frame under which the application's code runs, ``body`` each chunk of the request's
    body that the application reads, and ``end`` the status of the answer, 0 if there was none. None of them
    may raise.
    """

    run: Callable[[FrameType], None] | None = None
    body: Callable[[bytes], None] | None = None
    end: Callable[[int], None] | None = None
    status: int = 0

    def finish(self) -> None:
        """Call ``end``, the first time."""
        end, self.end = self.end, None
        if end:
            end(self.status)


def observe_wsgi(app: WsgiApp, begin: Callable[[Environ], Observation | None]) -> WsgiApp:
    """Return a WSGI application that does what ``app`` does, observed.

    ``begin`` is called for each request, and returns None for one that is not observed. A request ends
    with its answer, which a server closes even if the answer breaks off.
    """

    def wrapped(environ: Environ, start_response: Any) -> Iterable[bytes]:
        request = begin(environ)
        if request is None:
            return app(environ, start_response)

        def start(status: str, *rest: Any, **more: Any) -> Any:
            code = status.partition(" ")[0]
            request.status = int(code) if code.isdecimal() else 0
            return start_response(status, *rest, **more)

        if request.run:
            request.run(sys._getframe())
        if request.body:
            environ["wsgi.input"] = _Input(environ["wsgi.input"], request.body)
        try:
            answer = app(environ, start if request.end else start_response)
        except BaseException:
            request.finish()
            raise
        if _is_whole(answer, environ):
            request.finish()
            return answer
        return _Answer(answer, request)

    return wrapped


def observe_asgi(app: AsgiApp, begin: Callable[[Scope], Observation | None]) -> AsgiApp:
    """Return an ASGI application that does what ``app`` does, observed; see ``observe_wsgi``."""

    async def wrapped(scope: Scope, receive: Any, send: Any) -> None:
        request = begin(scope)
        if request is None:
            await app(scope, receive, send)
            return

        async def receive_observed() -> Any:
            message = await receive()
            if request.body and message["type"] == "http.request":
                request.body(message.get("body", b""))
            return message

        async def send_observed(message: Any) -> None:
            if message["type"] == "http.response.start":
                request.status = message["status"]
            await send(message)

        if request.run:
            request.run(sys._getframe())
        try:
            await app(
                scope,
                receive_observed if request.body else receive,
                send_observed if request.end else send,
            )
        finally:
            request.finish()

    return wrapped


def _is_whole(answer: Iterable[bytes], environ: Environ) -> bool:
    """Return whether a WSGI answer is complete already, or sent by the server itself."""
    file = environ.get("wsgi.file_wrapper")
    return isinstance(answer, list | tuple) or (isinstance(file, type) and isinstance(answer, file))


class _Answer:
    """An answer whose parts the application makes one by one; it ends with the last, or when closed."""

    def __init__(self, answer: Iterable[bytes], request: Observation) -> None:
        self._answer = answer
        self._request = request

    def __iter__(self) -> Iterator[bytes]:
        if self._request.run:
            self._request.run(sys._getframe())
        try:
            yield from self._answer
        finally:
            self._request.finish()

    def close(self) -> None:
        """Close the answer, if it can be closed."""
        if self._request.run:
            self._request.run(sys._getframe())
        try:
            getattr(self._answer, "close", lambda: None)()
        finally:
            self._request.finish()


class _Input:
    """The body of a request; an observer sees the bytes that the application reads."""

    def __init__(self, stream: Any, see: Callable[[bytes], None]) -> None:
        self._stream = stream
        self._see = see

    def read(self, *size: int) -> bytes:
        """Read bytes."""
        return self._seen(self._stream.read(*size))

    def readline(self, *size: int) -> bytes:
        """Read a line."""
        return self._seen(self._stream.readline(*size))

    def readlines(self, *hint: int) -> list[bytes]:
        """Read lines."""
        return [self._seen(line) for line in self._stream.readlines(*hint)]

    def __iter__(self) -> Iterator[bytes]:
        for line in self._stream:
            yield self._seen(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def _seen(self, chunk: bytes) -> bytes:
        self._see(chunk)
        return chunk
