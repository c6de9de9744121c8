"""``smidgen replay capacity``: the rate at which each side breaks its objective."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agents.commands.replay.options import read_chosen, selection_options
from pipeline.commands.options import FiniteRange

if TYPE_CHECKING:
    from agents.experiments.replay.capacity import Knee
    from agents.experiments.replay.plan import NamedRequest

_EXAMPLES = """\b
Examples:
  smidgen replay capacity shop.jsonl.gz --a http://127.0.0.1:8001 --b http://127.0.0.1:8002 --p99 200
"""


@click.command(epilog=_EXAMPLES)
@selection_options
@click.option(
    "--p99",
    "p99_ms",
    type=FiniteRange(min=0, min_open=True),
    default=500.0,
    show_default=True,
    help="Objective: 99 % of answers within so many milliseconds.",
)
@click.option(
    "--errors",
    type=FiniteRange(min=0, max=1),
    default=0.01,
    show_default=True,
    help="Objective: share of requests that fail.",
)
@click.option(
    "--from",
    "start",
    type=FiniteRange(min=0, min_open=True, max=1e6),
    default=10.0,
    show_default=True,
    help="First rate, requests a second.",
)
@click.option(
    "--up-to",
    "most",
    type=FiniteRange(min=0, min_open=True, max=1e6),
    default=5000.0,
    show_default=True,
    help="Last rate.",
)
@click.option(
    "--factor",
    type=FiniteRange(min=1.001, max=10),
    default=1.1,
    show_default=True,
    help="From one rate to the next.",
)
@click.option(
    "--seconds",
    type=FiniteRange(min=0, min_open=True, max=3600),
    default=10.0,
    show_default=True,
    help="Of each rate; the first fifth is warm-up.",
)
@click.option("--repeats", type=click.IntRange(1, 1000), default=3, show_default=True)
@click.option(
    "--to",
    "output",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Knees as trials (--worse-down capacity_rps).",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def capacity(path: Path, output: Path | None, as_json: bool, **options: Any) -> int:
    """Raise the rate until a side breaks its objective, one side after the other, and compare where that is.

    Which side is first alternates. The knee is between the last rate that held and the first that broke. The
    interval is that of the relative difference over repeats; one repeat has none. Exit code: 1 if side B
    breaks at a lower rate, significantly; 0 otherwise.
    """
    from dataclasses import asdict

    from agents.commands.replay.showing import show_knees
    from agents.experiments.replay.capacity import compare_knees
    from agents.experiments.replay.plan import Choice
    from pipeline.files.outputs import check_outputs, write_output
    from pipeline.model.errors import ConfigError

    if options["most"] < options["start"]:
        raise ConfigError("--up-to: should not be less than --from")
    check_outputs({"--to": output}, [path])
    chosen = read_chosen(
        path, Choice(options["endpoints"], options["allowed"], options["mix"]), options["rules"]
    )
    a, b = asyncio.run(_knees(chosen, options))
    comparison = compare_knees([knee.rate for knee in a], [knee.rate for knee in b])
    if output:
        rows = [
            f"{number},{side},capacity_rps,{knee.rate!r}\n"
            for side, knees in (("A", a), ("B", b))
            for number, knee in enumerate(knees, 1)
        ]
        write_output(output, "".join(("trial,side,metric,value\n", *rows)).encode())
    if as_json:
        import orjson

        figures = {
            "a": [asdict(knee) for knee in a],
            "b": [asdict(knee) for knee in b],
            **{"comparison": asdict(comparison)},
        }
        click.echo(orjson.dumps(figures).decode())
    else:
        show_knees(a, b, comparison)
    return 1 if comparison.p_value <= 0.05 and comparison.difference < 0 else 0


async def _knees(chosen: list[NamedRequest], options: dict[str, Any]) -> tuple[list[Knee], list[Knee]]:
    """Return the knees of both sides, one each a repeat."""
    from agents.experiments.replay.capacity import Load, Objective, Steps, find_knee, load_at
    from agents.experiments.replay.connection import address_of_url
    from agents.experiments.replay.plan import Rewriting
    from agents.experiments.replay.replayer import ReplayConfig, Replayer
    from pipeline.commands.terminal import print_note

    steps = Steps(options["start"], options["factor"], options["most"], options["seconds"])
    objective = Objective(options["p99_ms"] / 1000, options["errors"])
    config = ReplayConfig(connections=options["connections"], timeout_s=options["timeout_s"])
    rewriting = Rewriting(options["put"])
    knees: dict[str, list[Knee]] = {"a": [], "b": []}
    for repeat in range(options["repeats"]):
        for side in ("ab", "ba")[repeat % 2]:
            replayer = Replayer([address_of_url(options[f"url_{side}"])], config)

            async def load(rate: float, replayer: Replayer = replayer) -> Load:
                return await load_at(replayer, chosen, rewriting, rate, steps.seconds)

            try:
                knee = await find_knee(steps, objective, load)
            finally:
                replayer.close()
            knees[side].append(knee)
            print_note(f"repeat {repeat + 1}, side {side.upper()}: {knee.rate:.4g} requests a second")
    return knees["a"], knees["b"]
