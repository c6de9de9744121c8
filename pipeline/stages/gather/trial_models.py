"""Plug-ins that compare trials by models of a user's own; one that fails finds nothing."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib.metadata import entry_points

from pipeline.experiments.trials import MODELS, Estimates, Experiments, Model

log = logging.getLogger(__name__)

ENTRY_POINTS = "smidgen.trial_models"
"""Group of entry points; each is a ``pipeline.experiments.trials.Model``, and its name is the model's."""


@cache
def load_models() -> Mapping[str, Model]:
    """Return all models by name, those of installed plug-ins last.

    One that cannot be loaded, is no model or has the name of another is said in one line and left out.
    """
    found = dict(MODELS)
    for point in sorted(entry_points(group=ENTRY_POINTS), key=lambda point: point.name):
        try:
            model = point.load()
        except Exception as error:  # somebody else's code: without it all others still work
            log.error("model %s left out: it cannot be loaded: %s", point.name, _one_line(error))  # noqa: TRY400
            continue
        if not isinstance(model, Model):
            log.error(
                "model %s left out: %s is no pipeline.experiments.trials.Model", point.name, point.value
            )
        elif point.name in found:
            log.error("model %s of %s left out: there is one of that name", point.name, point.value)
        else:
            found[point.name] = guarded(replace(model, name=point.name))
    return found


def guarded(model: Model) -> Model:
    """Return a model that bounds nothing where its own code fails, which is said once."""
    said = False

    def estimate(experiments: Experiments, alpha: float) -> Estimates:
        nonlocal said
        try:
            found = model.estimate(experiments, alpha)
            if found.is_of(experiments):
                return found
            reason = (
                "estimates are not four arrays with a number for each experiment, p-values between 0 and 1"
            )
        except Exception as error:  # likewise
            reason = _one_line(error)
        if not said:
            log.error("model %s finds nothing: %s", model.name, reason)
            said = True
        return Estimates.unknown(experiments)

    return replace(model, estimate=estimate)


def _one_line(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]
