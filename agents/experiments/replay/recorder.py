"""The recorder: requests of a service, sampled, redacted and written, without harm to the service.

A request waits only for a hash of its session, a draw, and copies of the chunks of its body up to a bound.
All else happens in a thread. A failure here is counted, and no client of the service sees it.
"""

from __future__ import annotations

import gzip
import logging
import random
import secrets
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Protocol, cast

from agents.experiments.replay.recording import RecordedRequest, encode_cut, encode_head, encode_request
from agents.experiments.replay.redaction import Redaction, Unreadable
from agents.experiments.replay.sampling import Drawn, RequestSampler, SamplingConfig
from pipeline.model.clock import Clock, system_clock
from pipeline.model.errors import file_errors

log = logging.getLogger(__name__)

TICK_S = 1.0
"""Longest time between two flushes, and between two checks whether an interval is over."""


@dataclass(frozen=True, slots=True)
class RecorderConfig:
    """Sampling and bounds of a recording."""

    service: str = ""
    sampling: SamplingConfig = field(default_factory=SamplingConfig)
    redaction: Redaction = field(default_factory=lambda: Redaction(secrets.token_bytes(32)))
    session: str = ""
    """``cookie:NAME`` or ``header:NAME`` that identifies a session; empty: no sessions."""
    max_body_bytes: int = 2**20
    """A request with a larger body is not recorded."""
    max_waiting_bytes: int = 64 * 2**20
    """Most bytes of bodies that wait for the file; as much again may wait for the end of an interval."""
    max_file_bytes: int = 2**30
    """Most bytes of the file, before compression."""


class Ticket(Protocol):
    """A request that is being recorded."""

    def body(self, chunk: bytes) -> None:
        """Take a chunk of its body."""

    def answered(self, status: int) -> None:
        """End it with the status of the answer; 0 if there was none. Only the first call counts."""


class Recorder:
    """Records the requests that a proxy or a middleware shows it.

    Args:
        path: The file, appended to if it exists; gzip if its name ends in ``.gz``.
        config: Sampling and bounds.
        clock: Returns epoch seconds.
        draw: Returns numbers in [0, 1).

    Raises:
        ConfigError: the file cannot be opened.
    """

    def __init__(
        self,
        path: Path,
        config: RecorderConfig | None = None,
        *,
        clock: Clock = system_clock,
        draw: Callable[[], float] = random.random,
    ) -> None:
        self.counts: Counter[str] = Counter()
        """Requests seen, recorded, and not recorded: not_sampled, too_large, unreadable, no_room, errors."""
        self._config = config or RecorderConfig()
        self._clock = clock
        self._sampler = RequestSampler(self._config.sampling, draw, self._config.max_waiting_bytes)
        self._waiting: deque[tuple[float, RecordedRequest] | str] = deque()
        self._waiting_bytes = 0
        self._wake = threading.Condition()
        self._closed = False
        self._written = 0
        with file_errors(path):
            self._file = _open(path)
        self._write(encode_head(self._config.service, self._config.sampling.describe(), clock()))
        self._thread = threading.Thread(target=self._run, name="smidgen-recorder", daemon=True)
        self._thread.start()

    def begin(self, method: str, target: str, headers: Iterable[tuple[str, str]]) -> Ticket:
        """Register a request, and return the ticket that receives its body and status. It never raises."""
        try:
            self.counts["seen"] += 1
            pairs = tuple(headers)
            session = self._session_of(pairs)
            priority = self._sampler.wants(session)
            if priority is None:
                self.counts["not_sampled"] += 1
                return _NOT_RECORDED
            return _Ticket(
                self, priority, RecordedRequest(self._clock(), method, target, pairs, b"", session)
            )
        except Exception as error:  # whatever it is, the service has to go on
            self._failed(error)
            return _NOT_RECORDED

    def close(self) -> None:
        """Write all waiting requests and close the file."""
        with self._wake:
            if self._closed:
                return
            self._closed = True
            self._wake.notify()
        self._thread.join()

    def _session_of(self, headers: tuple[tuple[str, str], ...]) -> str:
        kind, _, name = self._config.session.partition(":")
        if not name:
            return ""
        session = ""
        if kind == "header":
            session = next((value for key, value in headers if key.lower() == name.lower()), "")
        else:
            cookies = (value for key, value in headers if key.lower() == "cookie")
            pairs = (part.strip().partition("=") for value in cookies for part in value.split(";"))
            session = next((value for key, _, value in pairs if key == name), "")
        return self._config.redaction.digest(session).removeprefix("redacted-") if session else ""

    def take(self, priority: float, request: RecordedRequest, lost: str = "") -> None:
        """Queue a complete request, or count the reason why it is lost. It never raises."""
        size = len(request.body) + len(request.target)
        with self._wake:
            if not lost and self._waiting_bytes + size > self._config.max_waiting_bytes:
                lost = "no_room"
            if lost:
                self.counts[lost] += 1
                if request.session:
                    self._waiting.append(request.session)
            else:
                self._waiting_bytes += size
                self._waiting.append((priority, request))
            self._wake.notify()

    @property
    def max_body_bytes(self) -> int:
        """The largest body that is recorded."""
        return self._config.max_body_bytes

    def _failed(self, error: Exception) -> None:
        self.counts["errors"] += 1
        if self.counts["errors"] == 1:  # of a flood of equal ones
            log.warning("a request was not recorded: %s: %s", type(error).__name__, error)

    def _run(self) -> None:
        ended = False
        while not ended:
            with self._wake:
                if not self._waiting and not self._closed:
                    self._wake.wait(TICK_S)
                waiting, self._waiting, self._waiting_bytes = self._waiting, deque(), 0
                ended = self._closed and not waiting
            for one in waiting:
                self._guarded(lambda one=one: self._put(one))  # type: ignore[misc]
            if self._config.sampling.most and not ended:
                self._guarded(lambda: self._write_drawn(self._sampler.end_before(self._clock())))
            self._guarded(self._file.flush)
        self._guarded(lambda: self._write_drawn(self._sampler.end()))
        self._guarded(self._file.close)

    def _guarded(self, work: Callable[[], object]) -> None:
        try:
            work()
        except Exception as error:  # such as a full disk: the service has to go on
            self._failed(error)

    def _put(self, item: tuple[float, RecordedRequest] | str) -> None:
        if isinstance(item, str):
            self._write_drawn(Drawn(cut=self._sampler.cut(item)))
            return
        priority, request = item
        try:
            redacted = _redacted(request, self._config.redaction)
        except Unreadable:
            self.counts["unreadable"] += 1
            self._write_drawn(Drawn(cut=self._sampler.cut(request.session)))
            return
        self._write_drawn(self._sampler.add(priority, redacted))

    def _write_drawn(self, drawn: Drawn) -> None:
        for request in drawn.requests:
            if self._write(encode_request(request)):
                self.counts["recorded"] += 1
            else:
                self.counts["no_room"] += 1
        for session in drawn.cut:
            self._write(encode_cut(session))

    def _write(self, line: bytes) -> bool:
        if self._written + len(line) > self._config.max_file_bytes:
            return False
        self._file.write(line)
        self._written += len(line)
        return True


def _open(path: Path) -> IO[bytes]:
    """Open a file to append to; it stays open as long as the recorder."""
    return cast(IO[bytes], gzip.open(path, "ab")) if path.suffix == ".gz" else path.open("ab")


def _redacted(request: RecordedRequest, redaction: Redaction) -> RecordedRequest:
    headers = {name.lower(): value for name, value in request.headers}
    return RecordedRequest(
        time=request.time,
        method=request.method,
        target=redaction.of_target(request.target),
        headers=redaction.of_headers(request.headers),
        body=redaction.of_body(
            request.body, headers.get("content-type", ""), headers.get("content-encoding", "")
        ),
        session=request.session,
        status=request.status,
        duration_s=request.duration_s,
    )


class _Ticket:
    def __init__(self, recorder: Recorder, priority: float, request: RecordedRequest) -> None:
        self._recorder = recorder
        self._priority = priority
        self._request = request
        self._chunks: list[bytes] = []
        self._size = 0
        self._ended = False

    def body(self, chunk: bytes) -> None:
        self._size += len(chunk)
        if self._size <= self._recorder.max_body_bytes:
            self._chunks.append(bytes(chunk))
        else:
            self._chunks.clear()

    def answered(self, status: int) -> None:
        if self._ended:
            return
        self._ended = True
        try:
            came = self._request
            request = RecordedRequest(
                came.time,
                came.method,
                came.target,
                came.headers,
                b"".join(self._chunks),
                came.session,
                status=status,
                duration_s=max(0.0, self._recorder._clock() - came.time),
            )
            lost = "too_large" if self._size > self._recorder.max_body_bytes else ""
            self._recorder.take(self._priority, request, lost)
        except Exception as error:  # whatever it is, the service has to go on
            self._recorder._failed(error)


class _NotRecorded:
    def body(self, chunk: bytes) -> None:
        pass

    def answered(self, status: int) -> None:
        pass


_NOT_RECORDED = _NotRecorded()
