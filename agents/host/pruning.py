"""Pruning of the stacks that a host sends, as far as an error allows (Atys §5.1, §5.3).

Each service has an initialisation stage once an hour: several shares of one interval's samples are pruned by
way of trial, and time and error are measured. Until the next stage, the share that saves the most time within
the allowed error is pruned, and none if no share saves time.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from agents.host.parts import Part
from agents.profiles.formats import Stack
from agents.sampling.rates import plan_pruning, thin_stacks
from pipeline.model.units import HOUR_S

log = logging.getLogger(__name__)

PLANNED_S = HOUR_S
"""Seconds for which a service keeps its share."""

Aggregate = Callable[[Part], object]
"""The processing of pruned stacks, whose time pruning saves."""


@dataclass(frozen=True, slots=True)
class _Planned:
    share: float
    until: float


class Pruner:
    """Prunes parts, each service by a share of its own.

    Args:
        most_error: Largest mean error of the own samples of a service's top functions, as a ratio.
        rng: Generator for drawing rare stacks.
    """

    def __init__(self, most_error: float, rng: np.random.Generator) -> None:
        self._most_error = most_error
        self._rng = rng
        self._planned: dict[str, _Planned] = {}

    def prune(self, part: Part, aggregate: Aggregate) -> Part:
        """Return a merged part with a draw of its rare stacks; functions keep their samples on average."""
        if not part.stacks:
            return part
        service = part.identity.service
        planned = self._planned.get(service)
        if planned is None or part.end >= planned.until:
            planned = self._planned[service] = self._initialise(part, aggregate)
        if not planned.share:
            return part
        return replace(part, stacks=thin_stacks(part.stacks, planned.share, self._rng.random()))

    def _initialise(self, part: Part, aggregate: Aggregate) -> _Planned:
        def whole(stacks: Mapping[Stack, int]) -> object:
            return aggregate(replace(part, stacks=stacks))

        plan = plan_pruning(part.stacks, self._most_error, self._rng, whole)
        share = plan.share if plan.saved > 0.0 else 0.0
        log.info(
            "%s: stacks with %.1f %% of the samples are pruned: saves %.1f %% of the time, error %.2f %%",
            part.identity.service,
            100 * share,
            100 * plan.saved if share else 0.0,
            100 * plan.error if share else 0.0,
        )
        return _Planned(share, part.end + PLANNED_S)
