"""``smidgen bench gateway``: what one gateway takes of the machine, and what gets lost."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass

from loadgen.bench.gateway.fleet import Fleet, Pushed, percentile, push_all
from loadgen.bench.usage import peak_mb, processor_s, require_proc
from loadgen.harness import Experiment, bench, lines, run_smidgen
from pipeline.commands.request import Duration, option
from pipeline.embedded.broker import EmbeddedBroker
from pipeline.kafka import read_topic
from pipeline.messages.measurements import decode_profile
from pipeline.model.errors import SmidgenError
from pipeline.processes import Child
from pipeline.processes.smidgen import smidgen_command, smidgen_environment
from pipeline.settings.topics import DEFAULT_PATH, load_topics

DRAIN_S = 120.0
"""How long the gateway may take to end: it publishes what waits."""


@dataclass(frozen=True, slots=True)
class GatewayResult:
    """What the agents saw, what the gateway took, and what stands on the topic."""

    agents: int
    profiles: int
    requests_per_s: float
    latency_p50_ms: float
    latency_p99_ms: float
    cores: float  # of processor time a second, while agents push
    peak_mb: float
    outage_s: float
    tried_again: int
    refused: int
    samples_taken: int
    samples_on_topic: int  # of messages with different ids
    messages_on_topic: int
    repeated_messages: int  # with an id that came before: counted once

    @property
    def is_exact(self) -> bool:
        """Whether nothing was lost, doubled or refused."""
        return self.samples_taken == self.samples_on_topic and not self.refused


@bench(json="JSON")
def gateway(
    agents: int = option(1000, least=1, most=10_000),
    interval: float = option(
        10.0, kind=Duration(), show_default="10s", help="Interval of each agent's messages."
    ),
    profiles: int = option(6, least=1, most=1000, help="Profiles of each agent."),
    stacks: int = option(200, least=1, most=10_000, help="Stacks of each message."),
    outage: float = option(15.0, kind=Duration(), show_default="15s", help="Outage of the broker."),
) -> Experiment[GatewayResult]:
    """Measure one gateway under many agents, over an outage of the broker.

    Each agent pushes a pprof profile by Pyroscope's API once an interval. The embedded broker is stopped for
    a while (SIGSTOP) in the middle of the run. At the end all samples on the topic are counted, those of a
    repeated id once, as the pipeline does. Exit code 1 if any is lost or doubled.
    """
    require_proc("gateway")
    fleet = Fleet(agents, interval, stacks, profiles)
    return Experiment(
        lambda _: [asyncio.run(_measure(fleet, outage))],
        0,
        lines(_line_of),
        passed=lambda result: result.is_exact,
    )


def _line_of(result: GatewayResult) -> str:
    return "\n".join(f"{name.replace('_', ' '):<20}{value:>14,.6g}" for name, value in asdict(result).items())


async def _measure(fleet: Fleet, outage_s: float) -> GatewayResult:
    with EmbeddedBroker() as broker:
        await asyncio.to_thread(run_smidgen, "topics", "apply", "--broker", broker.url)
        with _gateway(broker.url) as (address, pid):
            used, began = processor_s(pid), time.perf_counter()
            length_s = fleet.interval_s * fleet.profiles
            striking = asyncio.ensure_future(_stop_for(broker.pid, length_s / 3, outage_s))
            pushed = await push_all(fleet, address)
            took_s = time.perf_counter() - began
            used = processor_s(pid) - used
            peak = peak_mb(pid)
            await striking
        counted = await _count(broker.url)
    return _result(fleet, pushed, counted, (took_s, used, peak, outage_s))


@contextmanager
def _gateway(broker: str) -> Iterator[tuple[str, int]]:
    """Run a gateway until everything is published; yield its address and process id."""
    command = smidgen_command("gateway", "--listen", "127.0.0.1:0", "--broker", broker)
    child = Child(command, environment=smidgen_environment())
    try:
        line = child.first_line()
        if not line.startswith("listening on "):
            raise SmidgenError(f"bench gateway: {line or child.last_words()}")
        yield line.split()[2], child.pid
        child.send(signal.SIGTERM)
        child.wait(DRAIN_S)
    finally:
        child.stop()


async def _stop_for(pid: int, after_s: float, outage_s: float) -> None:
    await asyncio.sleep(after_s)
    os.kill(pid, signal.SIGSTOP)
    try:
        await asyncio.sleep(outage_s)
    finally:
        os.kill(pid, signal.SIGCONT)


async def _count(broker: str) -> tuple[int, int, int]:
    """Return the samples of different ids, all messages, and those whose id came before."""
    topic = load_topics(DEFAULT_PATH)["profiles"]
    seen: set[str] = set()
    samples = messages = 0
    async for entry in read_topic(broker, topic, from_start=True, follow=False):
        profile = decode_profile(entry.value)
        messages += 1
        if profile.id not in seen:
            samples += int(profile.counts.sum())
            seen.add(profile.id)
    return samples, messages, messages - len(seen)


def _result(
    fleet: Fleet, pushed: Pushed, counted: tuple[int, int, int], used: tuple[float, float, float, float]
) -> GatewayResult:
    took_s, processor, peak, outage_s = used
    return GatewayResult(
        agents=fleet.agents,
        profiles=pushed.profiles,
        requests_per_s=pushed.profiles / took_s,
        latency_p50_ms=percentile(pushed.took_s, 0.5) * 1000,
        latency_p99_ms=percentile(pushed.took_s, 0.99) * 1000,
        cores=processor / took_s,
        peak_mb=peak,
        outage_s=outage_s,
        tried_again=pushed.again,
        refused=pushed.refused,
        samples_taken=pushed.samples,
        samples_on_topic=counted[0],
        messages_on_topic=counted[1],
        repeated_messages=counted[2],
    )
