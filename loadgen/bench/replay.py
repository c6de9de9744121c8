"""``smidgen bench replay``: whether the replayer keeps pace, and how far apart both sides are asked."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from agents.experiments.replay.connection import address_of_url
from agents.experiments.replay.outcome import pace_of
from agents.experiments.replay.plan import Rewriting, at_rate, name_endpoints, planned
from agents.experiments.replay.recording import RecordedRequest
from agents.experiments.replay.replayer import ReplayConfig, Replayer
from agents.experiments.replay.trace import Trace
from loadgen.harness import Advance, Experiment, Result, bench, figure_columns, terminal_table
from pipeline.commands.request import option
from pipeline.processes import Group
from pipeline.processes.allocation import keep_freed_memory

SERVER = Path(__file__).with_name("trivial_server.py")
_READY_S = 60.0


UNITS = (
    "offered/s",
    "sent/s",
    "late p50 ms",
    "late p99 ms",
    "skew p50 µs",
    "skew p99 µs",
    "latency p50 ms",
    "failed",
)


@dataclass(frozen=True, slots=True)
class _ReplayRequest:
    seconds: float = option(10.0, least=0.1, help="Seconds of each rate.")
    rates: tuple[float, ...] = option(
        (100.0, 1_000.0, 5_000.0),
        flag="--rate",
        least=1,
        most=100_000,
        help="Requests a second to each side.",
    )


@bench(json="one JSON object a rate")
def replay(request: _ReplayRequest) -> Experiment[Result]:
    """Measure the replayer against two sides that answer at once: what it sends, how late, how far apart.

    Lateness is from when a request was due to when it was written; skew is between the writes to both sides.
    """
    keep_freed_memory()
    return Experiment(
        lambda advance: asyncio.run(_measure(request, advance)),
        len(request.rates),
        terminal_table(figure_columns("replay", UNITS, ",.4g")),
    )


async def _measure(request: _ReplayRequest, advance: Advance) -> list[Result]:
    with TemporaryDirectory(prefix="smidgen-replay-") as folder:
        processes = Group(Path(folder))
        try:
            server = await processes.start("server", [sys.executable, str(SERVER)])
            address = (await server.line("http://", _READY_S)).strip()
            results = []
            for rate in request.rates:
                results.append(await measure_pace(address, address, rate, request.seconds))
                advance()
            return results
        finally:
            await processes.stop_all()


async def measure_pace(url_a: str, url_b: str, rate: float, seconds: float) -> Result:
    """Replay GET requests at a rate, and return the figures; latencies are of both sides, in milliseconds."""
    requests = [RecordedRequest(0.0, "GET", f"/cart/{n}", (("Accept", "text/html"),)) for n in range(100)]
    schedule = at_rate(name_endpoints(requests), rate, max(1, round(rate * seconds)), 0)
    replayer = Replayer([address_of_url(url_a), address_of_url(url_b)], ReplayConfig(opened=64))
    try:
        replayed = await replayer.run(planned(schedule, Rewriting()), Trace("0" * 16))
    finally:
        replayer.close()
    pace = pace_of(replayed)
    latencies = sorted(served.latency_s for exchange in replayed.exchanges for served in exchange.served)
    failed = sum(not served.status for exchange in replayed.exchanges for served in exchange.served)
    return Result(
        f"{rate:,.0f} requests/s",
        {
            "offered/s": pace.offered,
            "sent/s": pace.sent,
            "late p50 ms": 1e3 * pace.lag_p50_s,
            "late p99 ms": 1e3 * pace.lag_p99_s,
            "skew p50 µs": 1e6 * pace.skew_p50_s,
            "skew p99 µs": 1e6 * pace.skew_p99_s,
            "latency p50 ms": 1e3 * latencies[len(latencies) // 2],
            "failed": float(failed),
        },
        {"seconds": seconds},
    )
