"""Time against error of pruned stacks, by Smidgen's own aggregation of simulated threads (Atys §6.3)."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import orjson
from scipy.interpolate import PchipInterpolator

from agents.profiles.formats import Stack
from agents.profiles.message import Source, build_profile
from agents.sampling.rates import (
    SHARES,
    PruningPlan,
    Trial,
    busy_threads,
    choose_share,
    percentage_error,
    thin_stacks,
)
from pipeline.counting.count import count_samples
from pipeline.messages.measurements import decode_profile
from pipeline.model import BoolArray, FloatArray, IntArray

THREADS = 1840
"""As many as SPECjbb2015 has in Atys' figure 4: 444 of them have 90 % of the samples, 838 have 99 %."""

_RANKS, _HELD = (0, 444, 838, THREADS), (0.0, 0.9, 0.99, 1.0)

SAMPLES = 100_000
"""Samples of a host in an interval: 10 kHz, as in Atys §6, for ten seconds."""

STACKS, FUNCTIONS, DEPTH = 20_000, 2500, 40
POOLS = 8
"""Kinds of threads; those of one kind run the same code."""

KEPT = (1.0, 0.998, 0.995, 0.99, 0.98, 0.97, 0.95, 0.92, 0.9)
"""Shares of the samples whose threads are kept."""

MOST_ERROR = 0.0058
"""MAPE of the top 50 functions at Atys' P99."""

THREAD_PRUNING, THINNING = "threads, as published", "rare stacks, drawn from"
_REPEATS = 3


@dataclass(frozen=True, slots=True)
class HostStacks:
    """A host's profile in an interval: samples by thread and stack, in three parallel arrays."""

    spelt: Sequence[Stack]  # (distinct stacks,)
    threads: IntArray  # (entries,)
    stacks: IntArray  # (entries,)
    counts: IntArray  # (entries,)


@dataclass(frozen=True, slots=True)
class PruningResult:
    """Effect of one way of pruning on hosts that it was not set up on."""

    method: str
    trials: list[Trial]  # of the initialisation stage
    plan: PruningPlan
    saved: float  # share of the aggregation time, on the other hosts
    error: float  # mean over hosts of the MAPE of each
    fleet_error: float  # MAPE of all hosts together


def measure_pruning(seed: int, hosts: int, advance: Callable[[], None]) -> list[PruningResult]:
    """Set up both ways of pruning on one host and measure them on others.

    Args:
        seed: Seed of all random draws.
        hosts: Number of measured hosts, besides the one of the initialisation stage.
        advance: Called after each host, and after the initialisation stage.
    """
    service = draw_hosts(seed, hosts + 1)
    prunings = {
        THREAD_PRUNING: (prune_threads, [1 - share_left for share_left in KEPT]),
        THINNING: (prune_stacks, list(SHARES)),
    }
    trials = {
        name: [_trial(service[0], prune, share, seed) for share in shares]
        for name, (prune, shares) in prunings.items()
    }
    advance()
    plans = {name: choose_share(tried, MOST_ERROR) for name, tried in trials.items()}
    whole = [_trial(host, prune_threads, 0.0, 0).time_s for host in service[1:]]
    results = []
    for name, (prune, _) in prunings.items():
        times, errors, own_counts = [], [], []
        for number, host in enumerate(service[1:]):
            trial = _trial(host, prune, plans[name].share, number)
            times.append(trial.time_s)
            errors.append(trial.error)
            own_counts.append(own_samples(prune(host, plans[name].share, number)))
            advance()
        truth = sum(own_samples(prune_threads(host, 0.0, 0)) for host in service[1:])
        results.append(
            PruningResult(
                name,
                trials[name],
                plans[name],
                1 - sum(times) / sum(whole),
                float(np.mean(errors)),
                percentage_error(np.asarray(truth), np.asarray(sum(own_counts))),
            )
        )
    return results


def prune_threads(host: HostStacks, share: float, _seed: int) -> dict[Stack, int]:
    """Return the stacks of a host without idle threads, by their share of the samples (Atys §5.1)."""
    busy = busy_threads(host.threads, host.counts, 1 - share)
    return _merged(host, busy)


def prune_stacks(host: HostStacks, share: float, seed: int) -> dict[Stack, int]:
    """Return the stacks of a host; those with a share of the samples are drawn from."""
    stacks = _merged(host, np.ones(len(host.threads), dtype=np.bool_))
    return thin_stacks(stacks, share, float(np.random.default_rng(seed).random()))


def own_samples(stacks: dict[Stack, int]) -> FloatArray:
    """Return the samples in which each function is the leaf: (functions,)."""
    samples = np.zeros(FUNCTIONS)
    for stack, count in stacks.items():
        samples[int(stack[-1].rpartition("f")[2])] += count
    return samples


def draw_hosts(seed: int, hosts: int) -> list[HostStacks]:
    """Draw one interval of each host of a service with many threads, most of which are idle.

    Threads of a pool run the same stacks, in shares that vary from thread to thread. Idle threads are often
    in pools of their own, as daemons are.
    """
    rng = np.random.default_rng(seed)
    spelt, leaves = _draw_tree(rng)
    weight = np.diff(PchipInterpolator(_RANKS, _HELD)(np.arange(THREADS + 1)))
    pool_of = np.minimum(
        (np.arange(THREADS) / THREADS * 3 + rng.exponential(1.5, THREADS)).astype(int), POOLS - 1
    )
    works = [rng.pareto(0.9, STACKS) * (rng.random(STACKS) < 0.25) for _ in range(POOLS)]
    drawn = []
    for _ in range(hosts):
        samples = rng.multinomial(SAMPLES, weight / weight.sum())
        threads, stacks = [], []
        for thread in np.flatnonzero(samples).tolist():
            work = works[pool_of[thread]]
            chosen = rng.choice(STACKS, samples[thread], p=work / work.sum())
            threads.append(np.full(len(chosen), thread))
            stacks.append(chosen)
        entries, counts = np.unique(
            np.stack([np.concatenate(threads), np.concatenate(stacks)]), axis=1, return_counts=True
        )
        drawn.append(HostStacks(spelt, entries[0], entries[1], counts.astype(np.int64)))
    return drawn


def _draw_tree(rng: np.random.Generator) -> tuple[list[Stack], IntArray]:
    """Return stacks of a tree of calls, and the leaf of each."""
    functions = rng.integers(0, FUNCTIONS, (STACKS, DEPTH))
    functions[:, 0] = 0
    lengths = rng.integers(8, DEPTH, STACKS)
    for row in range(1, STACKS):
        shared = rng.integers(2, DEPTH)
        functions[row, :shared] = functions[rng.integers(row), :shared]
    names = [f"com.acme.package{number % 90}.Class{number % 700}.f{number}" for number in range(FUNCTIONS)]
    spelt = [
        tuple([names[function] for function in row[:length]])
        for row, length in zip(functions.tolist(), lengths.tolist(), strict=True)
    ]
    return spelt, functions[np.arange(STACKS), lengths - 1]


def _merged(host: HostStacks, chosen: BoolArray) -> dict[Stack, int]:
    """Return the samples of each stack, over the threads of the chosen entries."""
    counts = np.bincount(host.stacks[chosen], weights=host.counts[chosen], minlength=len(host.spelt))
    samples: dict[Stack, int] = {}
    for number in np.flatnonzero(counts).tolist():
        stack = host.spelt[number]
        samples[stack] = samples.get(stack, 0) + int(counts[number])
    return samples


def _trial(
    host: HostStacks, prune: Callable[[HostStacks, float, int], dict[Stack, int]], share: float, seed: int
) -> Trial:
    """Prune a host's stacks and aggregate the rest, from the sampler's stacks to counts for the store."""
    times = []
    for _ in range(_REPEATS):
        began = time.process_time()
        pruned = prune(host, share, seed)
        aggregate_stacks(pruned)
        times.append(time.process_time() - began)
    truth = own_samples(prune_threads(host, 0.0, 0))
    return Trial(share, min(times), percentage_error(truth, own_samples(pruned)))


def aggregate_stacks(stacks: Mapping[Stack, int]) -> None:
    """Process a host's stacks as Smidgen does: names, a message, and its counts."""
    source = Source("bench", "host")
    profile = build_profile(stacks, source=source, start=1_700_000_000.0, end=1_700_000_010.0)
    decoded = decode_profile(orjson.dumps(profile))
    count_samples([decoded], [0], window_s=60.0, stack_window_s=600.0)
