"""``smidgen trial needed``: trials that a threshold takes, by A/A trials (ServiceLab, Figure 6)."""

from __future__ import annotations

from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any

import click
import numpy as np

from pipeline.commands.request import argument, json_option, option, takes
from pipeline.commands.tables import Column, print_json_lines, print_table
from pipeline.commands.terminal import print_lines, print_note
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
@takes
def needed(
    path: Path = argument(metavar="FILE"),
    thresholds: tuple[float, ...] = option(
        flag="--threshold",
        above=0,
        help="Relative difference to be seen (default: from 10 % to 0.01 %).",
    ),
    alpha: float = option(
        0.05, above=0, most=0.5, help="Chance that an interval misses the true difference."
    ),
    sequential: bool = option(help="Keep the error rates though you look after every trial."),
    as_json: bool = json_option("a metric"),
) -> None:
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
            threshold: trials_needed(differences, threshold, alpha, sequential=sequential)
            for threshold in dict.fromkeys(thresholds or THRESHOLDS)
        }
        rows.append(_Needed(metric, differences, trials, half_widths(differences, SHOWN, 1.0 - alpha)))
    if not rows:
        raise ConfigError(f"{path}: no metric has two A/A trials that became steady")
    if as_json:
        print_json_lines(map(_to_json, rows))
    else:
        for row in rows:
            _show(row)


def _show(row: _Needed) -> None:
    spread = float(np.sqrt(np.mean(np.square(row.differences))))
    widest = float(row.half_widths[0]) or 1.0
    print_lines([f"{row.metric}: {len(row.differences)} A/A trials differ by {spread:.3%}"])
    intervals: tuple[Column[tuple[int, float]], ...] = (
        Column("trials", itemgetter(0), "d"),
        Column("interval", itemgetter(1), "± {:.3%}".format),
        Column("", lambda interval: "█" * round(_BAR * interval[1] / widest)),
    )
    print_table(intervals, zip(SHOWN.tolist(), row.half_widths.tolist(), strict=True))
    sizes: tuple[Column[tuple[float, int | None]], ...] = (
        Column("to see", lambda size: f"{size[0] * 100:.4g} %", str),
        Column("trials", lambda size: f"{size[1]:,}" if size[1] else f"> {MOST_TRIALS:,}", str),
    )
    print_table(sizes, row.trials.items())


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
