"""Stands between producers and a broker and loses confirmations: the broker has a message, nobody knows."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Self

_PRODUCE = 0


class LosingProxy:
    """Passes Kafka's protocol on; the answers to chosen produce requests (from 1) end the connection instead.

    Give its address to the broker as the advertised one, and the broker's own to ``upstream``.
    """

    def __init__(self, loses: Callable[[int], bool]) -> None:
        self._loses = loses
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._lock = threading.Lock()
        self.port: int = self._listener.getsockname()[1]
        self.upstream = ("", 0)
        self.produced = 0
        self.lost = 0

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):  # closed
            while True:
                client, _ = self._listener.accept()
                try:
                    server = socket.create_connection(self.upstream)
                except OSError:
                    client.close()
                    continue
                waiting: dict[int, int] = {}  # correlation id → number of the produce request
                threading.Thread(target=self._requests, args=(client, server, waiting), daemon=True).start()
                threading.Thread(target=self._answers, args=(server, client, waiting), daemon=True).start()

    def _requests(self, client: socket.socket, server: socket.socket, waiting: dict[int, int]) -> None:
        while (frame := _frame(client)) is not None:
            kind, _, correlation = struct.unpack_from(">hhi", frame, 4)
            if kind == _PRODUCE:
                with self._lock:
                    self.produced += 1
                    waiting[correlation] = self.produced
            with suppress(OSError):
                server.sendall(frame)
        _close(client, server)

    def _answers(self, server: socket.socket, client: socket.socket, waiting: dict[int, int]) -> None:
        while (frame := _frame(server)) is not None:
            (correlation,) = struct.unpack_from(">i", frame, 4)
            number = waiting.pop(correlation, None)
            if number is not None and self._loses(number):
                with self._lock:
                    self.lost += 1
                break
            with suppress(OSError):
                client.sendall(frame)
        _close(client, server)


def _frame(source: socket.socket) -> bytes | None:
    """Return the next request or answer with its length before it; None at the end."""
    head = _exactly(source, 4)
    if head is None:
        return None
    body = _exactly(source, struct.unpack(">i", head)[0])
    return None if body is None else head + body


def _exactly(source: socket.socket, count: int) -> bytes | None:
    found = b""
    while len(found) < count:
        try:
            part = source.recv(count - len(found))
        except OSError:
            return None
        if not part:
            return None
        found += part
    return found


def _close(*ends: socket.socket) -> None:
    for end in ends:
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
        end.close()
