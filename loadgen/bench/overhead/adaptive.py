"""``smidgen bench adaptive``: rates that follow the profile, and pruning, on real programs."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from agents.sampling.kernels import SamplerError, suitable_kernels
from loadgen.bench.overhead.command import Skipped, kernel_option, program_option, ratio_cells, show_lines
from loadgen.bench.overhead.policies import adaptive as adaptive_policy
from loadgen.bench.overhead.policies import fixed
from loadgen.bench.overhead.pruning import PruningCost, measure_pruning
from loadgen.bench.overhead.rates import PolicyCost, Sampled, measure_policies
from loadgen.bench.overhead.services import PROGRAMS, NotHere, started
from loadgen.harness import Experiment, bench
from loadgen.terminal import progress
from pipeline.commands.request import Duration, option
from pipeline.model.errors import ConfigError

RATES_HZ = (11, 49, 199)
LEAST_WINDOWS = 4


@dataclass(frozen=True, slots=True)
class _AdaptiveRequest:
    programs: tuple[str, ...] = program_option()
    kernels: tuple[str, ...] = kernel_option("the best that is installed")
    rates: tuple[int, ...] = option(
        RATES_HZ, flag="--hz", least=1, most=1000, help="Fixed rate to compare with."
    )
    samples: tuple[float, ...] = option(
        (300.0,), least=100, most=100_000, help="Samples whose accuracy the profile of a window should have."
    )
    window: float = option(
        5.0, kind=Duration(), show_default="5s", help="Time after which a rate may change."
    )
    duration: float = option(120.0, kind=Duration(), show_default="2m", help="Duration of a block.")
    groups: int = option(
        4,
        least=2,
        most=1000,
        help="Groups of a block without a sampler and a block of each policy, in random order.",
    )


@bench(json="one JSON object a result")
def adaptive(request: _AdaptiveRequest) -> Experiment[PolicyCost | PruningCost | Skipped]:
    """Measure what rates that follow the profile, and pruning, save of sampling real programs.

    The programs are those of `smidgen bench overhead`. In the middle of each block their requests change, and
    so does the profile. The sampler is the host agent's, at fixed rates and at those of Atys' rule with noise
    taken out. "error" is that of the first function's share in each window, against the CPU time that the
    program measured itself: of a fixed rate by the window's own samples, of an adaptive one by all since the
    last change; "pooled" is the latter for both. "saved" is the share of samples that a policy takes less
    than the fixed rate of the same error, between those that are measured. "kernel" is the CPU that the
    kernel's processes take, of one core; throughput, latencies and cpu are on ÷ off. Pruning is chosen on
    the stacks of one block within an error of 0.58 %, and measured on the others.
    """
    if request.window * LEAST_WINDOWS > request.duration:
        raise ConfigError(f"--duration: should be at least {LEAST_WINDOWS} windows")
    programs = request.programs or tuple(PROGRAMS)
    return Experiment(
        lambda _: chain.from_iterable(_measure(program, request) for program in programs),
        0,
        show_lines(_line_of),
        streamed=True,
    )


def _line_of(cost: PolicyCost | PruningCost) -> str:
    return pruning_line(cost) if isinstance(cost, PruningCost) else policy_line(cost)


def _measure(program: str, request: _AdaptiveRequest) -> Iterator[PolicyCost | PruningCost | Skipped]:
    with tempfile.TemporaryDirectory(prefix="smidgen-adaptive-") as folder:
        try:
            with started(program, Path(folder)) as service:
                service.ask()  # it runs what it is, and not what starts it
                suitable = suitable_kernels(service.pid)
                chosen = (
                    [name for name in suitable if name in request.kernels]
                    if request.kernels
                    else suitable[:1]
                )
                if not chosen:
                    yield Skipped(program, "no kernel that is asked for suits it")
                for kernel in chosen:
                    sampled = Sampled(
                        program,
                        kernel,
                        service,
                        Path(folder),
                        request.window,
                        request.duration,
                        request.groups,
                    )
                    yield from _measure_kernel(sampled, request)
        except NotHere as error:
            yield Skipped(program, str(error))


def _measure_kernel(
    sampled: Sampled, request: _AdaptiveRequest
) -> Iterator[PolicyCost | PruningCost | Skipped]:
    policies = [adaptive_policy(samples, request.window) for samples in request.samples]
    policies += [fixed(hz, max(request.samples), request.window) for hz in sorted(request.rates)]
    what = f"{sampled.program}, {sampled.kernel}"
    try:
        with progress(what, request.groups * (len(policies) + 1)) as advance:
            costs, stacks = measure_policies(sampled, policies, advance)
            yield from costs
            yield measure_pruning(sampled.program, sampled.kernel, stacks)
    except SamplerError as error:
        yield Skipped(what, str(error))


def policy_line(cost: PolicyCost) -> str:
    """Return the costs of a policy in one line."""
    return (
        f"{cost.program:<7}{cost.kernel:<15}{cost.policy:<9}{cost.setting:>6g}  mean {cost.mean_hz:.1f} Hz  "
        f"error {cost.error * 100:.2f} points, pooled {cost.pooled_error * 100:.2f}, "
        f"{cost.windows} windows  saved {cost.saved * 100:.0f} %  kernel {cost.kernel_cpu * 100:.1f} %"
        f"{ratio_cells(cost.ratios)}"
    )


def pruning_line(cost: PruningCost) -> str:
    """Return the savings of pruning in one line."""
    return (
        f"{cost.program:<7}{cost.kernel:<15}pruning  {cost.share * 100:.1f} % of the samples in "
        f"{cost.stacks:.0f} stacks  time saved {cost.saved * 100:.0f} %  MAPE {cost.error * 100:.2f} %"
    )
