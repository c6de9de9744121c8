"""Strikes with their target, the proof that they struck, and the gaps in a run's evidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Hit:
    """Outcome of one strike."""

    kind: str
    target: str
    """The process, or a description of the target that is none."""
    struck: bool
    """Whether the strike had its effect, as observed from outside; ``proof`` is the observation."""
    proof: str
    stage: str = ""
    """The stage whose worker was struck; empty where none was."""
    pid: int = 0
    under_way: int = 0
    """Messages that the stage, or all stages, had before them when it struck."""

    def __str__(self) -> str:
        process = f" (pid {self.pid})" if self.pid else ""
        return f"{self.kind} of {self.target}{process}: {self.proof}"


@dataclass(frozen=True)
class StrikePlan:
    """Planned strikes of a run."""

    strikes: int
    stages: tuple[str, ...] = ()
    """The stages that are to be struck in turn; empty where the fault strikes something else."""
    kinds: tuple[str, ...] = ()
    """Kinds that strikes are drawn from: of ENOUGH_DRAWS each must be there."""


@dataclass(frozen=True)
class Ground:
    """Services, events and scans that the strikes met."""

    services: int
    events: int
    """Events that an undisturbed run reports."""
    parted: int
    """Scans that must come in parts under this load."""
    parts_seen: int
    """Scans of which parts were seen on the topic."""


FEWEST_SERVICES = 3
ENOUGH_DRAWS = 20


def lacking(plan: StrikePlan, hits: Sequence[Hit], ground: Ground) -> list[str]:
    """Return the gaps in a run's evidence, one line each; none if the run proves its claim."""
    struck = [hit for hit in hits if hit.struck]
    lines = [f"struck nothing: {hit}" for hit in hits if not hit.struck]
    if len(struck) < plan.strikes:
        lines.append(f"{len(struck)} of {plan.strikes} strikes struck")
    if struck and not any(hit.under_way for hit in struck):
        lines.append("nothing was under way at any strike")
    by_stage = Counter(hit.stage for hit in struck)
    if plan.strikes >= len(plan.stages):
        lines += [f"{stage} was never struck" for stage in plan.stages if not by_stage[stage]]
    kinds = {hit.kind for hit in struck}
    if plan.strikes >= ENOUGH_DRAWS:
        lines += [f"no {kind}" for kind in plan.kinds if kind not in kinds]
    if ground.services < FEWEST_SERVICES:
        lines.append(f"{ground.services} services, not {FEWEST_SERVICES}")
    if not ground.events:
        lines.append("an undisturbed run reports no event")
    if not ground.parted:
        lines.append("the load has no scan in parts")
    elif ground.parts_seen < ground.parted:
        lines.append(f"{ground.parts_seen} of {ground.parted} scans came in parts")
    return lines
