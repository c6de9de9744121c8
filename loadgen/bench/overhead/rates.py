"""Cost against error of sampling policies on a real program, whose profile changes once (Atys §6.4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from agents.profiles.formats import Stack
from agents.sampling.kernels import SamplerError
from loadgen.bench.overhead.blocks import BlockAnswers, ask_for, children_s
from loadgen.bench.overhead.policies import Policy, Window, followed, true_shares, within
from loadgen.bench.overhead.services import RunningService
from loadgen.bench.sampling.rates import CORRECTED, FIXED, PolicyPoint, saved
from loadgen.harness import Ratio, paired_ratio

ORDER_SEED = 1


@dataclass(frozen=True, slots=True)
class Sampled:
    """A program with its kernel, and the settings of its blocks. ``folder`` is for the kernel's files."""

    program: str
    kernel: str
    service: RunningService
    folder: Path
    window_s: float
    block_s: float
    groups: int


@dataclass(frozen=True, slots=True)
class PolicyCost:
    """Cost of a policy for a program, and the error of the shares of its windows."""

    program: str
    kernel: str
    policy: str
    setting: float  # Hz, or the number of samples that is accurate enough
    mean_hz: float
    windows: int
    error: float  # mean absolute error of the share of each window, by the policy's own estimate
    pooled_error: float  # with all samples since the last change, for fixed rates, too
    saved: float  # share of the samples, against the fixed rate of the same error
    kernel_cpu: float  # share of one CPU that the kernel's own processes take
    ratios: Mapping[str, Ratio]  # of throughput, latencies and CPU a request, on ÷ off


@dataclass(frozen=True, slots=True)
class _Block:
    """One block with the sampler on."""

    windows: Sequence[Window]
    truth: Sequence[float]
    figures: Mapping[str, float]
    kernel_cpu: float


def measure_policies(
    sampled: Sampled, policies: Sequence[Policy], advance: Callable[[], None]
) -> tuple[list[PolicyCost], list[Mapping[Stack, int]]]:
    """Measure blocks without a sampler and with each policy, in an order drawn anew for each group.

    In the middle of each block its requests change, and so does its profile.

    Returns:
        The cost of each policy, and the stacks of the last policy's blocks.

    Raises:
        SamplerError: the kernel is not installed, cannot sample the service, or gave no whole window.
        NotHere: the service ended.
    """
    off: list[Mapping[str, float]] = []
    on: list[list[_Block]] = [[] for _ in policies]
    stacks: list[Mapping[Stack, int]] = []
    rng = np.random.default_rng(ORDER_SEED)
    for _ in range(sampled.groups):
        for number in rng.permutation(len(policies) + 1).tolist():
            if number == len(policies):
                off.append(_asked(sampled).figures)
            else:
                block, counts = _block(sampled, policies[number])
                on[number].append(block)
                if number == len(policies) - 1:
                    stacks.append(counts)
            advance()
    measured = [_Measured(policy, blocks) for policy, blocks in zip(policies, on, strict=True)]
    points = [policy_blocks.point for policy_blocks in measured]
    return [_cost(sampled, policy_blocks, off, points) for policy_blocks in measured], stacks


def _asked(sampled: Sampled) -> BlockAnswers:
    return ask_for(sampled.service, sampled.block_s, sampled.block_s / 2)


def _block(sampled: Sampled, policy: Policy) -> tuple[_Block, Mapping[Stack, int]]:
    before_s = children_s()
    with followed(policy, sampled.kernel, sampled.service.pid, sampled.folder, sampled.window_s) as follower:
        answers = _asked(sampled)
    kernel_cpu = (children_s() - before_s) / sampled.block_s
    windows = within(follower.windows, answers)
    if not windows:
        raise SamplerError("a block holds no whole window: make it longer")
    truth = true_shares(windows, answers).tolist()
    return _Block(windows, truth, answers.figures, kernel_cpu), Counter(follower.stacks)


@dataclass(frozen=True, slots=True)
class _Measured:
    """All blocks of a policy."""

    policy: Policy
    blocks: Sequence[_Block]

    def error(self, *, pooled: bool) -> float:
        """Return the mean absolute error of the shares of all windows."""
        errors = [
            abs((window.pooled if pooled else window.own) - truth)
            for block in self.blocks
            for window, truth in zip(block.windows, block.truth, strict=True)
        ]
        return float(np.mean(errors))

    @property
    def point(self) -> PolicyPoint:
        """Cost and error in the form of the benchmark of simulated services, which computes the savings."""
        is_fixed = self.policy.is_fixed
        rate_hz = float(np.mean([window.rate_hz for block in self.blocks for window in block.windows]))
        error, pooled = self.error(pooled=not is_fixed), self.error(pooled=True)
        name = FIXED if is_fixed else CORRECTED
        return PolicyPoint("program", name, self.policy.setting, rate_hz, error, pooled, pooled)


def _cost(
    sampled: Sampled,
    policy_blocks: _Measured,
    off: Sequence[Mapping[str, float]],
    points: Sequence[PolicyPoint],
) -> PolicyCost:
    ratios = {
        name: paired_ratio(
            [figures[name] for figures in off], [block.figures[name] for block in policy_blocks.blocks]
        )
        for name in off[0]
    }
    return PolicyCost(
        program=sampled.program,
        kernel=sampled.kernel,
        policy=policy_blocks.policy.name,
        setting=policy_blocks.policy.setting,
        mean_hz=policy_blocks.point.mean_hz,
        windows=sum(len(block.windows) for block in policy_blocks.blocks),
        error=policy_blocks.point.error,
        pooled_error=policy_blocks.error(pooled=True),
        saved=saved(points, policy_blocks.point),
        kernel_cpu=float(np.mean([block.kernel_cpu for block in policy_blocks.blocks])),
        ratios=ratios,
    )
