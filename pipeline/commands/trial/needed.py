"""``smidgen trial needed``: trials that a threshold takes, by A/A trials (ServiceLab, Figure 6)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
import orjson
from rich.bar import Bar
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from pipeline.commands.options import FiniteRange
from pipeline.commands.terminal import escape_controls, print_note, table_console
from pipeline.commands.trial.reading import read_trials
from pipeline.experiments.trials.needed import MOST_TRIALS, half_widths, trials_needed
from pipeline.experiments.trials.verdict import steady_differences
from pipeline.model import FloatArray
from pipeline.model.errors import ConfigError

THRESHOLDS = (0.1, 0.05, 0.02, 0.01, 0.005, 0.001, 0.0001)
"""ServiceLab's use cases have thresholds from 10 % to 0.01 % (Figure 5)."""

SHOWN = np.array([1, 2, 5, 10, 25, 50, 100, 250])
"""Numbers of trials whose intervals are shown."""

_BAR = 40  # characters

_EXAMPLES = """\b
Examples:
  smidgen trial needed aa-trials.csv
  smidgen trial needed aa-trials.csv --threshold 0.002 --sequential --json
"""


@dataclass(frozen=True, slots=True)
class _Needed:
    """One metric: its A/A trials, and by threshold the trials needed, None if too many."""

    metric: str
    differences: FloatArray
    trials: dict[float, int | None]
    half_widths: FloatArray  # of SHOWN trials


@click.command(name="needed", epilog=_EXAMPLES)
@click.argument("path", metavar="FILE", type=click.Path(path_type=Path))
@click.option(
    "--threshold",
    "thresholds",
    type=FiniteRange(min=0, min_open=True),
    multiple=True,
    help="Relative difference that is to be seen. May be repeated (default: from 10 % to 0.01 %).",
)
@click.option(
    "--alpha",
    type=FiniteRange(min=0, min_open=True, max=0.5),
    default=0.05,
    show_default=True,
    help="Chance that an interval misses the true difference.",
)
@click.option("--sequential", is_flag=True, help="Hold the errors though you look after every trial.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a metric.")
def needed(path: Path, thresholds: tuple[float, ...], alpha: float, sequential: bool, as_json: bool) -> None:
    """Say how many trials an experiment needs until a difference of some size shows.

    FILE holds A/A trials, in which both sides ran the same code, in the form of `smidgen trial verdict`. Each
    is one trial; twenty or more are worth it. The interval of a difference shrinks with the square root of
    the number of trials, and bars show it. Warm-up is discarded first.
    """
    rows = []
    for metric, sides in read_trials(path).items():
        differences = steady_differences(sides)
        if len(differences) < 2:
            print_note(f"{metric}: fewer than two trials became steady, which say nothing of their spread")
            continue
        trials = {
            one: trials_needed(differences, one, alpha, sequential=sequential)
            for one in dict.fromkeys(thresholds or THRESHOLDS)
        }
        rows.append(_Needed(metric, differences, trials, half_widths(differences, SHOWN, 1.0 - alpha)))
    if not rows:
        raise ConfigError(f"{path}: no metric has two A/A trials that became steady")
    if as_json:
        for one in rows:
            click.echo(orjson.dumps(_to_json(one)).decode())
    else:
        console = table_console()
        for one in rows:
            _show(console, one)


def _show(console: Console, row: _Needed) -> None:
    spread = float(np.sqrt(np.mean(np.square(row.differences))))
    console.print(
        Text(f"{escape_controls(row.metric)}: {len(row.differences)} A/A trials differ by {spread:.3%}"),
        soft_wrap=True,
    )
    curve = Table(Column("trials", justify="right"), Column("interval", justify="right"), "", box=SIMPLE)
    for count, half in zip(SHOWN.tolist(), row.half_widths.tolist(), strict=True):
        widest = float(row.half_widths[0]) or 1.0
        curve.add_row(str(count), f"± {half:.3%}", Bar(widest, 0, half, width=_BAR))
    console.print(curve)
    wanted = Table(box=SIMPLE, show_header=False)
    wanted.add_row("to see", *(f"{threshold * 100:.4g} %" for threshold in row.trials))
    wanted.add_row(
        "trials", *(f"{count:,}" if count else f"> {MOST_TRIALS:,}" for count in row.trials.values())
    )
    console.print(wanted)


def _to_json(row: _Needed) -> dict[str, Any]:
    return {
        "metric": row.metric,
        "differences": row.differences.tolist(),
        "needed": [{"threshold": size, "trials": count} for size, count in row.trials.items()],
        "intervals": [
            {"trials": count, "half_width": half}
            for count, half in zip(SHOWN.tolist(), row.half_widths.tolist(), strict=True)
        ],
    }
