"""Worth of each step of the pipeline: the accuracy suite again without it, on the same fleets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from loadgen.evaluation.suite.runs import FIGURES, Figure, Job, Run, figure_of, mean_json, pooled
from loadgen.harness import Mean, mean_of
from pipeline.model.errors import ConfigError
from pipeline.model.steps import ABLATABLE as STEPS

SHOWN: tuple[Figure, ...] = tuple(figure for figure in FIGURES if figure.name != "delay")
"""What a step may be worth: events that are right, repeated or false, cost shifts, root causes, groups."""


@dataclass(frozen=True, slots=True)
class Worth:
    """Worth of one step: the pooled runs without it, and the paired differences to the runs with it."""

    step: str
    without: Mapping[str, Any]  # pooled
    differences: tuple[Mean | None, ...]  # without minus with, one for each of SHOWN

    def to_json(self) -> dict[str, Any]:
        """Return it as a JSON object."""
        named = zip(SHOWN, self.differences, strict=True)
        return {
            "without": self.step,
            "all": self.without,
            "difference": {figure.name: mean_json(mean) for figure, mean in named},
        }


def parse_steps(given: str) -> tuple[str, ...]:
    """Read names of steps, separated by commas.

    Raises:
        ConfigError: an unknown name, or none at all.
    """
    steps = tuple(dict.fromkeys(step.strip() for step in given.split(",") if step.strip()))
    for step in steps:
        if step not in STEPS:
            raise ConfigError(f"unknown step {step!r}; steps are {', '.join(STEPS)}")
    if not steps:
        raise ConfigError(f"--without names nothing; steps are {', '.join(STEPS)}")
    return steps


def ablation_jobs(jobs: Sequence[Job], steps: Sequence[str] = STEPS) -> list[Job]:
    """Return the jobs, and each of them again without each step in turn."""
    return [*jobs, *(replace(job, without=(step,)) for step in steps for job in jobs)]


def worth_of_steps(runs: Sequence[Run]) -> list[Worth]:
    """Pair the runs of ``ablation_jobs`` by scenario and seed, and return the worth of each step."""
    whole = {(run["scenario"], run["seed"]): run for run in runs if not run["without"]}
    worth = []
    for step in dict.fromkeys(run["without"][0] for run in runs if run["without"]):
        lacking = [run for run in runs if run["without"] == [step]]
        pairs = [(whole[run["scenario"], run["seed"]], run) for run in lacking]
        worth.append(Worth(step, pooled(lacking), tuple(_difference(figure, pairs) for figure in SHOWN)))
    return worth


def _difference(figure: Figure, pairs: Sequence[tuple[Run, Run]]) -> Mean | None:
    values = [(figure_of(whole, figure), figure_of(without_step, figure)) for whole, without_step in pairs]
    return mean_of(
        without_step - whole
        for whole, without_step in values
        if whole is not None and without_step is not None
    )
