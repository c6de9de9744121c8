"""``smidgen trial verdict``: the gate of a change before its release."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import click
import orjson

from pipeline.commands.options import FiniteRange
from pipeline.commands.trial.machines import machines, match
from pipeline.commands.trial.reading import read_trials
from pipeline.commands.trial.showing import show, to_json
from pipeline.errors import ConfigError
from pipeline.listing import listed
from pipeline.terminal import print_note, table_console
from pipeline.trials import MODELS, Bounds, Decision, ModelConfig, Sides, Verdict, judge_trials

EXIT_CODES = {Decision.PASS: 0, Decision.FAIL: 1, Decision.NOT_ENOUGH: 3}

_EXAMPLES = """\b
Examples:
  smidgen trial verdict trials.csv
  smidgen trial verdict trials.csv --history aa-trials.csv --threshold 0.005 --worse-down throughput
  smidgen trial verdict trials.csv --metric-threshold p99=0.05 --json
"""


class _Threshold(click.ParamType):
    """A metric and its own threshold, as NAME=SHARE."""

    name = "NAME=SHARE"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, float]:
        """Read both."""
        name, equals, share = str(value).rpartition("=")
        if not equals or not name:
            self.fail(f"{value!r}: should be NAME=SHARE", param, ctx)
        return name, FiniteRange(min=0, min_open=True).convert(share, param, ctx)


@click.group()
def trial() -> None:
    """Judge code before its release, by trials of the old code against the new."""


trial.add_command(machines)
trial.add_command(match)


@trial.command(name="verdict", epilog=_EXAMPLES)
@click.argument("path", metavar="FILE", type=click.Path(path_type=Path))
@click.option(
    "--history",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="A/A trials of the last two weeks, in the same form: both sides ran the same code.",
)
@click.option(
    "--threshold",
    type=FiniteRange(min=0, min_open=True),
    default=0.01,
    show_default=True,
    help="Relative difference that is a regression.",
)
@click.option(
    "--metric-threshold", type=_Threshold(), multiple=True, help="That of one metric. May be repeated."
)
@click.option(
    "--alpha",
    type=FiniteRange(min=0, min_open=True, max=0.5),
    default=0.05,
    show_default=True,
    help="Share of false ones among metrics that differ.",
)
@click.option("--worse-down", multiple=True, metavar="METRIC", help="Less of it is worse, as of throughput.")
@click.option(
    "--model", type=click.Choice(tuple(MODELS)), help="For all metrics, instead of the best of each."
)
@click.option("--sequential", is_flag=True, help="Hold the errors though you look after every trial.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a metric.")
def verdict(
    path: Path,
    history: Path | None,
    metric_threshold: tuple[tuple[str, float], ...],
    worse_down: tuple[str, ...],
    model: str | None,
    **options: float | bool,
) -> int:
    """Say of each metric whether the new code, side B, is worse than the old, side A.

    FILE is CSV or Parquet with the columns trial, side (A or B), metric and value: a row a point, in the
    order of time. A trial is one test of both sides; an experiment has several. What comes before a trial is
    steady is discarded as warm-up.

    fail: the difference is significant and as large as the threshold. pass: a regression of the threshold is
    excluded. not enough: neither; the number of trials that would do is shown.

    With --history, each metric gets the model that finds most regressions of the threshold in A/A trials,
    among those that call no more of them different than --alpha. That takes 40 A/A trials for each trial of
    the experiment; with fewer, or none, trials are compared with each other.

    Exit code: 0 if all metrics pass, 1 if one fails, 3 if one is not decided, 2 on bad usage or a bad file.
    """
    if options["sequential"] and model:
        raise ConfigError("--sequential: has a model of its own; leave out --model")
    if model and MODELS[model].from_history and not history:
        raise ConfigError(f"--model {model}: compares with A/A trials; give them as --history")
    metrics = read_trials(path)
    past = _past(history, metrics) if history else {}
    thresholds = dict(metric_threshold)
    _check_known((*thresholds, *worse_down), metrics, path)
    usual = Bounds(float(options["threshold"]), float(options["alpha"]))
    bounds = {
        name: replace(
            usual,
            threshold=thresholds.get(name, usual.threshold),
            direction="down" if name in worse_down else "up",
        )
        for name in metrics
    }
    found = judge_trials(
        metrics, bounds, past, ModelConfig(model=model, sequential=bool(options["sequential"]))
    )
    if options["as_json"]:
        for each in found:
            click.echo(orjson.dumps(to_json(each)).decode())
    else:
        show(table_console(), found)
    return _exit_code(found)


def _past(path: Path, metrics: dict[str, Sides]) -> dict[str, Sides]:
    past = read_trials(path, metrics)
    missing = sorted(metrics.keys() - past.keys())
    if not past:
        raise ConfigError(f"{path}: has A/A trials of no metric that is judged; these are {listed(missing)}")
    if missing:
        print_note(f"{path}: no A/A trials of {listed(missing)}")
    return past


def _check_known(names: Iterable[str], metrics: dict[str, Sides], path: Path) -> None:
    for name in names:
        if name not in metrics:
            raise ConfigError(f"{path}: no metric {name!r}; it has {listed(sorted(metrics), name)}")


def _exit_code(found: list[Verdict]) -> int:
    decisions = {each.decision for each in found}
    for decision in (Decision.FAIL, Decision.NOT_ENOUGH):
        if decision in decisions:
            return EXIT_CODES[decision]
    return EXIT_CODES[Decision.PASS]
