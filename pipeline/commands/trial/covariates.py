"""Covariates of metrics in files of trials: rows are matched by the names of trials."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from pipeline.commands.trial.reading import NamedTrials
from pipeline.experiments.trials import Covariate, Experiments, Sides
from pipeline.experiments.trials.estimate import trial_differences
from pipeline.model import IntArray
from pipeline.model.errors import ConfigError


def with_covariates(
    path: Path, named: Mapping[str, NamedTrials], explained: Mapping[str, str], *, history: bool = False
) -> dict[str, Sides]:
    """Return the sides of each judged metric with its covariate, which is not judged itself.

    Args:
        path: The file, for errors.
        named: Content of the file.
        explained: Metric → its covariate.
        history: Whether these are A/A trials: those without the covariate are left out then, and metrics or
            covariates may be missing.

    Raises:
        ConfigError: a trial has no points of the covariate.
    """
    covariates = set(explained.values())
    result = {}
    for name, trials_of_metric in named.items():
        if name in covariates:
            continue
        covariate = named.get(explained[name]) if name in explained else None
        result[name] = trials_of_metric.sides
        if covariate is None:
            continue
        row_of = {trial: row for row, trial in enumerate(covariate.trials)}
        matched = np.array(
            [row for row, trial in enumerate(trials_of_metric.trials) if trial in row_of], dtype=np.int64
        )
        if not history and len(matched) < len(trials_of_metric.trials):
            without = next(trial for trial in trials_of_metric.trials if trial not in row_of)
            raise ConfigError(f"{path}: trial {without}: {explained[name]}: no points, which explain {name}")
        if len(matched):
            rows = np.array([row_of[trials_of_metric.trials[row]] for row in matched])
            result[name] = replace(
                _rows(trials_of_metric.sides, matched),
                covariate=_covariate(explained[name], _rows(covariate.sides, rows)),
            )
    return result


def _rows(sides: Sides, rows: IntArray) -> Sides:
    requests = sides.requests
    if requests:
        requests = (requests[0][rows], requests[1][rows])
    return replace(sides, a=sides.a[rows], b=sides.b[rows], requests=requests)


def _covariate(name: str, sides: Sides) -> Covariate:
    """Return the covariate over all of its points: its warm-up explains that of the metric."""
    with np.errstate(invalid="ignore", divide="ignore"):  # a covariate that is 0
        return Covariate(name, trial_differences(Experiments(sides.a[None], sides.b[None]))[0])
