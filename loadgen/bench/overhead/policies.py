"""Sampling policies on a real process: fixed rates, and Atys' rule in the host agent's sampler (§5.2)."""

from __future__ import annotations

import math
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from agents.host.budget import rate_at
from agents.host.discovery import MatchedProcess
from agents.host.parts import Part
from agents.host.process_sampling import ProcessSampling, SamplingSettings
from agents.host.rules import How, Identity, SamplingTarget
from agents.profiles.formats import Stack
from agents.sampling.kernels import SamplerError
from agents.sampling.rates import FrequencyConfig, adjust, config_for, first_state
from loadgen.bench.overhead.blocks import BlockAnswers, count_functions
from loadgen.bench.overhead.services import FUNCTIONS
from pipeline.model import FloatArray


@dataclass(frozen=True, slots=True)
class Policy:
    """Bounds of the sampling rate; a fixed rate has equal bounds."""

    name: str
    setting: float  # Hz, or the number of samples that is accurate enough
    config: FrequencyConfig

    @property
    def is_fixed(self) -> bool:
        """Whether the rate is constant."""
        return self.config.lowest_hz == self.config.highest_hz


@dataclass(frozen=True, slots=True)
class Window:
    """Shares in a window: from its own samples, and from all samples since the last change."""

    start: float  # epoch seconds
    end: float
    rate_hz: float
    own: float  # share of the first function in this window's samples
    pooled: float


class Follower:
    """Adaptive rate: takes windows as they end and returns the rate of the next window."""

    def __init__(self, policy: Policy, window_s: float) -> None:
        self.windows: list[Window] = []
        self.stacks = Counter[Stack]()
        self._config = policy.config
        self._window_s = window_s
        self._state = first_state(policy.config)

    def rate_of(self, _: MatchedProcess) -> float:
        """Return the next window's rate, in the host agent's steps: a change may restart the kernel."""
        highest_hz = self._config.highest_hz
        level = round(math.log2(highest_hz / self._state.rate_hz))
        return rate_at(float(round(highest_hz)), level)

    def take(self, part: Part) -> None:
        """Count a window; a far shorter part is the begin or end of sampling, and left out."""
        if part.end - part.start < self._window_s / 2:
            return
        samples = count_functions(part.stacks)
        counts = np.array([samples[name] for name in FUNCTIONS], dtype=float)
        self._state = adjust(self._state, counts, part.end - part.start, self._config)
        pooled = self._state.shares
        own = counts[0] / max(counts.sum(), 1.0)
        self.windows.append(Window(part.start, part.end, part.rate_hz, float(own), float(pooled[0])))
        self.stacks.update(part.stacks)


def fixed(hz: int, samples: float, window_s: float) -> Policy:
    """Return a policy of a fixed rate; its samples are pooled as those of ``adaptive`` are."""
    config = replace(config_for(samples, window_s), lowest_hz=float(hz), highest_hz=float(hz))
    return Policy("fixed", hz, config)


def adaptive(samples: float, window_s: float) -> Policy:
    """Return a policy whose rate follows the profile, for the accuracy of ``samples`` samples."""
    return Policy("adaptive", samples, config_for(samples, window_s))


@contextmanager
def followed(policy: Policy, kernel: str, pid: int, folder: Path, window_s: float) -> Iterator[Follower]:
    """Sample a process by a policy while the context lasts.

    Raises:
        SamplerError: the kernel cannot sample it.
    """
    follower = Follower(policy, window_s)
    process = MatchedProcess((pid, 0.0), SamplingTarget(1, Identity("bench"), How(kernel=kernel)), 0.0)
    ended = threading.Event()
    sampling = ProcessSampling(
        process, SamplingSettings(folder, window_s, time.time, follower.rate_of, follower.take, ended.set)
    )
    sampling.start()
    try:
        yield follower
    finally:
        sampling.stop()
        ended.wait()
    if sampling.failure:
        raise SamplerError(sampling.failure)


def true_shares(windows: list[Window], answers: BlockAnswers) -> FloatArray:
    """Return the share of the first function in the CPU time that the program measured itself: (windows,).

    CPU time between two answers is spread evenly.
    """
    edges = np.array([[window.start, window.end] for window in windows]).reshape(-1, 2)
    spent = [
        np.diff(np.interp(edges, answers.times, spent_ns), axis=1)[:, 0]
        for spent_ns in answers.spent_ns.T.astype(float)
    ]
    return np.asarray(spent[0] / np.maximum(sum(spent), 1.0))


def within(windows: list[Window], answers: BlockAnswers) -> list[Window]:
    """Return the windows during which the program served requests throughout."""
    first, last = answers.times[0], answers.times[-1]
    return [window for window in windows if first <= window.start and window.end <= last]
