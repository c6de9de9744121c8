"""``smidgen trial verdict``: the gate of a change before its release."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from pipeline.commands.lazy_group import LazyGroup
from pipeline.commands.request import Duration, argument, json_option, option, takes
from pipeline.commands.tables import print_json_lines
from pipeline.commands.terminal import print_note
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


@dataclass(frozen=True, slots=True)
class _PublishedRequest:
    """Verdict that a judge has published, instead of a file."""

    experiment: str | None = option(
        metavar="NAME", help="Experiment whose published verdict is shown, instead of a file."
    )
    service: str | None = option(metavar="NAME", help="Service of --experiment.")
    wait: float | None = option(kind=Duration(), help="Longest wait for the verdict on --experiment.")
    store: str | None = option(metavar="DSN", help="Store of --experiment (SMIDGEN_STORE).")


@dataclass(frozen=True, slots=True)
class _JudgeRequest:
    """How a file is judged."""

    history: Path | None = option(
        help="A/A trials of the last two weeks, in the same form: both sides ran the same code.",
    )
    threshold: float = option(0.01, above=0, help="Relative difference that is a regression.")
    metric_threshold: tuple[tuple[str, float], ...] = option(
        kind=METRIC_THRESHOLD, help="Threshold of one metric."
    )
    alpha: float = option(
        0.05, above=0, most=0.5, help="Tolerated share of false alarms among the metrics that differ."
    )
    worse_down: tuple[str, ...] = option(
        metavar="METRIC", help="Metric that is worse when it is lower, such as throughput."
    )
    model: str | None = option(metavar="NAME", help="Model for all metrics (default: the best of each).")
    covariates: tuple[tuple[str, str], ...] = option(
        flag="--covariate",
        kind=Pair("METRIC=COVARIATE", empty=False),
        help="Remove from METRIC what COVARIATE explains, which side B does not change.",
    )
    sequential: bool = option(help="Keep the error rates though you look after every trial.")


@trial.command(name="verdict", epilog=_EXAMPLES)
@takes
@click.pass_context
def verdict(
    context: click.Context,
    path: Path | None = argument(metavar="[FILE]"),
    *,
    published: _PublishedRequest,
    request: _JudgeRequest,
    as_json: bool = json_option("a metric"),
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
    if (path is None) == (published.experiment is None):
        raise click.UsageError("give a FILE, or --experiment and --service")
    if path is not None:
        _refuse_options(context, published, "of --experiment")
        verdicts = _verdicts_on(path, request)
        return _said(verdicts, _decision_of(row["decision"] for row in verdicts), as_json=as_json)
    _refuse_options(context, request, "of files: the trials say that")
    experiment, service = str(published.experiment), published.service
    if service is None:
        raise click.UsageError("--experiment: say whose, by --service")
    from pipeline.commands.trial.waiting import await_verdict

    settings = load_settings({"store": published.store}, local=True)
    event = await_verdict(settings, service, experiment, published.wait or 0.0)
    if event is None:
        print_note(f"no verdict on {experiment} of {service} yet")
        return EXIT_CODES[Decision.NOT_ENOUGH]
    data = event["data"]
    if not data["complete"] and data["decision"] == Decision.NOT_ENOUGH.value:
        print_note(f"{experiment} of {service} did not end: {data['trials']} whole trials came")
    return _said(data["metrics"], Decision(data["decision"]), as_json=as_json)


def _verdicts_on(path: Path, request: _JudgeRequest) -> list[dict[str, Any]]:
    """Return the verdicts on a file of trials."""
    model, covariates, explained = request.model, request.covariates, dict(request.covariates)
    all_models = load_models()
    if model is not None and model not in all_models:
        raise ConfigError(f"--model: no model {model!r}; there are {listed(sorted(all_models), model)}")
    if request.sequential and model:
        raise ConfigError("--sequential: has a model of its own; leave out --model")
    if model and all_models[model].from_history and not request.history:
        raise ConfigError(f"--model {model}: compares with A/A trials; give them as --history")
    named = read_named_trials(path)
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
    past = _past(request.history, metrics, explained) if request.history else {}
    thresholds = dict(request.metric_threshold)
    check_known((*thresholds, *request.worse_down), metrics, path)
    bounds = {
        name: Bounds(
            thresholds.get(name, request.threshold),
            request.alpha,
            "down" if name in request.worse_down else "up",
        )
        for name in metrics
    }
    config = ModelConfig(all_models, model, request.sequential)
    return [verdict_to_json(verdict) for verdict in judge_trials(metrics, bounds, past, config)]


def _said(verdicts: Sequence[Mapping[str, Any]], decision: Decision, *, as_json: bool) -> int:
    """Print verdicts and return their common exit code."""
    if as_json:
        print_json_lines(verdicts)
    else:
        show(verdicts)
    return EXIT_CODES[decision]


def _refuse_options(context: click.Context, request: Any, why: str) -> None:
    """Refuse the options of a request that are given."""
    for field in fields(request):
        if context.get_parameter_source(field.name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"--{field.name.replace('_', '-')}: {why}")


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
