"""One simulated process as an agent samples it: the dataset of a run, with one step or none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.backtest.dataset import Dataset
from pipeline.model import FloatArray, MetricKind

START = 1_700_000_000.0
SERVICE = "simulated"
AFTER_S, BEFORE_S = 20.0, 30.0
"""Spans whose sampling error is the unit of a step's size, for all workloads."""

_TOP, _LEAVES = 6, 4  # functions that main calls, and functions that each of them calls
_EVEN = 2.0  # of a Dirichlet distribution: shares from a few per mille to some tenths
_CAPABLE = (0.05, 0.5)  # shares of functions that may get slower: 6 standard errors exceed the threshold


@dataclass(frozen=True, slots=True)
class Process:
    """Settings of a simulated process."""

    rate_hz: float = 101.0  # samples a second, all of them busy
    interval_s: int = 2  # from one message of the agent to the next
    wander: float = 0.0  # relative standard deviation of each function's cost, beyond sampling
    memory_s: float = 10.0  # correlation time of that wandering


@dataclass(frozen=True, slots=True)
class Slowdown:
    """Second at which a function gets slower, and the rise of its gCPU as a function of its share."""

    at: int  # second
    rise: Callable[[float], float]


@dataclass(frozen=True, slots=True)
class SlowerFunction:
    """A function that got slower."""

    subroutine: str
    time: float
    before: float  # gCPU
    after: float


def standard_error(share: float, rate_hz: float) -> float:
    """Return the sampling error of a difference of gCPU: the 20 s after a moment less the 30 s before."""
    return float(np.sqrt(share * (1 - share) / rate_hz * (1 / AFTER_S + 1 / BEFORE_S)))


def simulate(
    process: Process, seconds: int, rng: np.random.Generator, slowdown: Slowdown | None = None
) -> tuple[Dataset, SlowerFunction | None]:
    """Simulate a process for some seconds.

    Args:
        process: Settings of the process.
        seconds: Length of the simulation.
        rng: Draws the program, its samples and which function gets slower.
        slowdown: Slowdown of that function; None for none.
    """
    stacks = [
        ("main", f"app.f{top}", f"app.f{top}.g{leaf}") for top in range(_TOP) for leaf in range(_LEAVES)
    ]
    shares = rng.dirichlet(np.full(len(stacks), _EVEN))
    costs = np.repeat(shares[:, None], -(-seconds // process.interval_s), axis=1)
    step = None
    if slowdown is not None:
        row = int(rng.choice(np.flatnonzero((shares >= _CAPABLE[0]) & (shares <= _CAPABLE[1]))))
        after = float(shares[row]) + slowdown.rise(float(shares[row]))
        step = SlowerFunction(stacks[row][-1], START + slowdown.at, float(shares[row]), after)
        cost = after * (1 - shares[row]) / (1 - after)  # the costs of the other functions stay
        ends = np.arange(1, costs.shape[1] + 1) * process.interval_s
        costs[row] += (cost - shares[row]) * np.clip((ends - slowdown.at) / process.interval_s, 0, 1)
    costs = costs * _wandering(process, costs.shape, rng)
    counts = rng.multinomial(round(process.rate_hz * process.interval_s), (costs / costs.sum(axis=0)).T).T
    return _dataset(process, seconds, stacks, counts.astype(np.float64)), step


def _wandering(process: Process, shape: tuple[int, ...], rng: np.random.Generator) -> FloatArray:
    """Return factors of costs that wander as autoregressive processes: (stacks, intervals)."""
    if not process.wander:
        return np.ones(shape)
    memory = float(np.exp(-process.interval_s / process.memory_s))
    noise = rng.normal(0, process.wander * np.sqrt(1 - memory**2), shape)
    noise[:, 0] /= np.sqrt(1 - memory**2)
    for column in range(1, shape[1]):
        noise[:, column] += memory * noise[:, column - 1]
    factors: FloatArray = np.exp(noise)
    return factors


def _dataset(
    process: Process, seconds: int, stacks: Sequence[tuple[str, ...]], counts: FloatArray
) -> Dataset:
    """Return counts of stacks, (stacks, intervals), as a dataset with windows of a second."""
    names = tuple(sorted({frame for stack in stacks for frame in stack}))
    held = np.array([[name in stack for stack in stacks] for name in names], dtype=np.float64)
    kinds: tuple[MetricKind, ...] = tuple("subroutine" for _ in names)
    windows = np.zeros((len(stacks), counts.shape[1] * process.interval_s))
    windows[:, :: process.interval_s] = counts  # an interval counts in the window in which it begins
    windows = windows[:, :seconds]
    return Dataset(
        service=SERVICE,
        start=START,
        end=START + seconds,
        window_s=1.0,
        stack_window_s=1.0,
        kinds=kinds,
        names=names,
        samples=held @ windows,
        totals=windows.sum(axis=0),
        stacks=tuple(stacks),
        stack_samples=windows,
        metrics=(),
        changes=(),
    )
