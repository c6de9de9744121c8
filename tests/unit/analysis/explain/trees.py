"""Call trees with Poisson counts around a change and on earlier days, for tests of the explanation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.analysis.cost_shift.stack_history import stack_history
from pipeline.analysis.explain.explanation import Explanation, explain
from pipeline.analysis.stacks import index_stacks
from pipeline.model import FloatArray, StackMatrix

Stack = tuple[str, ...]
Change = Callable[[Stack], float]
"""The factor by which the rate of a stack changes."""


@dataclass(frozen=True, slots=True)
class Tree:
    """Stacks with the samples that each is expected to have in a span."""

    stacks: tuple[Stack, ...]
    rates: FloatArray

    def draw(
        self,
        rng: np.random.Generator,
        change: Change = lambda _: 1.0,
        *,
        days: int = 7,
        excess: float = 0.0,
        candidates: Sequence[str] = (),
    ) -> Explanation:
        """Return the explanation of a change, with earlier days that have none.

        Args:
            rng: Draws the counts.
            change: Factors of rates.
            days: Earlier days.
            excess: Variance of counts beyond Poisson's, in units of their mean.
            candidates: Labels that are known to have risen.
        """
        ones = np.ones(len(self.stacks))
        after = np.array([change(stack) for stack in self.stacks])
        return self.draw_between(rng, ones, after, days=days, excess=excess, candidates=candidates)

    def draw_between(
        self,
        rng: np.random.Generator,
        before: FloatArray,
        after: FloatArray,
        *,
        days: int = 7,
        excess: float = 0.0,
        candidates: Sequence[str] = (),
    ) -> Explanation:
        """Return the explanation of what rates did, given by factors before and after."""
        earlier = [self._counts(rng, excess, before, before) for _ in range(days)]
        history = stack_history(index_stacks(self._counts(rng, excess, before, after)), earlier)
        return explain(history, candidates)

    def grown(self, stacks: Sequence[Stack], rates: Sequence[float]) -> Tree:
        """Return the tree with more stacks."""
        return Tree((*self.stacks, *stacks), np.append(self.rates, rates))

    def _counts(self, rng: np.random.Generator, excess: float, *factors: FloatArray) -> StackMatrix:
        before, after = (_draw(rng, self.rates * factor, excess) for factor in factors)
        return StackMatrix(self.stacks, before, after, float(before.sum()), float(after.sum()))


def _draw(rng: np.random.Generator, mean: FloatArray, excess: float) -> FloatArray:
    if excess:
        mean = rng.gamma(np.maximum(mean, 1e-9) / excess, excess)
    return np.asarray(rng.poisson(mean), dtype=np.float64)


def build_tree(entries: int = 6, samples: float = 2000.0) -> Tree:
    """Return a service: each entry has a handler, which calls two subroutines of its own and two shared ones.

    The shared ``codec`` calls ``pack``; every subroutine has a cost of its own.
    """
    stacks: list[Stack] = []
    rates: list[float] = []
    for number in range(entries):
        top: Stack = ("main", f"entry{number}", f"handle{number}")
        own: Sequence[Stack] = (
            top,
            (*top, f"load{number}"),
            (*top, f"load{number}", f"scan{number}"),
            (*top, f"save{number}"),
            (*top, "codec"),
            (*top, "codec", "pack"),
            (*top, f"save{number}", "codec"),
            (*top, f"save{number}", "codec", "pack"),
            (*top, "log"),
        )
        stacks += own
        rates += [samples * (1 + (number + row) % 3) for row in range(len(own))]
    return Tree(tuple(stacks), np.array(rates))
