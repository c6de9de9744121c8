"""Summary of a recording: endpoints with their shares and rates, and sessions."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from agents.experiments.replay.plan import SAFE_METHODS, name_endpoints
from agents.experiments.replay.recording import Recording


@dataclass(frozen=True, slots=True)
class EndpointSummary:
    """Requests of one endpoint."""

    endpoint: str
    recorded: int
    share: float  # of all requests that came, by weights
    rate: float  # requests a second that came, by weights; NaN if the recording spans no time
    p50_ms: float  # median duration of the service's answers
    errors: float  # share of requests with status 500 and more, or without an answer
    safe: bool  # whether it is replayed without --allow


@dataclass(frozen=True, slots=True)
class RecordingSummary:
    """Summary of a recording."""

    endpoints: tuple[EndpointSummary, ...]  # those with the largest share first
    requests: int
    came: float  # number of requests that the recorded ones stand for
    duration_s: float
    sessions: int
    longest_session: int
    body_bytes: int


def summarise(recording: Recording, rules: Sequence[tuple[str, str]] = ()) -> RecordingSummary:
    """Return the summary of a recording.

    Args:
        recording: With at least one request.
        rules: Globs over method and path, with the name of each endpoint.
    """
    requests = recording.requests
    duration_s = requests[-1].time - requests[0].time
    came = sum(request.weight for request in requests)
    by_endpoint = defaultdict(list)
    for item in name_endpoints(requests, rules):
        by_endpoint[item.endpoint].append(item.request)
    endpoints = [
        EndpointSummary(
            endpoint=endpoint,
            recorded=len(recorded),
            share=sum(request.weight for request in recorded) / came if came else 0.0,
            rate=sum(request.weight for request in recorded) / duration_s if duration_s else float("nan"),
            p50_ms=1000 * float(np.median([request.duration_s for request in recorded])),
            errors=sum(request.status >= 500 or not request.status for request in recorded) / len(recorded),
            safe=all(request.method in SAFE_METHODS for request in recorded),
        )
        for endpoint, recorded in by_endpoint.items()
    ]
    sessions = Counter(request.session for request in requests if request.session)
    return RecordingSummary(
        tuple(sorted(endpoints, key=lambda item: (-item.share, item.endpoint))),
        len(requests),
        came,
        duration_s,
        len(sessions),
        max(sessions.values(), default=0),
        sum(len(request.body) for request in requests),
    )
