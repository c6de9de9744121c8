"""Releases of an application under load: access logs, and the CPU time of each period."""

from __future__ import annotations

import http.client
import random
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

import numpy as np

from agents.logs import RequestTally, RequestTypes, TallyOptions, line_format
from loadgen.applications.catalogue import CatalogueApplication, ClientRequest
from loadgen.engines.kafka.probe import free_ports
from pipeline.model import FloatArray
from pipeline.model.errors import SmidgenError
from pipeline.processes import Child

CPU = "cpu"

PERIOD_S = 30.0
"""Seconds of the log's clock. A period ends once its requests are answered: an hour's log takes a minute."""

BEGIN_S = 1_800_000_000.0
FORMAT = '[$msec] "$request" $status $request_time'
WARM_UP = 3
"""Requests of each kind before the first period."""

STARTED_S = 120.0
ANSWERED_S = 60.0
Ask = Callable[[ClientRequest], tuple[int, float]]

SERVE = Path(__file__).with_name("serve.py")


class NotServed(SmidgenError):
    """An application does not start, or does not answer."""


@dataclass(frozen=True, slots=True)
class Injection:
    """A regression in a release.

    Args:
        kind: A member of catalogue.KINDS.
        function: The function that gets slower.
        milliseconds: Extra CPU time of each call.
    """

    kind: str
    function: str
    milliseconds: float


@dataclass(frozen=True, slots=True)
class Recorded:
    """Observations of a release under load.

    Args:
        lines: Lines of the access log in FORMAT, in the order of time.
        starts: (periods,) epoch seconds.
        cpu: (periods,) CPU seconds of the process.
        durations: Request line → seconds that each request took.
        keys: Request line → key of the application's requests.
    """

    lines: list[str]
    starts: FloatArray
    cpu: FloatArray
    durations: dict[str, list[float]]
    keys: dict[str, str]

    def counted(self, types: RequestTypes) -> dict[str, FloatArray]:
        """Count the log's requests by type, as `smidgen agent logs --table` does.

        Returns:
            Column → (periods,) values: ``time`` in epoch seconds, ``CPU`` in seconds, and each type's number
            of requests. The first and the last period, which the log may cut, are left out.
        """
        tally = RequestTally(TallyOptions("bench", "bench", period_s=PERIOD_S), line_format(FORMAT), types)
        tally.add(self.lines)
        columns = {name: np.asarray(column) for name, column in tally.table().items()}
        return columns | {CPU: self.cpu[np.searchsorted(self.starts, columns["time"])]}

    def write(self, folder: Path, name: str) -> None:
        """Write the access log, and the CPU time as a table that `smidgen release requests` reads."""
        (folder / f"{name}.log").write_text("\n".join([*self.lines, ""]), encoding="utf-8")
        rows = (f"{start:.0f},{cpu:.6f}" for start, cpu in zip(self.starts, self.cpu, strict=True))
        (folder / f"{name}-cpu.csv").write_text("\n".join([f"time,{CPU}", *rows, ""]), encoding="utf-8")


@dataclass(frozen=True, slots=True)
class RunningSide:
    """A release that runs beside another one.

    Args:
        folder: New folder for the release's data.
        periods: Keys of the requests of each period.
        injection: The regression in the release; None without one.
        connections: Number of requests under way at a time.
    """

    folder: Path
    periods: Sequence[Sequence[str]]
    injection: Injection | None = None
    connections: int = 1


def record(
    application: CatalogueApplication, python: Path, sides: Sequence[RunningSide], advance: Callable[[], None]
) -> list[Recorded]:
    """Run releases side by side and send the requests of each period to them.

    Periods of the releases alternate, so that other load of the machine affects all of them equally.

    Args:
        application: The application to run.
        python: Python interpreter of the environment with the application's package.
        sides: The releases, all with the same number of periods.
        advance: Called after each period of each side.

    Raises:
        NotServed: a release does not start, or does not answer.
    """
    with ExitStack() as stack:
        served = [stack.enter_context(_served(application, python, side)) for side in sides]
        recorders = [_Recorder(application, *arguments) for arguments in served]
        for recorder in recorders:
            stack.callback(recorder.close)
        for number in range(len(sides[0].periods)):
            turns = list(zip(recorders, sides, strict=True))
            for recorder, side in turns[:: -1 if number % 2 else 1]:
                recorder.add(number, side.periods[number])
                advance()
        return [recorder.recorded() for recorder in recorders]


class _Recorder:
    """Sender of requests to one release, which keeps the observations of it."""

    def __init__(self, application: CatalogueApplication, pid: int, connections: Sequence[Ask]) -> None:
        self._application = application
        self._pid = pid
        self._free: SimpleQueue[Ask] = SimpleQueue()
        for ask in connections:
            self._free.put(ask)
        self._senders = ThreadPoolExecutor(len(connections))
        self._draw = random.Random(1)
        self._lines: list[str] = []
        self._cpu: list[float] = []
        self._durations: dict[str, list[float]] = {}
        self._keys: dict[str, str] = {}
        for request in application.begin:
            self._ask(request)
        for make in application.requests.values():
            for _ in range(WARM_UP):
                self._ask(make(self._draw))

    def add(self, number: int, keys: Sequence[str]) -> None:
        """Send the requests of a period, and wait until all are answered."""
        begin, used = BEGIN_S + number * PERIOD_S, _cpu_s(self._pid)
        requests = [self._application.requests[key](self._draw) for key in keys]
        answers = list(self._senders.map(self._ask, requests))
        self._cpu.append(_cpu_s(self._pid) - used)
        for position, (key, request, (status, took)) in enumerate(zip(keys, requests, answers, strict=True)):
            at = begin + PERIOD_S * position / len(keys)
            self._lines.append(f'[{at:.3f}] "{request.line}" {status} {took:.6f}')
            self._durations.setdefault(request.line, []).append(took)
            self._keys[request.line] = key

    def close(self) -> None:
        """End the sending threads; a thread that waits for an answer ends when the application does."""
        self._senders.shutdown(wait=False, cancel_futures=True)

    def _ask(self, request: ClientRequest) -> tuple[int, float]:
        """Send a request over a connection that is free."""
        ask = self._free.get()
        try:
            return ask(request)
        finally:
            self._free.put(ask)

    def recorded(self) -> Recorded:
        """Return the observations of the release."""
        starts = BEGIN_S + PERIOD_S * np.arange(len(self._cpu), dtype=np.float64)
        return Recorded(self._lines, starts, np.asarray(self._cpu), self._durations, self._keys)


@contextmanager
def _served(
    application: CatalogueApplication, python: Path, side: RunningSide
) -> Iterator[tuple[int, list[Ask]]]:
    """Run the application; yield its process id and one function per connection that sends a request."""
    (port,) = free_ports("127.0.0.1", 1)
    folder, injection = side.folder, side.injection
    more = [injection.kind, injection.function, str(injection.milliseconds)] if injection else []
    command = [str(python), str(SERVE), application.name, str(port), str(folder), *more]
    child = Child(command)
    child.drain()
    probe = next(iter(application.requests.values()))(random.Random(0))
    with ExitStack() as stack:
        stack.callback(child.stop)
        asks = [stack.enter_context(_connected(application, port, child)) for _ in range(side.connections)]
        if not child.wait_ready(lambda: _is_answered(asks[0], probe), STARTED_S):
            raise NotServed(f"{application.name} does not start: {child.last_words() or 'it said nothing'}")
        yield child.pid, asks


@contextmanager
def _connected(application: CatalogueApplication, port: int, child: Child) -> Iterator[Ask]:
    """Yield a function that sends requests to an application over one connection."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=ANSWERED_S)

    def ask(request: ClientRequest) -> tuple[int, float]:
        begin = time.perf_counter()
        try:
            connection.request(
                request.method, request.path, request.body.encode() or None, dict(request.headers)
            )
            answer = connection.getresponse()
            answer.read()
        except (OSError, http.client.HTTPException) as error:
            connection.close()  # without this header the application takes no other request
            last_words = child.last_words() or "nothing"
            raise NotServed(f"{application.name}: {request.line}: {error}; it said: {last_words}") from None
        return answer.status, time.perf_counter() - begin

    try:
        yield ask
    finally:
        connection.close()


def _is_answered(ask: Ask, request: ClientRequest) -> bool:
    try:
        ask(request)
    except NotServed:
        return False
    return True


def _cpu_s(pid: int) -> float:
    """Return the CPU seconds of a process with all its threads, including threads that have ended (Linux)."""
    return time.clock_gettime(~pid << 3 | 2)  # clock_getcpuclockid(3): the process's clock of CPU time
