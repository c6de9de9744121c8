"""HTTP relay before a store, with a hook that decides on each request."""

from __future__ import annotations

import contextlib
import http.client
import sys
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote_plus, urlsplit

Answer = tuple[int, Sequence[tuple[str, str]], bytes]
"""Status, headers and body."""

Treat = Callable[[bool, Callable[[], Answer]], Answer | None]
"""Takes whether a request is an INSERT, and how to have it answered; None drops the answer."""

BUSY: Answer = (503, [], b"busy")

_HOP_HEADERS = frozenset({"content-length", "transfer-encoding", "connection", "host", "expect"})
_FORWARD_S = 120.0


class RelayServer(ThreadingHTTPServer):
    """Listens on a free port of loopback; ``upstream`` may move from one request to the next."""

    daemon_threads = True

    def __init__(self, upstream: Callable[[], str], treat: Treat) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.upstream = upstream
        self.treat = treat
        self.url = f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore errors of clients that are gone: clients are often killed here."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # otherwise the body, sent after the head, waits 40 ms to be acknowledged
    server: RelayServer

    def do_GET(self) -> None:
        self._pass(b"")

    def do_POST(self) -> None:
        self._pass(self._body())

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def _pass(self, body: bytes) -> None:
        insert = "INSERT INTO" in unquote_plus(self.path) or b"INSERT INTO" in body[:500]
        answer: Answer | None = None
        # If the store is away, so is its answer.
        with contextlib.suppress(OSError, http.client.HTTPException):
            answer = self.server.treat(insert, lambda: self._forward(body))
        if answer is None:
            self.close_connection = True
        else:
            self._answer(*answer)

    def _forward(self, body: bytes) -> Answer:
        where = urlsplit(self.server.upstream())
        connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=_FORWARD_S)
        try:
            headers = {k: v for k, v in self.headers.items() if k.lower() not in _HOP_HEADERS}
            connection.request(self.command, self.path, body or None, headers)
            answer = connection.getresponse()
            return answer.status, answer.getheaders(), answer.read()
        finally:
            connection.close()

    def _answer(self, status: int, headers: Sequence[tuple[str, str]], content: bytes) -> None:
        self.send_response_only(status)
        for name, value in headers:
            if name.lower() not in _HOP_HEADERS:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        with contextlib.suppress(OSError):  # the client was killed
            self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        pass
