"""Blocks of requests with the sampler off and on in alternation, and the ratios between them."""

from __future__ import annotations

import math
import os
import re
import resource
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from agents.profiles.formats import Stack
from agents.profiles.formats.collapsed import parse_collapsed
from agents.sampling.kernels import Kernel, KernelRun, SamplerError, Sampling, make_kernel
from agents.sampling.process import ExistingProcess
from agents.sampling.sampler import ProcessSampler, stop_limit_s
from loadgen.bench.overhead.services import FUNCTIONS, RunningService
from loadgen.bench.usage import process_cpu_s
from loadgen.harness import Ratio, paired_ratio
from pipeline.model import FloatArray, IntArray

ORDERS = ((False, True, True, False), (True, False, False, True))
"""Whether the sampler is on in the blocks of a group, drawn for each: a drift that is steady cancels out."""

ORDER_SEED = 1

QUANTILES = {"p99": 0.99, "p99.9": 0.999}
INTERVAL_S = 2.0
POLL_S = 0.01

_IN_FUNCTION = {name: re.compile(rf"(?:^|\.){name}(?:$|[ (])") for name in FUNCTIONS}


@dataclass(frozen=True, slots=True)
class BlockPlan:
    """Length of a block, and number of groups of blocks."""

    block_s: float
    groups: int


@dataclass(frozen=True, slots=True)
class KernelSetting:
    """A kernel and its rate, with a folder for its files."""

    kernel: str
    hz: int
    folder: Path


@dataclass(frozen=True, slots=True)
class Cost:
    """Cost of one kernel at one rate for one program, and the error of its shares."""

    program: str
    kernel: str
    hz: int
    ratios: dict[str, Ratio]  # of throughput, latencies, and the service's CPU time a request, on ÷ off
    sampler_cpu: float  # share of one CPU that the kernel's own processes take
    samples: int  # samples whose stack holds one of the functions
    share: float | None  # share of these samples in the first function; None without any sample
    truth: float  # share of the first function in the CPU time that the service measured itself
    share_error: float | None  # standard error of the share, by its samples


@dataclass(frozen=True, slots=True)
class BlockAnswers:
    """Measurements of a block of requests."""

    figures: dict[str, float]  # requests a second, latencies and CPU a request in seconds
    times: FloatArray  # of the answers, in epoch seconds: (requests,)
    spent_ns: IntArray  # CPU time of each function so far at each of them: (requests, functions)


class WatchedKernel:
    """A kernel that keeps the last run that it started."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self.run: KernelRun | None = None

    def start(self, pid: int, wake: Callable[[], None]) -> KernelRun:
        """Start a run."""
        self.run = self._kernel.start(pid, wake)
        return self.run


def measure_cost(
    program: str,
    service: RunningService,
    setting: KernelSetting,
    load: BlockPlan,
    advance: Callable[[], None],
) -> Cost:
    """Measure groups of blocks.

    Raises:
        SamplerError: the kernel is not installed, or cannot sample the service.
        NotHere: the service ended.
    """
    made = make_kernel(setting.kernel, Sampling(setting.folder, time.time, setting.hz, longest_s=60))
    values: dict[bool, list[dict[str, float]]] = {False: [], True: []}
    counts, spent = Counter[str](), np.zeros(len(FUNCTIONS))
    cpu_s = 0.0
    for order in np.random.default_rng(ORDER_SEED).integers(len(ORDERS), size=load.groups):
        blocks: dict[bool, list[dict[str, float]]] = {False: [], True: []}
        for on in ORDERS[order]:
            if not on:
                blocks[on].append(ask_for(service, load.block_s).figures)
            else:
                cpu_before, before = children_s(), service.ask()
                with _sampled(made, setting.hz, service.pid) as collected:
                    blocks[on].append(ask_for(service, load.block_s).figures)
                    spent += np.subtract(service.ask(), before)
                cpu_s += children_s() - cpu_before
                counts += count_functions(parse_collapsed(b"".join(collected)).stacks)
            advance()
        for on, measured in blocks.items():
            values[on].append(
                {name: float(np.mean([figures[name] for figures in measured])) for name in measured[0]}
            )
    ratios = {
        name: paired_ratio(
            [figures[name] for figures in values[False]], [figures[name] for figures in values[True]]
        )
        for name in values[False][0]
    }
    samples, truth = counts.total(), float(spent[0] / spent.sum())
    share = counts[FUNCTIONS[0]] / samples if samples else None
    error = math.sqrt(truth * (1 - truth) / samples) if samples else None
    sampled_s = load.groups * ORDERS[0].count(True) * load.block_s
    return Cost(program, setting.kernel, setting.hz, ratios, cpu_s / sampled_s, samples, share, truth, error)


def count_functions(stacks: Mapping[Stack, int]) -> Counter[str]:
    """Return the number of samples in each of the functions that a request calls."""
    counts = Counter[str]()
    for stack, count in stacks.items():
        for name, pattern in _IN_FUNCTION.items():
            if any(pattern.search(frame) for frame in stack):
                counts[name] += count
    return counts


def ask_for(service: RunningService, block_s: float, more_after_s: float = math.inf) -> BlockAnswers:
    """Send one request after the other; from ``more_after_s`` on they call a function more often."""
    times, spent = [], []
    with _yielding():
        cpu_before_s = process_cpu_s(service.pid)
        began = time.time()
        begin = last = time.perf_counter()
        while last < begin + block_s:
            spent.append(service.ask(more=last >= begin + more_after_s))
            last = time.perf_counter()
            times.append(last)
        cpu_s = process_cpu_s(service.pid) - cpu_before_s
    latencies = np.diff(times, prepend=begin)
    quantiles = {name: float(np.quantile(latencies, q)) for name, q in QUANTILES.items()}
    figures = {"throughput": len(latencies) / (last - begin), **quantiles, "cpu": cpu_s / len(latencies)}
    return BlockAnswers(figures, np.asarray(times) - begin + began, np.asarray(spent))


@contextmanager
def _yielding() -> Iterator[None]:
    """Make this thread take no CPU from the service at the moment when an answer wakes it.

    Otherwise, on a busy machine, the service waits for a CPU inside of ``write`` most of the time. py-spy
    counts threads that wait for a CPU, so that hardly a sample would be in the functions.
    """
    before = os.sched_getscheduler(0), os.sched_getparam(0)
    os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    try:
        yield
    finally:
        os.sched_setscheduler(0, *before)


@contextmanager
def _sampled(kernel: Kernel, hz: int, pid: int) -> Iterator[list[bytes]]:
    """Sample a process while the context lasts; afterwards the list has all stacks."""
    watched = WatchedKernel(kernel)
    limit_s = stop_limit_s(hz)
    sampler = ProcessSampler(
        watched, ExistingProcess(pid), interval_s=INTERVAL_S, clock=time.time, stop_s=limit_s
    )
    collected: list[bytes] = []
    failures: list[SamplerError] = []

    def sample() -> None:
        try:
            collected.extend(interval.data for interval in sampler.intervals())
        except SamplerError as error:
            failures.append(error)

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        while thread.is_alive() and not (watched.run and watched.run.ready):
            time.sleep(POLL_S)
        if not failures:
            yield collected
    finally:
        sampler.stop()
        thread.join()
    if failures:
        raise failures[0]


def children_s() -> float:
    """Return the processor time of all ended child processes."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
