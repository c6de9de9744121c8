"""An experiment: trials in which both sides get the same requests and their downstream calls are counted."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from agents.experiments.replay.connection import Address
from agents.experiments.replay.downstream import CallCounts, CannedAnswer, make_downstream
from agents.experiments.replay.outcome import EndpointOutcome, Pace, measured, outcomes, pace_of
from agents.experiments.replay.plan import (
    NamedRequest,
    PlannedRequest,
    Rewriting,
    at_rate,
    at_recorded_times,
    planned,
)
from agents.experiments.replay.replayer import Exchange, ReplayConfig, Replayed, Replayer
from agents.experiments.replay.trace import Trace
from agents.experiments.replay.trial_rows import Calls, TrialRows
from pipeline.http.serving import listening

ReadCpu = Callable[[], tuple[float | None, ...]]


@dataclass(frozen=True, slots=True)
class PaceConfig:
    """Number and times of the requests."""

    rate: float | None = 50.0
    """Requests a second; None: at recorded times."""
    speed: float = 1.0
    """Speed of recorded times: 2 is twice as fast."""
    requests: int = 1000
    """Requests that are measured in each trial; at recorded times 0 means all."""
    warm_up: int = 100
    """Warm-up requests of each trial, which come first and are not measured."""
    trials: int = 1


@dataclass(frozen=True, slots=True)
class DownstreamConfig:
    """Addresses for the downstream calls of the sides."""

    listen: tuple[tuple[str, int], tuple[str, int]]  # addresses for side A and side B
    upstream: str = ""
    answers: tuple[CannedAnswer, ...] = ()


@dataclass(frozen=True, slots=True)
class ReplayExperiment:
    """Sides, and how requests are sent to them."""

    sides: tuple[Address, Address]
    pace: PaceConfig = field(default_factory=PaceConfig)
    rewriting: Rewriting = field(default_factory=Rewriting)
    replay: ReplayConfig = field(default_factory=ReplayConfig)


@dataclass(slots=True)
class ReplayResult:
    """Measurements of an experiment."""

    rows: TrialRows
    exchanges: list[Exchange] = field(default_factory=list)  # of all trials, without warm-up
    calls: tuple[Counter[int], Counter[int]] = field(default_factory=lambda: (Counter(), Counter()))
    """Downstream calls of each side by the number of the exchange."""
    called: tuple[Counter[str], Counter[str]] = field(default_factory=lambda: (Counter(), Counter()))
    """Downstream calls of each side by their own endpoint."""
    unmatched: int = 0
    paces: list[Pace] = field(default_factory=list)

    def by_endpoint(self) -> dict[str, EndpointOutcome]:
        """Return the outcome of the requests of each endpoint."""
        return outcomes(self.exchanges, self.calls)

    def add(self, trial: str, replayed: Replayed, counts: Sequence[CallCounts]) -> None:
        """Add one trial."""
        calls = None
        if counts:
            a, b = counts
            calls = Calls((a.by_request, b.by_request), (a.alone, b.alone))
            self.unmatched += a.unmatched + b.unmatched
        self.rows.add(trial, replayed, calls)
        self.paces.append(pace_of(replayed))
        first = len(self.exchanges)
        for number, exchange in enumerate(measured(replayed)):
            for side, count in enumerate(counts):
                self.calls[side][first + number] += count.by_request[exchange.index]
            self.exchanges.append(Exchange(exchange.request, first + number, exchange.served))
        for side, count in enumerate(counts):
            self.called[side].update(count.by_endpoint)


def make_plan(
    chosen: Sequence[NamedRequest], experiment: ReplayExperiment, began: int
) -> list[PlannedRequest]:
    """Return the requests of one trial.

    Args:
        chosen: Requests that may be replayed.
        experiment: How.
        began: Number of requests that earlier trials have sent; this trial goes on from there.
    """
    pace = experiment.pace
    if pace.rate is None:
        schedule = at_recorded_times(chosen, pace.speed, pace.requests, pace.warm_up)
    else:
        schedule = at_rate(chosen, pace.rate, pace.requests, pace.warm_up, began)
    return planned(schedule, experiment.rewriting)


async def run_trials(
    chosen: Sequence[NamedRequest],
    experiment: ReplayExperiment,
    *,
    read_cpu: ReadCpu | None = None,
    counts: Sequence[CallCounts] = (),
    ended: Callable[[], None] = lambda: None,
    into: ReplayResult | None = None,
    first: int = 1,
) -> ReplayResult:
    """Replay the trials of an experiment one after another.

    Args:
        chosen: Requests that may be replayed.
        experiment: How.
        read_cpu: Returns CPU seconds of both sides so far.
        counts: Counts of both sides' downstream calls, if they are counted.
        ended: Called after each trial.
        into: Result of earlier trials, to which these are added.
        first: Number of the first trial; numbers are the names of trials.

    Raises:
        ConfigError: a side cannot be reached.
    """
    result = into or ReplayResult(TrialRows(experiment.replay.timings))
    replayer = Replayer(experiment.sides, experiment.replay, read_cpu)
    began = 0
    try:
        for number in range(first, first + experiment.pace.trials):
            trace = Trace(secrets.token_hex(8))
            for count in counts:
                count.begin(trace)
            plan = make_plan(chosen, experiment, began)
            began += len(plan)
            result.add(str(number), await replayer.run(plan, trace), counts)
            ended()
    finally:
        replayer.close()
    return result


@asynccontextmanager
async def counted_downstream(config: DownstreamConfig) -> AsyncIterator[tuple[CallCounts, CallCounts]]:
    """Serve the downstream calls of both sides, and yield their counts.

    Raises:
        ConfigError: an address cannot be listened on.
    """
    counts = (CallCounts(), CallCounts())
    async with AsyncExitStack() as servers:
        for (host, port), count in zip(config.listen, counts, strict=True):
            app = make_downstream(count, upstream=config.upstream, answers=config.answers)
            await servers.enter_async_context(listening(app, host, port))
        yield counts
