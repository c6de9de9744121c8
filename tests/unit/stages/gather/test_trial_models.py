"""Models of a user's own: loaded by entry point; one that is broken is one line, and finds nothing."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint

import numpy as np
import pytest

from pipeline.experiments.trials import (
    MODELS,
    Bounds,
    Estimates,
    Experiments,
    Model,
    ModelConfig,
    Sides,
    judge_trials,
)
from pipeline.experiments.trials.choice import ChoiceConfig, choose
from pipeline.stages.gather import trial_models
from pipeline.stages.gather.trial_models import load_models


def fails(experiments: Experiments, alpha: float) -> Estimates:
    raise ZeroDivisionError("of two\nlines")


def one_number(experiments: Experiments, alpha: float) -> Estimates:
    return Estimates(*(np.zeros(1) for _ in range(4)))


OWN = Model("given by the entry point", "As the paired test.", MODELS["paired-t-test"].estimate)
BROKEN = Model("b", "Fails.", fails)
SHORT = Model("s", "One number for all.", one_number)
NO_MODEL = "text"


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    def install(**points: str) -> None:
        found = [EntryPoint(name, f"{__name__}:{what}", "") for name, what in points.items()]
        monkeypatch.setattr(trial_models, "entry_points", lambda group: found)
        load_models.cache_clear()

    yield install
    load_models.cache_clear()


def test_a_model_is_known_by_the_name_of_its_entry_point(installed: Callable[..., None]) -> None:
    installed(mine="OWN")
    found = load_models()
    assert list(found) == [*MODELS, "mine"]
    sides = Sides(*np.random.default_rng(1).normal(100.0, 1.0, (2, 6, 10)))
    (verdict,) = judge_trials({"m": sides}, {"m": Bounds(0.01)}, {}, ModelConfig(found, "mine"))
    assert verdict.model == "mine"
    assert 0 < verdict.measured.p_value < 1


@pytest.mark.parametrize(
    ("points", "reason"),
    [
        ({"mine": "MISSING"}, "model mine left out: it cannot be loaded: AttributeError"),
        ({"mine": "NO_MODEL"}, "is no pipeline.experiments.trials.Model"),
        ({"paired-t-test": "OWN"}, "there is one of that name"),
    ],
)
def test_one_that_cannot_be_used_is_one_line(
    installed: Callable[..., None], caplog: pytest.LogCaptureFixture, points: dict[str, str], reason: str
) -> None:
    installed(**points)
    assert dict(load_models()) == dict(MODELS)
    (record,) = [one for one in caplog.records if one.levelno == logging.ERROR]
    assert reason in record.getMessage()
    assert "\n" not in record.getMessage()
    assert record.exc_info is None


@pytest.mark.parametrize("what", ["BROKEN", "SHORT"])
def test_one_that_fails_finds_nothing_and_is_not_chosen(
    installed: Callable[..., None], caplog: pytest.LogCaptureFixture, what: str
) -> None:
    installed(mine=what)
    model = load_models()["mine"]
    experiments = Experiments(*np.random.default_rng(1).normal(100.0, 1.0, (2, 40, 6, 10)))
    choice = choose(experiments, ChoiceConfig(regression=0.05), [model, MODELS["paired-t-test"]])
    assert choice.model == "paired-t-test"
    (record,) = [one for one in caplog.records if one.levelno == logging.ERROR]
    assert record.getMessage().startswith("model mine finds nothing: ")
