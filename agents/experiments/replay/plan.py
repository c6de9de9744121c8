"""Plan of a replay: requests of a recording, their proportions, and their times."""

from __future__ import annotations

import fnmatch
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import cycle, islice

from agents.experiments.replay.recording import RecordedRequest
from agents.logs.request_type import RequestTypes
from pipeline.files.listing import listed
from pipeline.model.errors import ConfigError

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
"""Safe methods (RFC 9110, 9.2.1) but TRACE."""

MOST_ENDPOINTS = 1000
"""Most endpoints; requests of all further ones are one endpoint, ``other``."""

_LEFT_OUT = frozenset(
    {"host", "content-length", "connection", "keep-alive", "proxy-connection", "te", "trailer"}
    | {"transfer-encoding", "upgrade", "expect"}
)
"""Headers that the replayer writes itself, or that belong to the recorded connection."""


@dataclass(frozen=True, slots=True)
class RequestChoice:
    """Choice of the requests to replay."""

    endpoints: tuple[str, ...] = ()
    """Globs over endpoints such as ``GET /cart/:id``; all if there are none."""
    allowed: tuple[str, ...] = ()
    """Globs over endpoints whose methods may change something."""
    mix: tuple[tuple[str, float], ...] = ()
    """Shares of endpoints, by globs; as recorded if there are none."""
    seed: int = 0
    """Seed of the draw, where a mix is drawn."""


@dataclass(frozen=True, slots=True)
class Rewriting:
    """Changes of the recorded headers."""

    headers: tuple[tuple[str, str], ...] = ()  # Host among them; an empty value leaves the header out


@dataclass(frozen=True, slots=True)
class PlannedRequest:
    """One request as it is sent to both sides."""

    offset_s: float  # from the beginning of the replay
    endpoint: str
    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    session: str
    warm_up: bool
    source: int  # its number in the recording
    recorded_status: int = 0  # of the recorded answer; 0 without one


@dataclass(frozen=True, slots=True)
class NamedRequest:
    """A recorded request with its endpoint and its number."""

    endpoint: str
    number: int
    request: RecordedRequest


def name_endpoints(
    requests: Sequence[RecordedRequest], rules: Sequence[tuple[str, str]] = ()
) -> list[NamedRequest]:
    """Return requests with their endpoints: method and path, with identifiers folded."""
    types = RequestTypes(rules, most=MOST_ENDPOINTS)
    lines = [f"{request.method} {request.target}" for request in requests]
    types.learn(lines)
    return [
        NamedRequest(types.of(line), number, request)
        for number, (line, request) in enumerate(zip(lines, requests, strict=True))
    ]


def folded_paths_of(requests: Sequence[RecordedRequest], rules: Sequence[tuple[str, str]] = ()) -> list[str]:
    """Return the paths under which endpoints are one endpoint, ``:name``, because there are so many."""
    types = RequestTypes(rules, most=MOST_ENDPOINTS)
    types.learn([f"{request.method} {request.target}" for request in requests])
    return sorted(types.folds)


def choose(
    requests: Sequence[NamedRequest], choice: RequestChoice
) -> tuple[list[NamedRequest], Counter[str]]:
    """Return the requests that may be replayed, and the number of blocked ones by endpoint.

    Raises:
        ConfigError: a glob matches nothing, or nothing is left.
    """
    endpoints = sorted({request.endpoint for request in requests})
    for glob in (*choice.endpoints, *choice.allowed, *(name for name, _ in choice.mix)):
        if not any(matches(endpoint, (glob,)) for endpoint in endpoints):
            raise ConfigError(f"{glob}: matches no endpoint; there are {listed(endpoints, glob)}")
    selected, blocked = [], Counter[str]()
    for request in requests:
        if choice.endpoints and not matches(request.endpoint, choice.endpoints):
            continue
        if request.request.method not in SAFE_METHODS and not matches(request.endpoint, choice.allowed):
            blocked[request.endpoint] += 1
        else:
            selected.append(request)
    if choice.mix:
        selected = _mixed(selected, choice)
    if not selected:
        raise ConfigError(
            "no request is left to replay; methods that may change something are blocked unless --allow "
            f"names their endpoint: {listed(sorted(blocked))}"
        )
    return selected, blocked


def at_rate(
    chosen: Sequence[NamedRequest], rate: float, count: int, warm_up: int, began: int = 0
) -> Schedule:
    """Return a plan at a fixed rate: requests in recorded order, over and over if there are too few.

    Args:
        chosen: Requests to replay.
        rate: Requests a second.
        count: Requests that are measured.
        warm_up: Requests before these, which are not measured.
        began: Number of requests that earlier plans have sent.
    """
    every = list(islice(cycle(chosen), began % len(chosen), began % len(chosen) + warm_up + count))
    return [(index / rate, request, index < warm_up) for index, request in enumerate(every)]


def at_recorded_times(chosen: Sequence[NamedRequest], speed: float, count: int, warm_up: int) -> Schedule:
    """Return a plan at recorded times, ``speed`` times as fast; at most as many requests as there are.

    Raises:
        ConfigError: all requests would be warm-up.
    """
    if len(chosen) <= warm_up:
        raise ConfigError(f"--warm-up {warm_up}: the recording has {len(chosen)} requests, which leaves none")
    every = chosen[: warm_up + count] if count else chosen
    first = every[0].request.time
    return [
        ((request.request.time - first) / speed, request, index < warm_up)
        for index, request in enumerate(every)
    ]


Schedule = list[tuple[float, NamedRequest, bool]]
"""Seconds from the beginning, the request, and whether it is warm-up."""


def planned(schedule: Schedule, rewriting: Rewriting) -> list[PlannedRequest]:
    """Return the headers to send: recorded ones but for those of the connection, changed by ``rewriting``."""
    return [
        PlannedRequest(
            offset_s=offset,
            endpoint=request.endpoint,
            method=request.request.method,
            target=request.request.target,
            headers=_headers(request.request.headers, rewriting),
            body=request.request.body,
            session=request.request.session,
            warm_up=warm_up,
            source=request.number,
            recorded_status=request.request.status,
        )
        for offset, request, warm_up in schedule
    ]


def matches(endpoint: str, globs: Iterable[str]) -> bool:
    """Return whether a glob matches an endpoint, by method and path or by the path alone."""
    path = endpoint.partition(" ")[2]
    return any(
        re.match(fnmatch.translate(glob), endpoint) or re.match(fnmatch.translate(glob), path)
        for glob in globs
    )


def _mixed(requests: Sequence[NamedRequest], choice: RequestChoice) -> list[NamedRequest]:
    """Draw as many requests as there are, with the shares of a mix, each group in recorded order."""
    groups: dict[str, list[NamedRequest]] = defaultdict(list)
    for request in requests:
        glob = next((glob for glob, _ in choice.mix if matches(request.endpoint, (glob,))), None)
        if glob is not None:
            groups[glob].append(request)
    shares = [(glob, share) for glob, share in choice.mix if groups[glob]]
    if not shares:
        return []
    rng = random.Random(choice.seed)
    names, weights = [glob for glob, _ in shares], [share for _, share in shares]
    order = rng.choices(names, weights, k=max(len(requests), len(shares)))
    turns = {name: cycle(group) for name, group in groups.items()}
    return [next(turns[name]) for name in order]


def _headers(recorded: Sequence[tuple[str, str]], rewriting: Rewriting) -> tuple[tuple[str, str], ...]:
    put = {name.lower() for name, _ in rewriting.headers}
    passed_on = [(name, value) for name, value in recorded if name.lower() not in _LEFT_OUT | put]
    return (*passed_on, *((name, value) for name, value in rewriting.headers if value))
