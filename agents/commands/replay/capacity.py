"""``smidgen replay capacity``: the rate at which each side breaks its objective."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from agents.commands.replay.options import SelectionRequest
from pipeline.commands.request import json_option, option, takes
from pipeline.commands.tables import print_json

if TYPE_CHECKING:
    from agents.experiments.replay.capacity import Knee

_EXAMPLES = """\b
Examples:
  smidgen replay capacity shop.jsonl.gz --a http://127.0.0.1:8001 --b http://127.0.0.1:8002 --p99 200
"""


@dataclass(frozen=True, slots=True)
class _CapacityRequest:
    p99_ms: float = option(
        500.0, flag="--p99", above=0, help="Objective: milliseconds within which 99 % of answers come."
    )
    errors: float = option(0.01, least=0, most=1, help="Objective: share of requests that fail.")
    start: float = option(10.0, flag="--from", above=0, most=1e6, help="First rate, requests a second.")
    most: float = option(5000.0, flag="--up-to", above=0, most=1e6, help="Last rate.")
    factor: float = option(1.1, least=1.001, most=10, help="Ratio of each rate to the one before.")
    seconds: float = option(
        10.0, above=0, most=3600, help="Duration of each rate; the first fifth is warm-up."
    )
    repeats: int = option(3, least=1, most=1000, help="Number of knees of each side.")
    output: Path | None = option(
        flag="--to", help="File of knees to write, as trials (--worse-down capacity_rps)."
    )


@click.command(epilog=_EXAMPLES)
@takes
def capacity(selection: SelectionRequest, request: _CapacityRequest, as_json: bool = json_option()) -> int:
    """Raise the rate until a side breaks its objective, one side after the other, and compare where that is.

    Which side is first alternates. The knee is between the last rate that held and the first that broke. The
    interval is that of the relative difference over repeats; one repeat has none. Exit code: 1 if side B
    breaks at a lower rate, significantly; 0 otherwise.
    """
    from agents.commands.replay.showing import show_knees
    from agents.experiments.replay.capacity import compare_knees
    from pipeline.files.outputs import check_outputs, write_output
    from pipeline.model.errors import ConfigError

    if request.most < request.start:
        raise ConfigError("--up-to: should not be less than --from")
    check_outputs({"--to": request.output}, [selection.path])
    a, b = asyncio.run(_knees(selection, request))
    if all(knee.broke and len(knee.loads) == 1 for knee in (*a, *b)):
        load = a[0].loads[0]
        why = f"p99 {1000 * load.p99_s:.3g} ms, {load.errors:.1%} errors on side A"
        raise ConfigError(
            f"--from {request.start:g}: both sides break the objective at the first rate: {why}"
        )
    for side, knees in zip("AB", (a, b), strict=True):
        if all(knee.broke and len(knee.loads) == 1 and knee.loads[0].errors == 1 for knee in knees):
            raise ConfigError(f"--from {request.start:g}: side {side} fails every request at the first rate")
    comparison = compare_knees([knee.rate for knee in a], [knee.rate for knee in b])
    if request.output:
        rows = [
            f"{number},{side},capacity_rps,{knee.rate!r}\n"
            for side, knees in (("A", a), ("B", b))
            for number, knee in enumerate(knees, 1)
        ]
        write_output(request.output, "".join(("trial,side,metric,value\n", *rows)).encode())
    if as_json:
        print_json({"a": a, "b": b, "comparison": comparison})
    else:
        show_knees(a, b, comparison)
    return 1 if comparison.p_value <= 0.05 and comparison.difference < 0 else 0


async def _knees(selection: SelectionRequest, request: _CapacityRequest) -> tuple[list[Knee], list[Knee]]:
    """Return the knees of both sides, one each a repeat."""
    from agents.experiments.replay.capacity import Objective, SideLoad, Steps, find_knee, load_at
    from agents.experiments.replay.plan import Rewriting
    from agents.experiments.replay.replayer import ReplayConfig, Replayer
    from pipeline.commands.terminal import print_note

    chosen = selection.read()
    steps = Steps(request.start, request.factor, request.most, request.seconds)
    objective = Objective(request.p99_ms / 1000, request.errors)
    config = ReplayConfig(connections=selection.connections, timeout_s=selection.timeout_s)
    rewriting = Rewriting(selection.put)
    knees: tuple[list[Knee], list[Knee]] = [], []
    for repeat in range(request.repeats):
        for side in ((0, 1), (1, 0))[repeat % 2]:
            replayer = Replayer([selection.addresses[side]], config)

            async def load(rate: float, replayer: Replayer = replayer) -> SideLoad:
                return await load_at(replayer, chosen, rewriting, rate, steps.seconds)

            try:
                knee = await find_knee(steps, objective, load)
            finally:
                replayer.close()
            knees[side].append(knee)
            print_note(f"repeat {repeat + 1}, side {'AB'[side]}: {knee.rate:.4g} requests a second")
    return knees
