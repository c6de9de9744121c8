"""Sampling of requests: a share of them, or at most K in each T; of a session all or none.

A unit is a session, or a request without one. Each has a priority between 0 and 1. A session's is derived
from its id, so that the decision is the same for all of its requests, on all hosts with the same key.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace

from agents.experiments.replay.recording import RecordedRequest

MOST_CUT = 100_000
"""Most sessions that are remembered as not recorded whole; the oldest are forgotten first."""


@dataclass(frozen=True, slots=True)
class SamplingConfig:
    """Settings for sampling requests."""

    share: float = 1.0
    """Share of units that are sampled, applied first."""
    most: int = 0
    """Most requests in each interval; 0 is no bound."""
    interval_s: float = 60.0

    def describe(self) -> str:
        """Return a text for the head of a recording."""
        bound = f", at most {self.most} in {self.interval_s:g} s" if self.most else ""
        return f"share {self.share:g}{bound}"


def session_priority(session: str) -> float:
    """Return the priority of a session: a number in [0, 1) that its id decides."""
    digest = hashlib.blake2b(session.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2.0**64


@dataclass(frozen=True, slots=True)
class Drawn:
    """Requests to write, and sessions that are withdrawn."""

    requests: tuple[RecordedRequest, ...] = ()
    cut: tuple[str, ...] = ()


class RequestSampler:
    """Draws requests. It is not thread-safe.

    Args:
        config: Share and bound.
        draw: Returns a number in [0, 1), the priority of a request without a session.
        max_bytes: Most bytes of bodies that wait for the end of an interval.
    """

    def __init__(self, config: SamplingConfig, draw: Callable[[], float], max_bytes: int) -> None:
        self._config = config
        self._draw = draw
        self._reservoir = Reservoir(config.most, max_bytes)
        self._interval: float | None = None

    def wants(self, session: str) -> float | None:
        """Return the priority of a request that is sampled, None for others."""
        priority = session_priority(session) if session else self._draw()
        wanted = priority < self._config.share and session not in self._reservoir.cut
        return priority if wanted else None

    def add(self, priority: float, request: RecordedRequest) -> Drawn:
        """Take an answered request, and return the requests to write now."""
        if not self._config.most:
            return Drawn((replace(request, weight=1.0 / self._config.share),))
        interval = request.time // self._config.interval_s
        ended = Drawn()
        if self._interval is None or interval > self._interval:
            ended = self.end()
            self._interval = interval
        cut = self._reservoir.add(priority, request)
        return Drawn(ended.requests, ended.cut + cut)

    def cut(self, session: str) -> tuple[str, ...]:
        """Withdraw a session of which a request was lost; return it unless it was withdrawn before."""
        return self._reservoir.cut_session(session)

    def end_before(self, now: float) -> Drawn:
        """Return the requests drawn in an interval if it is over, even if no later request has come."""
        over = self._interval is not None and now // self._config.interval_s > self._interval
        return self.end() if over else Drawn()

    def end(self) -> Drawn:
        """Return the requests drawn in an interval, and begin the next one."""
        requests, seen = self._reservoir.take()
        weight = seen / max(1, len(requests)) / self._config.share
        return Drawn(tuple(replace(request, weight=weight) for request in requests))


class Reservoir:
    """The units of least priority of an interval, with a bounded number of requests (bottom-k sampling).

    A session that is evicted is cut: its requests of earlier intervals are withdrawn, and no more are taken.
    """

    def __init__(self, most: int, max_bytes: int) -> None:
        self._most = most
        self._max_bytes = max_bytes
        self._units: dict[float, list[RecordedRequest]] = {}
        self._requests = 0
        self._bytes = 0
        self._seen = 0
        self.cut: OrderedDict[str, None] = OrderedDict()

    def add(self, priority: float, request: RecordedRequest) -> tuple[str, ...]:
        """Take a request; return the sessions that are cut for it."""
        self._seen += 1
        if request.session in self.cut:
            return ()
        self._units.setdefault(priority, []).append(request)
        self._requests += 1
        self._bytes += len(request.body)
        cut: tuple[str, ...] = ()
        while self._requests > self._most or self._bytes > self._max_bytes:
            cut += self._evict(max(self._units))
        return cut

    def take(self) -> tuple[list[RecordedRequest], int]:
        """Return the sampled requests by time, with the number of requests seen, and empty the reservoir."""
        requests = sorted(
            (r for unit in self._units.values() for r in unit), key=lambda request: request.time
        )
        seen, self._seen, self._requests, self._bytes, self._units = self._seen, 0, 0, 0, {}
        return requests, seen

    def cut_session(self, session: str) -> tuple[str, ...]:
        """Remember that a session is not whole, and drop its requests."""
        if not session or session in self.cut:
            return ()
        self.cut[session] = None
        if len(self.cut) > MOST_CUT:
            self.cut.popitem(last=False)
        self._drop(session_priority(session))
        return (session,)

    def _evict(self, priority: float) -> tuple[str, ...]:
        session = self._units[priority][0].session
        if session:
            return self.cut_session(session)
        self._drop(priority)
        return ()

    def _drop(self, priority: float) -> None:
        unit = self._units.pop(priority, [])
        self._requests -= len(unit)
        self._bytes -= sum(len(request.body) for request in unit)
