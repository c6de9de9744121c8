"""Proxies between the workers and the store or the broker, which fail on demand."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable
from typing import Literal, Self

from loadgen.bench.faults.relay import BUSY, Answer, RelayServer
from pipeline.processes import TaskSupervisor

StoreFault = Literal["refused", "lost", "slow"]
"""Answer 503 without doing it; do it and drop the answer; do it after a while."""

Decide = Callable[[bool], StoreFault | None]
"""Returns what happens to a request; takes whether the request is an INSERT."""

_CHUNK = 1 << 16


class StoreProxy:
    """An HTTP proxy in front of the store; ``decide`` may be set at any moment.

    The proxy's address stays the same when the store restarts, perhaps on another port.
    """

    def __init__(self, upstream: str, slow_s: float = 3.0) -> None:
        self.upstream = upstream
        self.slow_s = slow_s
        self.decide: Decide = lambda _insert: None
        self.faults = 0
        """Requests that were disturbed by decision of the proxy."""
        self.inserts_refused = 0
        """Inserts that the store itself answered with an error."""
        self.unreached = 0
        """Requests that the store did not answer: it was away, or went away meanwhile."""
        self.waiting = 0
        """Requests that the store has not answered yet."""
        self.url = ""
        self._lock = threading.Lock()

    def chosen(self, insert: bool) -> StoreFault | None:
        """Decide on a request, and count the request if it is disturbed."""
        with self._lock:
            fault = self.decide(insert)
            self.faults += fault is not None
            return fault

    def _treat(self, insert: bool, forward: Callable[[], Answer]) -> Answer | None:
        fault = self.chosen(insert)
        if fault == "refused":
            return BUSY
        if fault == "slow":
            time.sleep(self.slow_s)
        answer = self._forwarded(insert, forward)
        return None if fault == "lost" else answer

    def _forwarded(self, insert: bool, forward: Callable[[], Answer]) -> Answer:
        with self._lock:
            self.waiting += 1
        answer: Answer | None = None
        try:
            answer = forward()
            return answer
        finally:
            with self._lock:
                self.waiting -= 1
                self.unreached += answer is None
                self.inserts_refused += insert and answer is not None and answer[0] >= 400

    def __enter__(self) -> Self:
        self._server = RelayServer(lambda: self.upstream, self._treat)
        TaskSupervisor().run_thread("relay", self._server.serve_forever, threading.Event())
        self.url = self._server.url
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class BrokerProxy:
    """A TCP proxy that can fall silent: connections stay open, and nothing passes in either direction.

    Data that had not passed when ``open_again`` is called are dropped with their connection, so that no
    request arrives after its sender has given up.
    """

    def __init__(self, port: int) -> None:
        self._upstream = port
        self.port = 0
        self.held_bytes = 0
        """Bytes that were held while nothing passed."""
        self.cut = 0
        """Connections that were dropped."""
        self._passing = threading.Event()
        self._passing.set()
        self._ready = threading.Event()
        self._writers: set[asyncio.StreamWriter] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None

    def __enter__(self) -> Self:
        serve = TaskSupervisor().run_thread
        self._thread = serve("proxy", lambda: asyncio.run(self._serve()), threading.Event())
        self._ready.wait()
        return self

    def __exit__(self, *_: object) -> None:
        assert self._loop is not None
        assert self._stop is not None
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def point_to(self, port: int) -> None:
        """Send new connections to another port."""
        self._upstream = port

    def fall_silent(self) -> None:
        """Let nothing pass from now on; connections stay open."""
        self._passing.clear()

    def open_again(self) -> None:
        """Drop the open connections and let new ones pass."""
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._drop)
        self._passing.set()

    def _drop(self) -> None:
        self.cut += len(self._writers)
        for writer in list(self._writers):
            writer.transport.abort()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        self._drop()
        server.close()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            while not self._passing.is_set():  # connected, as far as the client sees
                await asyncio.sleep(0.1)
            other_reader, other_writer = await asyncio.open_connection("127.0.0.1", self._upstream)
        except OSError:
            writer.transport.abort()
            self._writers.discard(writer)
            return
        self._writers.add(other_writer)
        try:
            await asyncio.gather(self._pump(reader, other_writer), self._pump(other_reader, writer))
        finally:
            for stream in (writer, other_writer):
                stream.transport.abort()
                self._writers.discard(stream)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(_CHUNK):
                if not self._passing.is_set():
                    self.held_bytes += len(data)
                while not self._passing.is_set():
                    await asyncio.sleep(0.1)
                    if writer.transport.is_closing():
                        return
                writer.write(data)
                await writer.drain()
            writer.transport.abort()
