"""``smidgen bench adaptive``: rates that follow the profile, and pruning, on real programs."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from agents.sampling.kernels import SamplerError, suitable_kernels
from loadgen.bench.overhead.command import Skipped, kernel_option, program_option
from loadgen.bench.overhead.policies import adaptive as adaptive_policy
from loadgen.bench.overhead.policies import fixed
from loadgen.bench.overhead.pruning import PruningCost, measure_pruning
from loadgen.bench.overhead.rates import PolicyCost, Sampled, measure_policies
from loadgen.bench.overhead.services import PROGRAMS, NotHere, started
from loadgen.terminal import progress
from pipeline.commands.options import Duration
from pipeline.commands.tables import print_json
from pipeline.model.errors import ConfigError

RATES_HZ = (11, 49, 199)
LEAST_WINDOWS = 4


@dataclass(frozen=True, slots=True)
class _Plan:
    """What is measured of each program."""

    kernels: Sequence[str]
    rates_hz: Sequence[int]
    samples: Sequence[float]
    window_s: float
    block_s: float
    groups: int


@click.command()
@program_option
@kernel_option("the best that is installed")
@click.option(
    "--hz",
    "rates",
    type=click.IntRange(1, 1000),
    multiple=True,
    default=RATES_HZ,
    show_default=True,
    help="Fixed rates.",
)
@click.option(
    "--samples",
    type=click.FloatRange(100, 100_000),
    multiple=True,
    default=(300.0,),
    show_default=True,
    help="That the profile of a window is to be as accurate as.",
)
@click.option(
    "--window", type=Duration(), default=5.0, show_default="5s", help="After which a rate may change."
)
@click.option("--duration", type=Duration(), default=120.0, show_default="2m", help="Of a block.")
@click.option(
    "--groups",
    type=click.IntRange(2, 1000),
    default=4,
    show_default=True,
    help="Of a block without a sampler and one of each policy, in an order that is drawn.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a result.")
def adaptive(
    programs: tuple[str, ...],
    kernels: tuple[str, ...],
    rates: tuple[int, ...],
    samples: tuple[float, ...],
    window: float,
    duration: float,
    groups: int,
    as_json: bool,
) -> None:
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
    if window * LEAST_WINDOWS > duration:
        raise ConfigError(f"--duration: should be at least {LEAST_WINDOWS} windows")
    plan = _Plan(kernels, rates, samples, window, duration, groups)
    for program in programs or tuple(PROGRAMS):
        for result in _measure(program, plan):
            if as_json:
                print_json(asdict(result))
            elif isinstance(result, Skipped):
                click.echo(f"{result.what}: left out: {result.reason}", err=True)
            else:
                click.echo(pruning_line(result) if isinstance(result, PruningCost) else policy_line(result))


def _measure(program: str, plan: _Plan) -> Iterator[PolicyCost | PruningCost | Skipped]:
    with tempfile.TemporaryDirectory(prefix="smidgen-adaptive-") as folder:
        try:
            with started(program, Path(folder)) as service:
                service.ask()  # it runs what it is, and not what starts it
                suitable = suitable_kernels(service.pid)
                chosen = [name for name in suitable if name in plan.kernels] if plan.kernels else suitable[:1]
                if not chosen:
                    yield Skipped(program, "no kernel that is asked for suits it")
                for kernel in chosen:
                    sampled = Sampled(
                        program, kernel, service, Path(folder), plan.window_s, plan.block_s, plan.groups
                    )
                    yield from _measure_kernel(sampled, plan)
        except NotHere as error:
            yield Skipped(program, str(error))


def _measure_kernel(sampled: Sampled, plan: _Plan) -> Iterator[PolicyCost | PruningCost | Skipped]:
    policies = [adaptive_policy(each, plan.window_s) for each in plan.samples]
    policies += [fixed(hz, max(plan.samples), plan.window_s) for hz in sorted(plan.rates_hz)]
    what = f"{sampled.program}, {sampled.kernel}"
    try:
        with progress(what, plan.groups * (len(policies) + 1)) as advance:
            costs, stacks = measure_policies(sampled, policies, advance)
            yield from costs
            yield measure_pruning(sampled.program, sampled.kernel, stacks)
    except SamplerError as error:
        yield Skipped(what, str(error))


def policy_line(cost: PolicyCost) -> str:
    """Return what a policy costs in one line."""
    ratios = "".join(
        f"  {name} {ratio.mean:.3f} ({ratio.low:.3f} to {ratio.high:.3f})"
        for name, ratio in cost.ratios.items()
    )
    return (
        f"{cost.program:<7}{cost.kernel:<15}{cost.policy:<9}{cost.setting:>6g}  mean {cost.mean_hz:.1f} Hz  "
        f"error {cost.error * 100:.2f} points, pooled {cost.pooled_error * 100:.2f}, "
        f"{cost.windows} windows  saved {cost.saved * 100:.0f} %  kernel {cost.kernel_cpu * 100:.1f} %"
        f"{ratios}"
    )


def pruning_line(cost: PruningCost) -> str:
    """Return what pruning saves in one line."""
    return (
        f"{cost.program:<7}{cost.kernel:<15}pruning  {cost.share * 100:.1f} % of the samples in "
        f"{cost.stacks:.0f} stacks  time saved {cost.saved * 100:.0f} %  MAPE {cost.error * 100:.2f} %"
    )
