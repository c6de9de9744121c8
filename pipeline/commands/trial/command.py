"""``smidgen trial verdict``: the gate of a change before its release."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import orjson
from click.core import ParameterSource

from pipeline.commands.lazy_group import LazyGroup
from pipeline.commands.options import Duration, FiniteRange
from pipeline.commands.terminal import print_note, table_console
from pipeline.commands.trial.covariates import with_covariates
from pipeline.commands.trial.kept import kept
from pipeline.commands.trial.machines import machines, match
from pipeline.commands.trial.models import models
from pipeline.commands.trial.needed import needed
from pipeline.commands.trial.options import METRIC_THRESHOLD, Pair, check_known
from pipeline.commands.trial.publishing import publish
from pipeline.commands.trial.reading import read_named_trials
from pipeline.commands.trial.showing import show
from pipeline.experiments.trials import Bounds, Decision, ModelConfig, Sides, judge_trials
from pipeline.files.listing import listed
from pipeline.messages.trials import verdict_to_json
from pipeline.model.errors import ConfigError
from pipeline.settings.config import load_settings
from pipeline.stages.gather.trial_models import load_models

EXIT_CODES = {Decision.PASS: 0, Decision.FAIL: 1, Decision.NOT_ENOUGH: 3}

_EXAMPLES = """\b
Examples:
  smidgen trial verdict trials.csv
  smidgen trial verdict trials.csv --history aa-trials.csv --threshold 0.005 --worse-down throughput
  smidgen trial verdict trials.csv --metric-threshold p99=0.05 --json
  smidgen trial verdict trials.csv --history aa-trials.csv --covariate cpu=cpu_before
  smidgen trial verdict --experiment pr-1234 --service shop --wait 10m
"""


@click.group(cls=LazyGroup)
def trial() -> None:
    """Judge code before its release, by trials of the old code against the new."""


trial.add_command(kept)
trial.add_command(machines)
trial.add_command(match)
trial.add_command(models)
trial.add_command(needed)
trial.add_command(publish)


@trial.command(name="verdict", epilog=_EXAMPLES)
@click.argument("path", metavar="[FILE]", required=False, type=click.Path(path_type=Path))
@click.option("--experiment", metavar="NAME", help="Instead of a file: what judge says of it.")
@click.option("--service", metavar="NAME", help="Whose experiment.")
@click.option("--wait", type=Duration(), metavar="DURATION", help="Wait so long for its verdict.")
@click.option("--store", metavar="DSN", help="Where it is (SMIDGEN_STORE).")
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
    "--metric-threshold", type=METRIC_THRESHOLD, multiple=True, help="That of one metric. May be repeated."
)
@click.option(
    "--alpha",
    type=FiniteRange(min=0, min_open=True, max=0.5),
    default=0.05,
    show_default=True,
    help="Share of false ones among metrics that differ.",
)
@click.option("--worse-down", multiple=True, metavar="METRIC", help="Less of it is worse, as of throughput.")
@click.option("--model", metavar="NAME", help="For all metrics, instead of the best of each.")
@click.option(
    "--covariate",
    "covariates",
    type=Pair("METRIC=COVARIATE", empty=False),
    multiple=True,
    help="Take out of METRIC what COVARIATE, which side B does not change, explains. May be repeated.",
)
@click.option("--sequential", is_flag=True, help="Hold the errors though you look after every trial.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a metric.")
@click.pass_context
def verdict(
    context: click.Context,
    /,
    path: Path | None,
    experiment: str | None,
    service: str | None,
    wait: float | None,
    store: str | None,
    as_json: bool,
    **options: Any,
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

    If FILE has a column request, points of both sides of a trial with the same request are pairs, and one
    more model compares these. A covariate is a metric of the same trials; it is not judged itself.

    With --experiment and --service, it shows the last verdict that a judge has published of trials that were
    sent by `smidgen trial publish` or otherwise; thresholds are those of the trials.

    Exit code: 0 if all metrics pass, 1 if one fails, 3 if one is not decided or there is no verdict yet, 2 on
    bad usage or a bad file.
    """
    if (path is None) == (experiment is None):
        raise click.UsageError("give a FILE, or --experiment and --service")
    if path is not None:
        _refuse_options(context, ("service", "wait", "store"), "of --experiment")
        verdicts = _of_file(path, **options)
        return _said(verdicts, _decision_of(row["decision"] for row in verdicts), as_json=as_json)
    _refuse_options(context, tuple(options), "of files: the trials say that")
    if service is None:
        raise click.UsageError("--experiment: say whose, by --service")
    from pipeline.commands.trial.waiting import await_verdict

    event = await_verdict(load_settings({"store": store}, local=True), service, str(experiment), wait or 0.0)
    if event is None:
        print_note(f"no verdict on {experiment} of {service} yet")
        return EXIT_CODES[Decision.NOT_ENOUGH]
    data = event["data"]
    if not data["complete"] and data["decision"] == Decision.NOT_ENOUGH.value:
        print_note(f"{experiment} of {service} did not end: {data['trials']} whole trials came")
    return _said(data["metrics"], Decision(data["decision"]), as_json=as_json)


def _of_file(
    path: Path,
    history: Path | None,
    threshold: float,
    metric_threshold: tuple[tuple[str, float], ...],
    alpha: float,
    worse_down: tuple[str, ...],
    model: str | None,
    covariates: tuple[tuple[str, str], ...],
    sequential: bool,
) -> list[dict[str, Any]]:
    """Return the verdicts on a file of trials."""
    all_models = load_models()
    if model is not None and model not in all_models:
        raise ConfigError(f"--model: no model {model!r}; there are {listed(sorted(all_models), model)}")
    if sequential and model:
        raise ConfigError("--sequential: has a model of its own; leave out --model")
    if model and all_models[model].from_history and not history:
        raise ConfigError(f"--model {model}: compares with A/A trials; give them as --history")
    named = read_named_trials(path)
    explained = dict(covariates)
    if alone := next((metric for metric, covariate in covariates if metric == covariate), None):
        raise ConfigError(f"--covariate: {alone}: explains itself; the covariate should be another metric")
    if len(explained) < len(covariates):
        raise ConfigError("--covariate: a metric has one covariate")
    check_known((*explained, *explained.values()), named, path)
    if both := sorted(explained.keys() & set(explained.values())):
        raise ConfigError(f"--covariate: {both[0]} explains a metric, and is not explained itself")
    metrics = with_covariates(path, named, explained)
    if model and all_models[model].by_request and not any(sides.requests for sides in metrics.values()):
        raise ConfigError(f"--model {model}: {path} has no column 'request' that says which points are pairs")
    past = _past(history, metrics, explained) if history else {}
    thresholds = dict(metric_threshold)
    check_known((*thresholds, *worse_down), metrics, path)
    usual = Bounds(threshold, alpha)
    bounds = {
        name: replace(
            usual,
            threshold=thresholds.get(name, usual.threshold),
            direction="down" if name in worse_down else "up",
        )
        for name in metrics
    }
    config = ModelConfig(all_models, model, sequential)
    return [verdict_to_json(verdict) for verdict in judge_trials(metrics, bounds, past, config)]


def _said(verdicts: Sequence[Mapping[str, Any]], decision: Decision, *, as_json: bool) -> int:
    """Print verdicts and return their common exit code."""
    if as_json:
        for row in verdicts:
            click.echo(orjson.dumps(row).decode())
    else:
        show(table_console(), verdicts)
    return EXIT_CODES[decision]


def _refuse_options(context: click.Context, names: Iterable[str], why: str) -> None:
    for name in names:
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"--{name.replace('_', '-')}: {why}")


def _past(path: Path, metrics: dict[str, Sides], explained: Mapping[str, str]) -> dict[str, Sides]:
    named = read_named_trials(path, {*metrics, *explained.values()})
    past = with_covariates(path, named, explained, history=True)
    missing = sorted(metrics.keys() - past.keys())
    if not past:
        raise ConfigError(f"{path}: has A/A trials of no metric that is judged; these are {listed(missing)}")
    if missing:
        print_note(f"{path}: no A/A trials of {listed(missing)}")
    return past


def _decision_of(decisions: Iterable[str]) -> Decision:
    """Return the common decision of several metrics."""
    every = set(decisions)
    worst_first = (Decision.FAIL, Decision.NOT_ENOUGH, Decision.PASS)
    return next(candidate for candidate in worst_first if candidate.value in every)
