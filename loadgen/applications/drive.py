"""One release of an application under load: its access log, and the CPU time of each period."""

from __future__ import annotations

import http.client
import random
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from agents.logs import RequestTally, RequestTypes, TallyOptions, line_format
from loadgen.applications.catalogue import Application, Request
from loadgen.kafka.probe import free_ports
from pipeline.errors import SmidgenError
from pipeline.model import FloatArray

CPU = "cpu"

PERIOD_S = 30.0
"""Of the log's clock. A period ends once its requests are answered, so that an hour's log takes a minute."""

BEGIN_S = 1_800_000_000.0
FORMAT = '[$msec] "$request" $status $request_time'
WARM_UP = 3
"""Requests of each kind before the first period."""

STARTED_S = 120.0
ANSWERED_S = 60.0
SERVE = Path(__file__).with_name("serve.py")


class NotServed(SmidgenError):
    """An application does not serve what is asked of it."""


@dataclass(frozen=True, slots=True)
class Injection:
    """A regression in a release.

    Args:
        kind: Of catalogue.KINDS.
        function: In which.
        milliseconds: CPU time that each call costs more.
    """

    kind: str
    function: str
    milliseconds: float


@dataclass(frozen=True, slots=True)
class Recorded:
    """What was seen of a release.

    Args:
        lines: Of the access log, in the order of time, as FORMAT has them.
        starts: (periods,) epoch seconds.
        cpu: (periods,) CPU seconds of the process.
        durations: Request line → seconds that each took.
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
        tally = RequestTally(TallyOptions("bench", period_s=PERIOD_S), line_format(FORMAT), types)
        tally.add(self.lines)
        columns = {name: np.asarray(column) for name, column in tally.table().items()}
        return columns | {CPU: self.cpu[np.searchsorted(self.starts, columns["time"])]}

    def write(self, folder: Path, name: str) -> None:
        """Write the access log, and the CPU time as a table that `smidgen release requests` reads."""
        (folder / f"{name}.log").write_text("\n".join([*self.lines, ""]), encoding="utf-8")
        rows = (f"{start:.0f},{cpu:.6f}" for start, cpu in zip(self.starts, self.cpu, strict=True))
        (folder / f"{name}-cpu.csv").write_text("\n".join([f"time,{CPU}", *rows, ""]), encoding="utf-8")


def record(
    application: Application,
    python: Path,
    folder: Path,
    periods: Sequence[Sequence[str]],
    injection: Injection | None,
    advance: Callable[[], None],
) -> Recorded:
    """Run a release, and send it the requests of each period one after the other.

    Args:
        application: What is run.
        python: That has its package.
        folder: For its data, new.
        periods: Keys of the requests of each.
        injection: What makes this release slower; None makes it equal.
        advance: Called after each period.

    Raises:
        NotServed: it does not start, or does not answer.
    """
    draw = random.Random(1)
    with _served(application, python, folder, injection) as (pid, ask):
        for request in application.begin:
            ask(request)
        for make in application.requests.values():
            for _ in range(WARM_UP):
                ask(make(draw))
        lines: list[str] = []
        cpu = []
        durations: dict[str, list[float]] = {}
        asked: dict[str, str] = {}
        for number, keys in enumerate(periods):
            begin, used = BEGIN_S + number * PERIOD_S, _cpu_s(pid)
            for place, key in enumerate(keys):
                request = application.requests[key](draw)
                status, took = ask(request)
                at = begin + PERIOD_S * place / len(keys)
                lines.append(f'[{at:.3f}] "{request.line}" {status} {took:.6f}')
                durations.setdefault(request.line, []).append(took)
                asked[request.line] = key
            cpu.append(_cpu_s(pid) - used)
            advance()
    return Recorded(lines, BEGIN_S + PERIOD_S * np.arange(len(periods)), np.asarray(cpu), durations, asked)


Ask = Callable[[Request], tuple[int, float]]


@contextmanager
def _served(
    application: Application, python: Path, folder: Path, injection: Injection | None
) -> Iterator[tuple[int, Ask]]:
    """Run the application; yield its process id and what asks it."""
    (port,) = free_ports("127.0.0.1", 1)
    more = [injection.kind, injection.function, str(injection.milliseconds)] if injection else []
    command = [str(python), str(SERVE), application.name, str(port), str(folder), *more]
    with (folder.parent / f"{folder.name}.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=ANSWERED_S)

    def ask(request: Request) -> tuple[int, float]:
        begin = time.perf_counter()
        try:
            connection.request(
                request.method, request.path, request.body.encode() or None, dict(request.headers)
            )
            answer = connection.getresponse()
            answer.read()
        except (OSError, http.client.HTTPException) as error:
            connection.close()  # it takes no other request otherwise
            raise NotServed(f"{application.name}: {request.line}: {error}{_last_line(log.name)}") from None
        return answer.status, time.perf_counter() - begin

    try:
        _wait_until_served(process, ask, application)
        yield process.pid, ask
    finally:
        connection.close()
        process.terminate()
        try:
            process.wait(10.0)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _last_line(log: str) -> str:
    lines = Path(log).read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return f"; its log ends: {lines[-1]}" if lines else ""


def _wait_until_served(process: subprocess.Popen[bytes], ask: Ask, application: Application) -> None:
    until = time.monotonic() + STARTED_S
    probe = next(iter(application.requests.values()))(random.Random(0))
    while True:
        try:
            ask(probe)
        except NotServed:
            if process.poll() is not None or time.monotonic() > until:
                raise
            time.sleep(0.1)
        else:
            return


def _cpu_s(pid: int) -> float:
    """Return the CPU seconds of a process with all its threads, those that have ended too (Linux)."""
    return time.clock_gettime(~pid << 3 | 2)  # clock_getcpuclockid(3): the process's clock of CPU time
