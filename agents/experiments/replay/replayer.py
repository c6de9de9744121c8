"""The open-loop replayer: sends each request to both sides when it is due, without waiting for answers."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter

from agents.experiments.replay.body import digests_of
from agents.experiments.replay.connection import Address, Connection, Pool, ReplayedAnswer, request_head
from agents.experiments.replay.plan import SAFE_METHODS, PlannedRequest
from agents.experiments.replay.timing import server_timings
from agents.experiments.replay.trace import Trace
from pipeline.model.errors import ConfigError

_BURST = 4
"""Requests that a late replayer sends before it reads answers again."""

_START_S = 0.05


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
        self._send(pair, [await self._connected(pair, side) for side in range(len(self._pools))])

    async def _connected(self, pair: _Pair, side: int) -> Connection | None:
        """Return a connection to a side; without one, the side alone has not answered."""
        try:
            return await self._pools[side].take()
        except (OSError, TimeoutError) as error:
            now = perf_counter()
            why = getattr(error, "strerror", None) or error or "none in time"
            pair.answers[side] = ReplayedAnswer(sent=now, ended=now, error=f"no connection: {why}")
            return None

    def _send(self, pair: _Pair, connections: Sequence[Connection | None]) -> None:
        """Write a request to all sides, one right after the other; which is first alternates."""
        data = [self._bytes(pair.request, side, pair.trace) for side in range(len(connections))]
        self._sent_pairs += 1
        order = range(len(connections)) if self._sent_pairs % 2 else reversed(range(len(connections)))
        for side in order:
            if connection := connections[side]:
                self._write(pair, side, connection, data[side])
        if pair.connections:
            loop = asyncio.get_running_loop()
            pair.timeout = loop.call_later(self._config.timeout_s, _give_up, pair, self._config.timeout_s)
        self._end_if_answered(pair)

    def _write(self, pair: _Pair, side: int, connection: Connection, data: bytes) -> None:
        pair.connections[side] = connection
        is_head = pair.request.method == "HEAD"
        connection.send(data, head_only=is_head, done=lambda answer: self._take(pair, side, answer))

    async def _send_again(self, pair: _Pair, side: int) -> None:
        if connection := await self._connected(pair, side):
            self._write(pair, side, connection, self._bytes(pair.request, side, pair.trace))
        else:
            self._end_if_answered(pair)

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
        """Take an answer; a safe request on a connection that a server had given up is sent once more."""
        if answer.is_stale and pair.request.method in SAFE_METHODS and side not in pair.resent:
            pair.resent.add(side)
            task = asyncio.ensure_future(self._send_again(pair, side))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            return
        pair.answers[side] = answer
        self._end_if_answered(pair)

    def _end_if_answered(self, pair: _Pair) -> None:
        if len(pair.answers) < len(self._pools) or pair.is_ended:
            return
        pair.is_ended = True
        if pair.timeout:
            pair.timeout.cancel()
        if pair.answered:
            pair.answered.set_result(None)
            if self._sessions.get(pair.request.session) is pair.answered:
                del self._sessions[pair.request.session]
        answers = [pair.answers[side] for side in range(len(self._pools))]
        digests = digests_of(answers)
        served = [self._served(pair, answer, digest) for answer, digest in zip(answers, digests, strict=True)]
        pair.ended(Exchange(pair.request, pair.index, tuple(served)))

    def _served(self, pair: _Pair, answer: ReplayedAnswer, digest: bytes) -> Served:
        names = self._config.timings
        return Served(
            status=answer.status,
            latency_s=answer.ended - pair.due,
            lag_s=answer.sent - pair.due,
            sent=answer.sent,
            digest=digest,
            timings=server_timings(answer.header("Server-Timing"), names) if names else (),
            error=answer.error,
        )


@dataclass(slots=True)
class _Pair:
    request: PlannedRequest
    index: int
    due: float
    trace: bytes
    ended: Callable[[Exchange], None]
    answers: dict[int, ReplayedAnswer] = field(default_factory=dict)
    connections: dict[int, Connection] = field(default_factory=dict)
    resent: set[int] = field(default_factory=set)
    answered: asyncio.Future[None] | None = None
    timeout: asyncio.TimerHandle | None = None
    is_ended: bool = False


def _give_up(pair: _Pair, timeout_s: float) -> None:
    for side, connection in list(pair.connections.items()):
        if side not in pair.answers:
            pair.resent.add(side)
            connection.give_up(f"no answer in {timeout_s:g} s")
