"""The open-loop replayer: sends each request to both sides when it is due, without waiting for answers."""

from __future__ import annotations

import asyncio
import gc
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter

from agents.experiments.replay.connection import Address, Connection, Pool, ReplayedAnswer, request_head
from agents.experiments.replay.plan import PlannedRequest
from agents.experiments.replay.timing import server_timings
from agents.experiments.replay.trace import Trace
from pipeline.model.errors import ConfigError

_BURST = 4
"""Requests that a late replayer sends before it reads answers again."""

_START_S = 0.05
_DIGEST_BYTES = 8


@dataclass(frozen=True, slots=True)
class ReplayConfig:
    """Settings for sending requests."""

    connections: int = 256
    """Most connections to each side; a request without a free one waits, which counts as latency."""
    opened: int = 16
    """Connections to each side that are open before the first request."""
    timeout_s: float = 30.0
    timings: tuple[str, ...] = ()
    """Metrics of the header Server-Timing that are kept of each answer."""
    slices: int = 30
    """Number of slices of a replay; CPU time is read at the end of each."""


@dataclass(frozen=True, slots=True)
class Served:
    """Answer of one side to one request."""

    status: int  # 0: no answer
    latency_s: float  # seconds from when the request was due to the answer's last byte
    lag_s: float  # seconds from when it was due to when it was sent
    sent: float  # of time.perf_counter
    digest: bytes = b""
    timings: tuple[float | None, ...] = ()  # milliseconds
    error: str = ""


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request with the answer of each side."""

    request: PlannedRequest
    index: int
    served: tuple[Served, ...]  # side A first


@dataclass(frozen=True, slots=True)
class ReplaySlice:
    """A slice of a replay: requests sent, and CPU seconds of each side, up to its end."""

    requests: int
    cpu_s: tuple[float | None, ...]


@dataclass(slots=True)
class Replayed:
    """Measurements of a replay."""

    exchanges: list[Exchange] = field(default_factory=list)  # by index, including warm-up
    slices: list[ReplaySlice] = field(default_factory=list)
    """Ends of slices; the first is the end of the warm-up."""
    sending_s: float = 0.0
    """Seconds from the first due time to the last request sent."""


class Replayer:
    """Sends plans to one side or two.

    Args:
        sides: Addresses, side A first.
        config: How.
        read_cpu: Returns CPU seconds of each side so far, None for one that is not known.
    """

    def __init__(
        self,
        sides: Sequence[Address],
        config: ReplayConfig | None = None,
        read_cpu: Callable[[], tuple[float | None, ...]] | None = None,
    ) -> None:
        self._config = config or ReplayConfig()
        self._pools = [Pool(side, self._config.connections) for side in sides]
        self._read_cpu = read_cpu
        self._heads: list[dict[int, bytes]] = [{} for _ in sides]
        self._sessions: dict[str, asyncio.Future[None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._sent_pairs = 0

    async def run(self, plan: Sequence[PlannedRequest], trace: Trace) -> Replayed:
        """Send a plan and wait for the last answer or its timeout.

        Raises:
            ConfigError: a side cannot be reached.
        """
        await self._open()
        collecting = gc.isenabled()
        gc.disable()  # garbage collection takes tens of milliseconds once there are many exchanges
        try:
            return await self._run(plan, trace)
        finally:
            if collecting:
                gc.enable()

    def close(self) -> None:
        """Close all connections."""
        for pool in self._pools:
            pool.close()

    async def _run(self, plan: Sequence[PlannedRequest], trace: Trace) -> Replayed:
        result = Replayed()
        pending = [0]
        all_ended = asyncio.Event()

        def ended(exchange: Exchange) -> None:
            result.exchanges.append(exchange)
            pending[0] -= 1
            if not pending[0]:
                all_ended.set()

        start = perf_counter() + _START_S
        ends = self._slice_ends(plan)
        last = start
        for index, request in enumerate(plan):
            if index in ends:
                self._end_slice(index, result)
            due = start + request.offset_s
            while (left := due - perf_counter()) > 0:
                await asyncio.sleep(left)
            pending[0] += 1
            all_ended.clear()
            self._begin(_Pair(request, index, due, trace.header(index), ended))
            last = perf_counter()
            if index % _BURST == 0:
                await asyncio.sleep(0)
        result.sending_s = last - start
        if pending[0]:
            await all_ended.wait()
        self._end_slice(len(plan), result)
        result.exchanges.sort(key=lambda exchange: exchange.index)
        return result

    async def _open(self) -> None:
        for pool in self._pools:
            try:
                await pool.open_up(self._config.opened)
            except (OSError, TimeoutError) as error:
                why = getattr(error, "strerror", None) or error or "no connection in time"
                raise ConfigError(f"{pool.address.authority}: {why}") from None

    def _slice_ends(self, plan: Sequence[PlannedRequest]) -> set[int]:
        warm_up = sum(request.warm_up for request in plan)
        measured = len(plan) - warm_up
        slices = max(1, min(self._config.slices, measured))
        return {warm_up + round(part * measured / slices) for part in range(slices)}

    def _end_slice(self, requests: int, result: Replayed) -> None:
        if self._read_cpu:
            result.slices.append(ReplaySlice(requests, self._read_cpu()))

    def _begin(self, pair: _Pair) -> None:
        """Send a request at once if its session and connections allow it, else as soon as they do."""
        session = pair.request.session
        before = self._sessions.get(session) if session else None
        if session:
            pair.answered = asyncio.get_running_loop().create_future()
            self._sessions[session] = pair.answered
        connections = None if before else self._free()
        if connections:
            self._send(pair, connections)
            return
        task = asyncio.ensure_future(self._send_later(pair, before))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _free(self) -> list[Connection] | None:
        connections: list[Connection] = []
        for pool in self._pools:
            connection = pool.free()
            if connection is None:
                for pool_used, taken in zip(self._pools, connections, strict=False):
                    pool_used.release(taken)
                return None
            connections.append(connection)
        return connections

    async def _send_later(self, pair: _Pair, before: asyncio.Future[None] | None) -> None:
        if before:
            await before
        taken: list[Connection] = []
        try:
            for pool in self._pools:
                taken.append(await pool.take())
        except (OSError, TimeoutError) as error:
            for pool, connection in zip(self._pools, taken, strict=False):
                pool.release(connection)
            now = perf_counter()
            for side in range(len(self._pools)):
                self._take(pair, side, ReplayedAnswer(sent=now, ended=now, error=f"no connection: {error}"))
            return
        self._send(pair, taken)

    def _send(self, pair: _Pair, connections: Sequence[Connection]) -> None:
        """Write a request to all sides, one right after the other; which is first alternates."""
        sides = range(len(connections))
        request = pair.request
        data = [self._bytes(request, side, pair.trace) for side in sides]
        self._sent_pairs += 1
        order = sides if self._sent_pairs % 2 else reversed(sides)
        for side in order:
            connections[side].send(
                data[side],
                head_only=request.method == "HEAD",
                done=lambda answer, side=side: self._take(pair, side, answer),  # type: ignore[misc]
            )
        pair.timeout = asyncio.get_running_loop().call_later(
            self._config.timeout_s, _close_unanswered, pair, connections
        )

    def _bytes(self, request: PlannedRequest, side: int, trace: bytes) -> bytes:
        head = self._heads[side].get(request.source)
        if head is None:
            address = self._pools[side].address
            headers = [pair for pair in request.headers if pair[0].lower() != "traceparent"]
            target = address.prefix + request.target
            head = request_head(request.method, target, address.authority, headers, len(request.body))
            self._heads[side][request.source] = head
        return head + trace + request.body

    def _take(self, pair: _Pair, side: int, answer: ReplayedAnswer) -> None:
        pair.served[side] = Served(
            status=answer.status,
            latency_s=answer.ended - pair.due,
            lag_s=answer.sent - pair.due,
            sent=answer.sent,
            digest=hashlib.blake2b(answer.body, digest_size=_DIGEST_BYTES).digest(),
            timings=server_timings(answer.header("Server-Timing"), self._config.timings)
            if self._config.timings
            else (),
            error=answer.error,
        )
        if len(pair.served) < len(self._pools):
            return
        if pair.timeout:
            pair.timeout.cancel()
        if pair.answered:
            pair.answered.set_result(None)
            if self._sessions.get(pair.request.session) is pair.answered:
                del self._sessions[pair.request.session]
        served = tuple(pair.served[number] for number in range(len(self._pools)))
        pair.ended(Exchange(pair.request, pair.index, served))


@dataclass(slots=True)
class _Pair:
    request: PlannedRequest
    index: int
    due: float
    trace: bytes
    ended: Callable[[Exchange], None]
    served: dict[int, Served] = field(default_factory=dict)
    answered: asyncio.Future[None] | None = None
    timeout: asyncio.TimerHandle | None = None


def _close_unanswered(pair: _Pair, connections: Sequence[Connection]) -> None:
    for side, connection in enumerate(connections):
        if side not in pair.served:
            connection.close()
