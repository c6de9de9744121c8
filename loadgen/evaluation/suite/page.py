"""Records of the accuracy suite as pages in Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from loadgen.evaluation.suite.goals import goals_table
from loadgen.evaluation.suite.presets import HOSTS, WORLD
from loadgen.evaluation.suite.table import pooled_tables, scenario_table, worth_table
from pipeline.model.steps import OPTIONAL


@dataclass(frozen=True, slots=True)
class Record:
    """A recorded result: its page's title, the command that measures it, its file, and the other page."""

    title: str
    command: str
    file: str
    beside: str


STANDARD_RECORD = Record(
    "Accuracy on simulated fleets",
    "smidgen bench accuracy",
    "accuracy.json.gz",
    "[accuracy-world.md](accuracy-world.md) has renames, wrappers, gaps, holidays and so on.",
)

WORLD_RECORD = Record(
    "Accuracy on simulated fleets: a world that moves",
    "smidgen bench accuracy --world",
    "world.json.gz",
    "[accuracy.md](accuracy.md) has the other presets.",
)

HOSTS_RECORD = Record(
    "Accuracy on simulated fleets: rollouts, and mixes that move",
    "smidgen bench accuracy --hosts",
    "hosts.json.gz",
    "[accuracy.md](accuracy.md) has the other presets.",
)

_INTRODUCTION = """\
# {title}

{runs} runs of `{command}`, of {scenarios} scenarios with {seeds} seeds each, simulated,
backtested and scored at the defaults. [scoring.md](scoring.md) defines each figure,
[simulator.md](simulator.md) describes each scenario.

`smidgen bench accuracy --from FILE` shows the runs with intervals; `make record` writes this page.
Intervals of shares are Wilson's; "–" is a figure that a scenario cannot have.
All runs are in `loadgen/evaluation/records/`: `{file}`{ablated}.
{beside}{optional}
"""

_ABLATION = """\
From the first {seeds} seeds. Under each figure stands the mean of the paired differences over runs, with its
interval. Some steps matter to one scenario alone, so their mean over all scenarios is small."""


def accuracy_page(result: Mapping[str, Any], ablated: Mapping[str, Any] | None = None) -> str:
    """Return the page of a suite's result, and of an ablation.

    Args:
        result: as ``suite_to_json`` returns it.
        ablated: a result with an ``ablation``, of this run or of another one.
    """
    runs = result["runs"]
    record = record_of(runs)
    introduction = _INTRODUCTION.format(
        title=record.title,
        command=record.command,
        file=record.file,
        beside=record.beside,
        optional=_optional_steps(runs),
        ablated=", those without each step in `ablation.json.gz`" if ablated else "",
        runs=len(runs),
        scenarios=len({run["scenario"] for run in runs}),
        seeds=_seeds(runs),
    )
    tables = [goals_table(runs), scenario_table(runs), *pooled_tables(runs)]
    parts = [introduction.rstrip(), *(table.markdown() for table in tables)]
    if ablated:
        table = worth_table(ablated["all"], ablated["ablation"])
        heading, _, rows = table.markdown().partition("\n\n")
        parts += [heading, _ABLATION.format(seeds=_seeds(ablated["runs"])), rows]
    return "\n\n".join(parts) + "\n"


def _optional_steps(runs: Sequence[Mapping[str, Any]]) -> str:
    """Return a line on the optional steps that recorded runs asked; empty if they asked none."""
    steps = {step["step"] for run in runs for step in run["score"]["funnel"]["steps"]} & set(OPTIONAL)
    names = ", ".join(f"`{step}`" for step in sorted(steps))
    return (
        f"\nThese runs were made with {names}, which has become [optional](workloads.md#optional-steps)."
        if names
        else ""
    )


def record_of(runs: Sequence[Mapping[str, Any]]) -> Record:
    """Return the record of some runs: that of ``--world`` or ``--hosts`` if all are its presets."""
    scenarios = {run["scenario"] for run in runs}
    if scenarios <= set(HOSTS):
        return HOSTS_RECORD
    return WORLD_RECORD if scenarios <= set(WORLD) else STANDARD_RECORD


def _seeds(runs: Sequence[Mapping[str, Any]]) -> int:
    return len({run["seed"] for run in runs})
