"""Minimal HTTP/1.1 client for replays: one request at a time on each connection.

Times are taken right at the write and at the answer's last byte. A full client takes four times as long for a
request, and so could not keep pace.
"""

from __future__ import annotations

import asyncio
import re
import ssl
import string
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from urllib.parse import quote, urlsplit

from pipeline.model.errors import ConfigError

MAX_HEAD_BYTES = 2**16
MAX_BODY_BYTES = 64 * 2**20
"""Largest answer; a larger one counts as broken off."""

CONNECT_S = 10.0

STALE_S = 0.5
"""Seconds without a request after which a server may close a connection just as the next one is sent."""

_HEAD_END = re.compile(rb"\r?\n\r?\n")
"""A line feed alone ends a line, too (RFC 9112, 2.2)."""

_CHUNK_SIZE = re.compile(rb"[0-9a-fA-F]{1,16}")


@dataclass(frozen=True, slots=True)
class Address:
    """Address of one side."""

    host: str
    port: int
    authority: str  # for the header Host
    prefix: str = ""  # prefix of every path
    tls: bool = False


def address_of_url(url: str) -> Address:
    """Return the address of ``http://host:port``.

    Raises:
        ConfigError: it is no such address.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ConfigError(f"{url}: should be http://HOST:PORT") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise ConfigError(f"{url}: should be http://HOST:PORT")
    tls = parts.scheme == "https"
    authority = parts.netloc.rpartition("@")[2]
    return Address(parts.hostname, port or (443 if tls else 80), authority, parts.path.rstrip("/"), tls)


@dataclass(slots=True)
class ReplayedAnswer:
    """Answer to one request. Times are of ``time.perf_counter``."""

    status: int = 0  # 0: no answer
    sent: float = 0.0
    ended: float = 0.0
    head: bytes = b""
    body: bytes = b""
    error: str = ""
    is_stale: bool = False
    """True: the connection had been idle, and was closed before any byte of the answer."""

    def header(self, name: str) -> list[str]:
        """Return the values of a header."""
        wanted = name.lower().encode("latin-1")
        lines = (line.partition(b":") for line in self.head.split(b"\n")[1:])
        return [value.strip().decode("latin-1") for key, _, value in lines if key.strip().lower() == wanted]


def request_head(
    method: str, target: str, authority: str, headers: Sequence[tuple[str, str]], body_bytes: int
) -> bytes:
    """Return the head of a request without the line that ends it.

    Texts of a recording stand for the bytes of Latin-1, or else for UTF-8, which a target has in percents.
    """
    lines = [f"{method} {_quoted(target)} HTTP/1.1"]
    if not any(name.lower() == "host" for name, _ in headers):
        lines.append(f"Host: {authority}")
    lines += [f"{name}: {value}" for name, value in headers]
    if body_bytes or method in ("POST", "PUT", "PATCH"):
        lines.append(f"Content-Length: {body_bytes}")
    return b"\r\n".join((*map(_encoded, lines), b""))


def _quoted(target: str) -> str:
    return target if _is_latin(target) else quote(target, safe=string.punctuation)


def _encoded(line: str) -> bytes:
    return line.encode("latin-1" if _is_latin(line) else "utf-8")


def _is_latin(text: str) -> bool:
    return max(text, default="") <= "\xff"


Done = Callable[[ReplayedAnswer], None]


class Connection(asyncio.Protocol):
    """One connection, with at most one pending request."""

    def __init__(self, released: Callable[[Connection], None]) -> None:
        self._released = released
        self._transport: asyncio.Transport | None = None
        self._answer: ReplayedAnswer | None = None
        self._done: Done | None = None
        self._buffer = bytearray()
        self._reader: _Reader | None = None
        self._no_body = False
        self._idle_since = 0.0
        self._was_idle = False
        self.open = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._idle_since = perf_counter()
        self.open = True

    def send(self, data: bytes, *, head_only: bool, done: Done) -> None:
        """Write a request; ``done`` is called with its answer."""
        assert self._transport
        assert self._done is None
        self._answer, self._done, self._no_body = ReplayedAnswer(sent=perf_counter()), done, head_only
        self._was_idle = self._answer.sent - self._idle_since >= STALE_S
        self._transport.write(data)

    def data_received(self, data: bytes) -> None:
        """Take bytes of the answer."""
        if self._answer is None:  # bytes without a request
            self.close()
            return
        self._buffer += data
        try:
            if self._reader is None and not self._read_head():
                return
            assert self._reader
            ended = self._reader.read(self._buffer)
        except ValueError as error:
            self._fail(str(error))
            return
        if ended:
            self._finish()

    def eof_received(self) -> bool:
        """End an answer that ends with its connection."""
        self.open = False
        if self._reader and self._reader.until_eof:
            self._finish()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail the pending request, if there is one."""
        self.open = False
        if self._answer is not None:
            self._answer.is_stale = self._was_idle and not self._reader and not self._buffer
            self._fail("the connection was closed")

    def give_up(self, error: str) -> None:
        """Fail the pending request, if there is one, without waiting for its answer any longer."""
        if self._answer is not None:
            self._fail(error)

    def close(self) -> None:
        """Close it."""
        self.open = False
        if self._transport:
            self._transport.abort()

    def _read_head(self) -> bool:
        assert self._answer
        while True:
            end = _HEAD_END.search(self._buffer)
            if not b"HTTP/1.".startswith(self._buffer[:7]):  # such as of TLS or HTTP/2, which has no end
                raise ValueError("the answer is no HTTP/1")
            if end is None:
                if len(self._buffer) > MAX_HEAD_BYTES:
                    raise ValueError("the head of the answer has no end")
                return False
            head = bytes(self._buffer[: end.start()])
            del self._buffer[: end.end()]
            status = head[9:12]
            if not status.isdigit() or status < b"100":
                raise ValueError("the answer is no HTTP/1")
            if status[0:1] != b"1":  # 1xx statuses such as 100 Continue come before the answer
                break
        self._answer.head, self._answer.status = head, int(status)
        self._reader = _reader_of(self._answer, no_body=self._no_body)
        return True

    def _finish(self) -> None:
        assert self._answer
        assert self._reader
        answer = self._answer
        answer.ended, answer.body = perf_counter(), bytes(self._reader.body)
        closes = any("close" in re.split(r"[\s,]+", value.lower()) for value in answer.header("Connection"))
        ends = closes or self._reader.until_eof or answer.head.startswith(b"HTTP/1.0")
        if ends or self._buffer:  # bytes beyond an answer belong to none, such as those of a body of 204
            self.close()
        self._hand_over(answer)

    def _fail(self, error: str) -> None:
        assert self._answer
        answer = self._answer
        answer.ended, answer.status, answer.error = perf_counter(), 0, error
        self.close()
        self._hand_over(answer)

    def _hand_over(self, answer: ReplayedAnswer) -> None:
        done, self._done, self._answer, self._reader = self._done, None, None, None
        self._buffer.clear()
        self._idle_since = perf_counter()
        assert done
        self._released(self)
        done(answer)


class _Reader:
    """Takes a body out of a buffer, by its length, in chunks, or to the end of the connection."""

    def __init__(self, length: int | None, *, chunked: bool) -> None:
        self._left = 0 if chunked else length
        self._chunked = chunked
        self._trailer = False
        self.until_eof = length is None and not chunked
        self.body = bytearray()

    def read(self, buffer: bytearray) -> bool:
        """Take the bytes of the buffer, and return whether the body is complete.

        Raises:
            ValueError: it is too large or no HTTP.
        """
        if len(self.body) + len(buffer) > MAX_BODY_BYTES:
            raise ValueError("the answer is too large")
        if self._chunked:
            return self._read_chunks(buffer)
        taken = len(buffer) if self._left is None else min(self._left, len(buffer))
        self.body += buffer[:taken]
        del buffer[:taken]
        if self._left is None:
            return False
        self._left -= taken
        if taken and not self._left and buffer.strip():
            raise ValueError("the answer is longer than its length")
        return not self._left

    def _read_chunks(self, buffer: bytearray) -> bool:
        while True:
            end = buffer.find(b"\n") + 1
            if not end:
                if len(buffer) > MAX_HEAD_BYTES:
                    raise ValueError("a chunk has no size")
                return False
            line = bytes(buffer[:end]).rstrip(b"\r\n")
            if self._trailer:
                del buffer[:end]
                if not line:
                    return True
                continue
            digits = line.partition(b";")[0].strip()
            if not _CHUNK_SIZE.fullmatch(digits):
                raise ValueError("a chunk has no size")
            size = int(digits, 16)
            if not size:
                self._trailer = True
                del buffer[:end]
                continue
            line_end = buffer.find(b"\n", end + size, end + size + 2)
            if line_end < 0:
                if len(buffer) >= end + size + 2:
                    raise ValueError("a chunk is longer than its size")
                return False
            self.body += buffer[end : end + size]
            del buffer[: line_end + 1]


def _reader_of(answer: ReplayedAnswer, *, no_body: bool) -> _Reader:
    if no_body or answer.status in (204, 304):
        return _Reader(0, chunked=False)
    if any("chunked" in value.lower() for value in answer.header("Transfer-Encoding")):
        return _Reader(None, chunked=True)
    lengths = {length.strip() for value in answer.header("Content-Length") for length in value.split(",")}
    if len(lengths) > 1 or not all(length.isascii() and length.isdigit() for length in lengths):
        raise ValueError("the answer has no single length")
    return _Reader(int(lengths.pop()) if lengths else None, chunked=False)


class Pool:
    """The connections to one side: as many as there are pending requests, up to a bound."""

    def __init__(self, address: Address, most: int) -> None:
        self._address = address
        self._most = most
        self._free: list[Connection] = []
        self._waiting: deque[asyncio.Future[Connection]] = deque()
        self._reopening: set[asyncio.Task[None]] = set()
        self._open = 0
        self._tls = ssl.create_default_context() if address.tls else None
        self.address = address

    def free(self) -> Connection | None:
        """Return an idle connection, None if there is none."""
        while self._free:
            connection = self._free.pop()
            if connection.open:
                return connection
            self._open -= 1
        return None

    async def take(self) -> Connection:
        """Return a connection: an idle one, a new one, or at the bound the next that becomes idle.

        Raises:
            OSError: the side cannot be reached.
        """
        waiting = self.free()
        if waiting:
            return waiting
        if self._open >= self._most:
            waiter: asyncio.Future[Connection] = asyncio.get_running_loop().create_future()
            self._waiting.append(waiter)
            return await waiter
        self._open += 1
        try:
            async with asyncio.timeout(CONNECT_S):
                _, connection = await asyncio.get_running_loop().create_connection(
                    lambda: Connection(self.release),
                    self._address.host,
                    self._address.port,
                    ssl=self._tls,
                )
        except BaseException:
            self._open -= 1
            raise
        return connection

    def release(self, connection: Connection) -> None:
        """Take a connection back; a closed one makes room for a new one."""
        if not connection.open:
            self._open -= 1
            if self._waiting:
                self._reopen(self._waiting.popleft())
            return
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(connection)
                return
        self._free.append(connection)

    def _reopen(self, waiter: asyncio.Future[Connection]) -> None:
        async def reopen() -> None:
            try:
                connection = await self.take()
            except (OSError, TimeoutError) as error:
                if not waiter.done():
                    waiter.set_exception(error)
                return
            if waiter.done():
                self.release(connection)
            else:
                waiter.set_result(connection)

        task = asyncio.ensure_future(reopen())
        self._reopening.add(task)
        task.add_done_callback(self._reopening.discard)

    async def open_up(self, count: int) -> None:
        """Open connections before they are needed.

        Raises:
            OSError: the side cannot be reached.
        """
        for connection in [await self.take() for _ in range(min(count, self._most))]:
            self.release(connection)

    def close(self) -> None:
        """Close all idle connections."""
        for connection in self._free:
            connection.close()
