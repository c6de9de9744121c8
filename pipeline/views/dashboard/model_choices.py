"""Choices of models by periodic A/A tests: errors of each model, the chosen one, and earlier choices."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pipeline.experiments.trials import Choice
from pipeline.experiments.trials.choice import Score
from pipeline.experiments.trials.experiment import HISTORY_S
from pipeline.messages.trials import choice_of_row
from pipeline.storage.interface import RowQuery, Store


class ChosenFor(NamedTuple):
    """Subject of a choice: experiments of a metric with a number of trials, a threshold and alpha."""

    service: str
    metric: str
    trials: int
    threshold: float
    alpha: float


@dataclass(frozen=True, slots=True)
class DatedChoice:
    """A choice and its time, epoch seconds of event time. Its model is empty if no model held."""

    time: float
    choice: Choice
    former: str

    @property
    def model(self) -> str:
        """Return the name of the chosen model; empty if no model held its errors."""
        return self.choice.model or ""

    @property
    def score(self) -> Score | None:
        """Return the errors of the chosen model."""
        return next((candidate for candidate in self.choice.scores if candidate.model == self.model), None)


@dataclass(frozen=True, slots=True)
class ModelCourse:
    """All choices for one subject, the oldest first; there is at least one."""

    of: ChosenFor
    choices: tuple[DatedChoice, ...]

    @property
    def latest(self) -> DatedChoice:
        """The choice that is in force."""
        return self.choices[-1]

    @property
    def changes(self) -> tuple[DatedChoice, ...]:
        """Choices with another model than the one before, the latest first."""
        pairs = zip(self.choices, self.choices[1:], strict=False)
        return tuple(after for before, after in pairs if before.model != after.model)[::-1]

    @property
    def since(self) -> float:
        """Time since which the model in force has been chosen, epoch seconds."""
        return (self.changes or self.choices)[0].time

    @property
    def scores(self) -> tuple[Score, ...]:
        """Scores of the latest choice: models that hold first, then the fewest errors."""
        return tuple(
            sorted(
                self.latest.choice.scores,
                key=lambda score: (not score.holds, score.total, score.detectability),
            )
        )


def read_services(store: Store) -> set[str]:
    """Read the services that have choices.

    Raises:
        StoreUnavailable: the store did not answer.
    """
    return {row["service"] for row in store.rows(RowQuery("trial_models", None, columns=("service",)))}


def read_courses(store: Store, since: float, service: str = "", metric: str = "") -> tuple[ModelCourse, ...]:
    """Read the choices since a time, of all services and metrics or of some, by service, metric and trials.

    Raises:
        StoreUnavailable: the store did not answer.
    """
    wanted = {"metric": metric} if metric else {}
    rows = store.rows(RowQuery("trial_models", service or None, since, equal=wanted))
    return courses_of(rows)


def courses_of(rows: Sequence[Mapping[str, Any]]) -> tuple[ModelCourse, ...]:
    """Return rows of ``trial_models``, the oldest first, by their subject."""
    choices: dict[ChosenFor, list[DatedChoice]] = defaultdict(list)
    for row in rows:
        key = ChosenFor(
            row["service"], row["metric"], int(row["trials"]), float(row["threshold"]), float(row["alpha"])
        )
        choices[key].append(DatedChoice(row["time"], choice_of_row(row), row["former"]))
    return tuple(ModelCourse(key, tuple(choices[key])) for key in sorted(choices))


def count_tests(store: Store, now: float) -> dict[str, int]:
    """Return the number of whole A/A trials of each service in the two weeks that choices are made by.

    Raises:
        StoreUnavailable: the store did not answer.
    """
    columns = ("service", "experiment", "trial", "side")
    rows = store.rows(RowQuery("trials", None, now - HISTORY_S, now, columns=columns, equal={"kind": "A/A"}))
    sides: dict[str, dict[tuple[str, str], set[str]]] = defaultdict(lambda: defaultdict(set))
    for row in rows:
        sides[row["service"]][row["experiment"], row["trial"]].add(row["side"])
    return {service: sum(len(trial) == 2 for trial in trials.values()) for service, trials in sides.items()}
