"""Simulated agents: each pushes a profile of pprof once an interval, and tries again as it is asked to."""

from __future__ import annotations

import asyncio
import io
import math
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import aiohttp

from agents.gateway.pyroscope_push import PUSH
from agents.profiles.formats import Measure, Sample
from agents.profiles.formats.writers import WRITERS

SERVICES = 20
VARIANTS = 32
"""Different profiles that the agents take turns with: to write one takes as long as to read it."""

_DEPTH = 20
_FUNCTIONS = 400
_PERIOD_NS = 10_000_000
_LONGEST_WAIT_S = 2.0


@dataclass(frozen=True, slots=True)
class Fleet:
    """How many agents push what."""

    agents: int
    interval_s: float
    stacks: int  # different ones in a profile
    profiles: int  # that each agent pushes


@dataclass
class Pushed:
    """What the agents have seen."""

    samples: int = 0  # in profiles that the gateway has taken
    profiles: int = 0
    again: int = 0  # answers 429 and 503, and none
    refused: int = 0
    took_s: list[float] = field(default_factory=list)  # of each request that was taken


@dataclass(frozen=True, slots=True)
class Variant:
    """A profile and its samples."""

    content: bytes
    samples: int


def draw_profiles(stacks: int) -> list[Variant]:
    """Draw profiles of one program: stacks of about 20 frames, each with a few samples."""
    draws = random.Random(1)
    names = [f"shop.module_{number}.run" for number in range(_FUNCTIONS)]
    tree = [tuple(draws.choices(names, k=_DEPTH)) for _ in range(stacks)]
    return [_variant(tree, draws) for _ in range(VARIANTS)]


async def push_all(fleet: Fleet, address: str) -> Pushed:
    """Push every agent's profiles; each agent begins at its own moment of the interval."""
    variants = draw_profiles(fleet.stacks)
    pushed = Pushed()
    connections = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connections, timeout=aiohttp.ClientTimeout(60)) as session:
        agents = (
            _agent(number, fleet, variants, pushed, session, f"{address}/push.v1.PusherService/Push")
            for number in range(fleet.agents)
        )
        await asyncio.gather(*agents)
    return pushed


async def _agent(
    number: int,
    fleet: Fleet,
    variants: list[Variant],
    pushed: Pushed,
    session: aiohttp.ClientSession,
    url: str,
) -> None:
    due = time.monotonic() + fleet.interval_s * number / fleet.agents
    for turn in range(fleet.profiles):
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        due += fleet.interval_s
        variant = variants[(number + turn) % VARIANTS]
        await _push(session, url, _request(number, turn, variant), variant, pushed)


async def _push(
    session: aiohttp.ClientSession, url: str, body: bytes, variant: Variant, pushed: Pushed
) -> None:
    """Push until it is taken, or refused for good."""
    while True:
        began = time.perf_counter()
        wait_s = 0.5
        try:
            async with session.post(url, data=body, headers={"Content-Type": "application/proto"}) as answer:
                status = answer.status
                wait_s = float(answer.headers.get("Retry-After", wait_s))
        except (aiohttp.ClientError, TimeoutError):
            status = 0
        if status == 200:
            pushed.took_s.append(time.perf_counter() - began)
            pushed.samples += variant.samples
            pushed.profiles += 1
            return
        if status not in (0, 429, 503):
            pushed.refused += 1
            return
        pushed.again += 1
        await asyncio.sleep(min(wait_s, _LONGEST_WAIT_S))


def percentile(values: list[float], share: float) -> float:
    """Return the value that a share of all do not exceed; 0 of none."""
    return sorted(values)[min(len(values) - 1, math.ceil(share * len(values)) - 1)] if values else 0.0


def _request(number: int, turn: int, variant: Variant) -> bytes:
    message = PUSH["Request"]()
    series = message.series.add()
    for name, value in (("service_name", f"bench-{number % SERVICES}"), ("hostname", f"host-{number}")):
        series.labels.add(name=name.encode(), value=value.encode())
    series.samples.add(raw_profile=variant.content, ID=f"{number}-{turn}".encode())
    return bytes(message.SerializeToString())


def _variant(tree: list[tuple[str, ...]], draws: random.Random) -> Variant:
    counts = [draws.randint(1, 20) for _ in tree]

    def samples() -> Iterator[Sample]:
        for stack, count in zip(tree, counts, strict=True):
            yield Sample(stack, count * _PERIOD_NS)

    out = io.BytesIO()
    WRITERS["pprof"](samples(), Measure("cpu", "nanoseconds", _PERIOD_NS), out)
    return Variant(out.getvalue(), sum(counts))
