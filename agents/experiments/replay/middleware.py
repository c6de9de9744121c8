"""ASGI and WSGI middleware that shows a recorder what an application is asked."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, MutableMapping
from typing import Any
from urllib.parse import quote

from agents.experiments.replay.recorder import Recorder, Ticket

_SAFE = "/:@!$&'()*+,;=~%-._"
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
StartResponse = Callable[..., Any]


class AsgiRecorder:
    """Records the HTTP requests of an ASGI application: ``app = AsgiRecorder(app, recorder)``."""

    def __init__(self, app: Callable[[Any, Receive, Send], Awaitable[None]], recorder: Recorder) -> None:
        self._app = app
        self._recorder = recorder

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        """Answer a request; what the application raises is passed on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        ticket = self._recorder.begin(scope["method"], _asgi_target(scope), _asgi_headers(scope))
        status = 0

        async def receive_seen() -> Message:
            message = await receive()
            if message["type"] == "http.request":
                ticket.body(message.get("body", b""))
            return message

        async def send_seen(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive_seen, send_seen)
        finally:
            ticket.answered(status)


class WsgiRecorder:
    """Records the requests of a WSGI application: ``app = WsgiRecorder(app, recorder)``."""

    def __init__(self, app: Callable[..., Iterable[bytes]], recorder: Recorder) -> None:
        self._app = app
        self._recorder = recorder

    def __call__(self, environ: MutableMapping[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        """Answer a request; what the application raises is passed on."""
        ticket = self._recorder.begin(
            environ["REQUEST_METHOD"], _wsgi_target(environ), _wsgi_headers(environ)
        )
        environ["wsgi.input"] = _SeenInput(environ["wsgi.input"], ticket)
        status = 0

        def start_seen(line: str, *rest: Any, **more: Any) -> Any:
            nonlocal status
            code = line.partition(" ")[0]
            status = int(code) if code.isdecimal() else 0
            return start_response(line, *rest, **more)

        try:
            answer = self._app(environ, start_seen)
        except BaseException:
            ticket.answered(status)
            raise
        return _SeenAnswer(answer, lambda: ticket.answered(status))


class _SeenAnswer:
    """The chunks of an answer, one for one; at their end, or when they are closed, the request has ended."""

    def __init__(self, answer: Iterable[bytes], ended: Callable[[], None]) -> None:
        self._answer = answer
        self._ended = ended

    def __iter__(self) -> Iterator[bytes]:
        yield from self._answer
        self._ended()

    def close(self) -> None:
        """Close the application's answer, as the server asks to."""
        try:
            if hasattr(self._answer, "close"):
                self._answer.close()
        finally:
            self._ended()


class _SeenInput:
    """The body of a request, of which a ticket is shown what the application reads."""

    def __init__(self, stream: Any, ticket: Ticket) -> None:
        self._stream = stream
        self._ticket = ticket

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
        self._ticket.body(chunk)
        return chunk


def _asgi_target(scope: Any) -> str:
    raw = scope.get("raw_path")
    path = raw.partition(b"?")[0].decode("latin-1") if raw else quote(scope["path"], safe=_SAFE)
    query = scope.get("query_string", b"").decode("latin-1")
    return f"{path}?{query}" if query else path


def _asgi_headers(scope: Any) -> list[tuple[str, str]]:
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]]


def _wsgi_target(environ: MutableMapping[str, Any]) -> str:
    path = environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", "")
    quoted = quote(path.encode("latin-1"), safe=_SAFE) or "/"
    query = environ.get("QUERY_STRING", "")
    return f"{quoted}?{query}" if query else quoted


def _wsgi_headers(environ: MutableMapping[str, Any]) -> list[tuple[str, str]]:
    headers = [
        (key[5:].replace("_", "-").title(), value)
        for key, value in environ.items()
        if key.startswith("HTTP_")
    ]
    for key in ("CONTENT_TYPE", "CONTENT_LENGTH"):
        if environ.get(key):
            headers.append((key.replace("_", "-").title(), environ[key]))
    return headers
