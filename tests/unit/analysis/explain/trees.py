"""Call trees with Poisson counts around a change and on earlier days, for tests of the explanation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

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

    def draw(self, rng: np.random.Generator, change: Change = lambda _: 1.0, *, days: int = 7) -> Explanation:
        """Return the explanation of a change, with earlier days that have none."""
        ones = np.ones(len(self.stacks))
        return self.draw_between(rng, ones, np.array([change(stack) for stack in self.stacks]), days=days)

    def draw_between(
        self, rng: np.random.Generator, before: FloatArray, after: FloatArray, *, days: int = 7
    ) -> Explanation:
        """Return the explanation of what rates did, given by factors before and after."""
        earlier = [self._counts(rng, before, before) for _ in range(days)]
        return explain(index_stacks(self._counts(rng, before, after)), earlier)

    def _counts(self, rng: np.random.Generator, *factors: FloatArray) -> StackMatrix:
        before, after = (rng.poisson(self.rates * factor).astype(float) for factor in factors)
        return StackMatrix(self.stacks, before, after, float(before.sum()), float(after.sum()))


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
