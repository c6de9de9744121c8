"""Figures of a replay: pace, latencies, differences by endpoint."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from agents.experiments.replay.replayer import Exchange, Replayed, Served
from pipeline.model import FloatArray


@dataclass(frozen=True, slots=True)
class Pace:
    """Pace of a replay, compared with its plan."""

    requests: int
    offered: float  # requests a second by the plan
    sent: float  # requests a second that were written
    lag_p50_s: float  # seconds from when a request was due to when it was sent
    lag_p99_s: float
    skew_p50_s: float  # seconds between sending a request to one side and to the other; 0 with one side
    skew_p99_s: float


@dataclass(slots=True)
class EndpointOutcome:
    """Outcome of the requests of an endpoint."""

    requests: int = 0
    failed: list[int] = field(default_factory=lambda: [0, 0])  # requests without an answer, by side
    server_errors: list[int] = field(default_factory=lambda: [0, 0])  # of status 500 and more, by side
    both_bad: int = 0  # requests that both sides failed, so that nothing was compared
    compared: int = 0  # requests that both sides served
    errors: tuple[Counter[str], ...] = field(default_factory=lambda: (Counter(), Counter()))
    """Why a side has not answered, and how often."""
    statuses: Counter[tuple[int, int]] = field(default_factory=Counter)
    """Pairs of statuses that differ, side A first, and how often."""
    status_differs: int = 0
    body_differs: int = 0  # among answers with the same status
    latencies_s: tuple[list[float], ...] = field(default_factory=lambda: ([], []))  # of served requests
    calls: list[int] = field(default_factory=lambda: [0, 0])  # downstream calls, by side


def pace_of(replayed: Replayed) -> Pace:
    """Return the pace of all requests, including warm-up."""
    exchanges = replayed.exchanges
    planned_s = exchanges[-1].request.offset_s - exchanges[0].request.offset_s
    lags = np.array([served.lag_s for exchange in exchanges for served in exchange.served])
    skews = np.array([abs(exchange.served[-1].sent - exchange.served[0].sent) for exchange in exchanges])
    gaps = max(1, len(exchanges) - 1)
    return Pace(
        len(exchanges),
        gaps / planned_s if planned_s else 0.0,
        gaps / replayed.sending_s if replayed.sending_s > 0 else 0.0,
        *(float(np.percentile(lags, share)) for share in (50, 99)),
        *(float(np.percentile(skews, share)) for share in (50, 99)),
    )


def measured(replayed: Replayed) -> list[Exchange]:
    """Return the exchanges without warm-up."""
    return [exchange for exchange in replayed.exchanges if not exchange.request.warm_up]


def outcomes(
    exchanges: Sequence[Exchange], calls: Sequence[Mapping[int, int]] = ()
) -> dict[str, EndpointOutcome]:
    """Return the outcome of requests by endpoint.

    Args:
        exchanges: Requests with the answers of both sides.
        calls: Downstream calls of each side by the index of the request.
    """
    by_endpoint: dict[str, EndpointOutcome] = defaultdict(EndpointOutcome)
    for exchange in exchanges:
        outcome = by_endpoint[exchange.request.endpoint]
        outcome.requests += 1
        bad = [is_bad(served, exchange) for served in exchange.served]
        for side, served in enumerate(exchange.served):
            outcome.failed[side] += not served.status
            outcome.server_errors[side] += served.status >= 500
            if not served.status:
                outcome.errors[side][served.error] += 1
            if not bad[side]:
                outcome.latencies_s[side].append(served.latency_s)
        for side, by_index in enumerate(calls):
            outcome.calls[side] += by_index.get(exchange.index, 0)
        outcome.both_bad += all(bad)
        outcome.compared += not any(bad)
        a, b = exchange.served
        if a.status and b.status:
            if a.status != b.status:
                outcome.status_differs += 1
                outcome.statuses[a.status, b.status] += 1
            outcome.body_differs += a.status == b.status and a.digest != b.digest
    return dict(sorted(by_endpoint.items()))


def is_bad(served: Served, exchange: Exchange) -> bool:
    """Return whether a side did not serve a request.

    That is no answer, 5xx, or 4xx or a redirect unlike the recorded answer, such as to a page of login.
    """
    status, recorded = served.status, exchange.request.recorded_status
    is_refused = status >= 400 > recorded > 0
    is_redirected = 300 <= status < 400 and status != 304 and 200 <= recorded < 300
    return not status or status >= 500 or is_refused or is_redirected


def percentile_ms(latencies_s: Sequence[float], share: float) -> float | None:
    """Return a percentile of latencies in milliseconds, None without latencies."""
    return float(np.percentile(np.array(latencies_s), share)) * 1000 if latencies_s else None


def cpu_per_request(replayed: Replayed, side: int) -> FloatArray:
    """Return the CPU milliseconds per request of each slice, NaN where they are unknown: (slices,)."""
    milliseconds = []
    for before, after in zip(replayed.slices, replayed.slices[1:], strict=False):
        used = (before.cpu_s[side], after.cpu_s[side])
        if used[0] is None or used[1] is None or after.requests == before.requests:
            milliseconds.append(np.nan)
        else:
            milliseconds.append(1000 * (used[1] - used[0]) / (after.requests - before.requests))
    return np.array(milliseconds)
