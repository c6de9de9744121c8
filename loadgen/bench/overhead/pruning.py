"""Time against error of pruning the stacks of a real program, set up on one block (Atys §5.3, §6.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from agents.profiles.formats import Stack
from agents.sampling.rates import Trial, plan_pruning, thin_stacks, try_pruning
from loadgen.bench.sampling.stacks import MOST_ERROR, aggregate_stacks

OFFSET_SEED = 1


@dataclass(frozen=True, slots=True)
class PruningCost:
    """Savings of pruning in the aggregation of a program's stacks, and its error."""

    program: str
    kernel: str
    stacks: float  # different ones of a block, their mean
    share: float  # of the samples, in pruned stacks, as the first block has it chosen
    saved: float  # share of the aggregation time of the other blocks
    error: float  # MAPE of the own samples of functions, of each block, their mean


def measure_pruning(program: str, kernel: str, blocks: Sequence[Mapping[Stack, int]]) -> PruningCost:
    """Choose the pruning on the first block, within Atys' error, and measure it on the other blocks.

    Args:
        program: Name of the program.
        kernel: The kernel that sampled the program.
        blocks: Stacks with their samples; at least two blocks.
    """
    first, *held_out = blocks
    rng = np.random.default_rng(OFFSET_SEED)
    plan = plan_pruning(first, MOST_ERROR, rng, aggregate_stacks)
    different = float(np.mean([len(block) for block in blocks]))
    if not any(_thinned(block, plan.share, 0.5) != block for block in held_out):
        return PruningCost(program, kernel, different, 0.0, 0.0, 0.0)
    whole = [_trial(block, 0.0, 0.0) for block in held_out]
    pruned = [_trial(block, plan.share, rng.random()) for block in held_out]
    return PruningCost(
        program,
        kernel,
        different,
        plan.share,
        1 - sum(trial.time_s for trial in pruned) / sum(trial.time_s for trial in whole),
        float(np.mean([trial.error for trial in pruned])),
    )


def _trial(stacks: Mapping[Stack, int], share: float, offset: float) -> Trial:
    """Prune stacks and aggregate the rest, as the agent and the stage aggregate do."""
    return try_pruning(stacks, share, offset, aggregate_stacks)


def _thinned(stacks: Mapping[Stack, int], share: float, offset: float) -> Mapping[Stack, int]:
    return thin_stacks(stacks, share, offset) if share else stacks
