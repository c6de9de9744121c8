"""A service's trials in the store: experiments, their points, and A/A trials of two weeks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.analysis.rootcause.trials import missed_regressions
from pipeline.experiments.trials import (
    Bounds,
    Choice,
    Experiment,
    ExperimentSide,
    ExperimentState,
    Model,
    Sides,
    WholeTrial,
    differences_by_trial,
    standing_of,
)
from pipeline.experiments.trials.experiment import HISTORY_S, Measured, bounds_of, metrics_of, sides_of
from pipeline.messages.trials import choice_of_row, metric_of_row, side_of_row
from pipeline.model import TrialMetric
from pipeline.model.units import DAY_S
from pipeline.stages.gather.change_findings import caused_regressions, trial_findings
from pipeline.storage.interface import RowQuery, Store

ALPHA = 0.05
"""False discovery rate among metrics that differ."""

HISTORY_POINTS = 4_000_000
"""Most points of A/A trials to read, over all metrics; the latest trials are read."""

CHOICE_S = DAY_S
"""Seconds of event time for which a choice of a model is valid."""

FORMER_S = 30 * DAY_S
"""Seconds back to which the former choice of a model is searched for."""

MISSED_S = 90 * DAY_S
"""Seconds back to which regressions are searched for whose changes had passed their trials."""

_INSTANT_S = 0.001
"""The store's times have milliseconds."""

ChoiceKey = tuple[str, int, float, float]
"""Metric, trials of the experiment, threshold and alpha."""


@dataclass(frozen=True, slots=True)
class ExperimentEvidence:
    """The evidence for a verdict on an experiment."""

    standing: ExperimentState
    metrics: Mapping[str, Sides]
    marked: Mapping[str, tuple[int, ...]]
    """By metric, the number of points of each trial that the sender marks as warm-up."""
    bounds: Mapping[str, Bounds]
    history: Mapping[str, Sides]
    kept: Mapping[str, Choice]
    former: Mapping[str, str]
    """By metric, the model that was chosen last; empty if none kept its error rate."""
    missed: Mapping[str, Mapping[str, int]]
    """By metric and model, the number of regressions that passed trials and were found in production."""


def gather_experiments(store: Store, service: str) -> tuple[Experiment, ...]:
    """Return a service's experiments, with every side that the store still keeps."""
    sides: dict[str, list[ExperimentSide]] = defaultdict(list)
    for row in store.rows(RowQuery("trials", service)):
        sides[row["experiment"]].append(side_of_row(row))
    return tuple(Experiment(service, name, tuple(own)) for name, own in sorted(sides.items()))


def gather_verdicts(store: Store, service: str) -> list[dict[str, Any]]:
    """Return the verdicts on a service's experiments, one row per state of each, oldest first."""
    return store.rows(RowQuery("trial_verdicts", service))


def gather_differences(store: Store, standing: ExperimentState, metric: str) -> dict[str, float]:
    """Return the relative difference of one metric by trial; see ``differences_by_trial``.

    Trials whose points the store has deleted, or that did not measure the metric, are absent.
    """
    service, name = standing.experiment.service, standing.experiment.name
    rows = store.rows(RowQuery("trial_points", service, equal={"experiment": name, "metric": metric}))
    measured = _measured(rows)
    whole = [
        trial for trial in standing.whole if all((side.digest, metric) in measured for side in trial.sides)
    ]
    if not whole:
        return {}
    sides, _ = sides_of(metrics_of(whole, measured)[metric])
    differences = differences_by_trial(sides).tolist()
    return {trial.name: value for trial, value in zip(whole, differences, strict=True)}


def gather_evidence(
    store: Store, standing: ExperimentState, experiments: Iterable[Experiment], models: Mapping[str, Model]
) -> ExperimentEvidence:
    """Return the evidence for a verdict on an experiment.

    Args:
        store: Holds the trials.
        standing: The experiment's trials and progress.
        experiments: The experiments of its service: A/A trials among them are its history.
        models: The models to choose from, by name.
    """
    service, name = standing.experiment.service, standing.experiment.name
    rows = store.rows(RowQuery("trial_points", service, equal={"experiment": name}))
    pairs = metrics_of(standing.whole, _measured(rows))
    bounds = {metric: bounds_of(own, ALPHA) for metric, own in pairs.items()}
    prepared = {metric: sides_of(own) for metric, own in pairs.items()}
    sizes = {metric: len(own) // 2 for metric, own in pairs.items()}
    choices, former = _choices(store, standing, bounds, sizes, models)
    return ExperimentEvidence(
        standing,
        metrics={metric: sides for metric, (sides, _) in prepared.items()},
        marked={metric: marked for metric, (_, marked) in prepared.items()},
        bounds=bounds,
        history=_history(store, standing, experiments, pairs),
        kept=choices,
        former=former,
        missed={} if len(choices) == len(pairs) else _missed(store, service, standing.last_time),
    )


def _missed(store: Store, service: str, last: float) -> dict[str, dict[str, int]]:
    """Return the number of regressions, up to ``last``, whose changes passed their trials."""
    since, until = last - MISSED_S, last + _INSTANT_S
    findings = trial_findings(store, service, since, until)
    if not any(not metric.failed for finding in findings for metric in finding.metrics):
        return {}
    return missed_regressions(findings, caused_regressions(store, service, since, until))


def _history(
    store: Store,
    standing: ExperimentState,
    experiments: Iterable[Experiment],
    pairs: Mapping[str, Sequence[TrialMetric]],
) -> dict[str, Sides]:
    """Return A/A trials of the last two weeks for the metrics in ``pairs``; the latest if there are many."""
    service, name = standing.experiment.service, standing.experiment.name
    other_experiments = [experiment for experiment in experiments if experiment.name != name]
    return gather_history(store, service, other_experiments, standing.last_time, of=pairs)


def gather_history(
    store: Store,
    service: str,
    experiments: Iterable[Experiment],
    last: float,
    *,
    of: Container[str] | None = None,
) -> dict[str, Sides]:
    """Return A/A trials of a service in two weeks up to ``last``, by metric; the latest if there are many.

    ``of`` has the metrics to return; by default all.
    """
    trials: list[WholeTrial] = []
    for experiment in experiments:
        standing = standing_of(experiment, last)
        if standing.kind == "A/A":
            trials += [trial for trial in standing.whole if last - HISTORY_S <= trial.time <= last]
    trials.sort(key=lambda trial: (trial.time, trial.name))
    room, first = HISTORY_POINTS, len(trials)
    while first and (room := room - sum(side.points for side in trials[first - 1].sides)) >= 0:
        first -= 1
    chosen = trials[first:]
    if not chosen:
        return {}
    since = min(side.time for trial in chosen for side in trial.sides)
    rows = store.rows(RowQuery("trial_points", service, since, last + _INSTANT_S, equal={"kind": "A/A"}))
    wanted = {side.digest for trial in chosen for side in trial.sides}
    by_metric = metrics_of(chosen, _measured(row for row in rows if row["digest"] in wanted))
    return {metric: sides_of(own)[0] for metric, own in by_metric.items() if of is None or metric in of}


def _choices(
    store: Store,
    standing: ExperimentState,
    bounds: Mapping[str, Bounds],
    sizes: Mapping[str, int],
    models: Mapping[str, Model],
) -> tuple[dict[str, Choice], dict[str, str]]:
    """Return, by metric, the choices that are still valid and the models that were chosen last."""
    last = standing.last_time
    rows = store.rows(
        RowQuery("trial_models", standing.experiment.service, last - FORMER_S, last + _INSTANT_S)
    )
    latest: dict[ChoiceKey, dict[str, Any]] = {
        (row["metric"], int(row["trials"]), row["threshold"], row["alpha"]): row for row in rows
    }
    choices: dict[str, Choice] = {}
    former: dict[str, str] = {}
    for metric, own in bounds.items():
        row = latest.get((metric, sizes[metric], own.threshold, own.alpha))
        if row is None:
            continue
        former[metric] = row["model"]
        if row["time"] > last - CHOICE_S and (not row["model"] or row["model"] in models):
            choices[metric] = choice_of_row(row)
    return choices, former


def _measured(rows: Iterable[Mapping[str, Any]]) -> Measured:
    return {(row["digest"], row["metric"]): metric_of_row(row) for row in rows}
