"""Scans of drawn services with and without one part of the detector each, where that part's question arises.

``python -m tests.support.detector_parts`` prints the table of docs/measured/steps.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy.signal import lfilter

from loadgen.harness import Mean, mean_of
from pipeline.analysis.detect.search import find_change_points
from pipeline.analysis.detect.short_term import WindowIndexes
from pipeline.analysis.filters.significance import judge_significance
from pipeline.model import FloatArray, MetricKind, SeriesMatrix
from pipeline.settings.workloads import load_workloads
from pipeline.stages.scanner import search_config

(WORKLOAD,) = load_workloads(("frontfaas-small",))
DAY, WINDOW_S = 144, 600.0
WINDOWS = WindowIndexes(10 * DAY, 10 * DAY + 24, 10 * DAY + 60)
AT = WINDOWS.analysis + 12
"""Window from which on subroutines cost more, and at which everything else happens."""

SERIES, STEPS, SAMPLES = 240, 24, 40_000.0
STEP = 10.0
"""Size of a step, in standard errors of the mean of the windows after it by sampling alone."""

TIME = np.arange(WINDOWS.end)


@dataclass(frozen=True, slots=True)
class Service:
    """A service with subroutines that cost more from AT on."""

    matrix: SeriesMatrix
    dearer: frozenset[str]  # their names


def _follow_the_day(rng: np.random.Generator) -> FloatArray:
    """Return the course of subroutines with daily cycles of their own, of up to 30 %."""
    heights, begins = rng.uniform(0, 0.3, (SERIES, 1)), rng.random((SERIES, 1))
    return 1 + heights * np.cos(2 * np.pi * (TIME / DAY - begins))


def _begin_a_weekend(rng: np.random.Generator) -> FloatArray:
    """Return the course of subroutines that change by up to 15 % at weekends, one of which begins at AT."""
    is_weekend = (TIME - AT) % (7 * DAY) < 2 * DAY
    return 1 + rng.uniform(-0.15, 0.15, (SERIES, 1)) * is_weekend


def _lose_a_large_part(_: np.random.Generator) -> FloatArray:
    """Return the course of shares when a twentieth of the service's cost goes away."""
    return np.broadcast_to(np.where(TIME >= AT, 1 / 0.95, 1.0), (SERIES, len(TIME)))


def _wander(rng: np.random.Generator, times: float = 1.0) -> FloatArray:
    """Return the course of subroutines that wander by ``times`` 1 to 3 %, correlated over two hours."""
    remains = np.exp(-1 / 12)
    drawn = rng.standard_normal((SERIES, len(TIME))) * np.sqrt(1 - remains**2)
    wandering: FloatArray = lfilter([1], [1, -remains], drawn)
    return 1 + times * rng.uniform(0.01, 0.03, (SERIES, 1)) * wandering


def _be_named_anew(_: np.random.Generator) -> FloatArray:
    """Return the course of subroutines, a sixth of which ends at AT as another sixth begins."""
    course = np.ones((SERIES, len(TIME)))
    course[: SERIES // 6, AT:] = 0.0
    course[SERIES // 6 : SERIES // 3, :AT] = 0.0
    return course


@dataclass(frozen=True, slots=True)
class Question:
    """What one part of the detector is about, and how the subroutines of such a service go."""

    about: str
    course: Callable[[np.random.Generator], FloatArray]


QUESTIONS: Mapping[str, Question] = {
    "daily_cycle": Question("subroutines follow the day, each in its own way", _follow_the_day),
    "week_before": Question("a weekend begins", _begin_a_weekend),
    "composition": Question("a twentieth of the service's cost goes away", _lose_a_large_part),
    "noise_at_scale": Question("subroutines wander by 3 to 9 % over two hours", partial(_wander, times=3.0)),
    "common_noise": Question("subroutines wander by 1 to 3 % over two hours", _wander),
    "exchanged_names": Question("a sixth of the names is made anew", _be_named_anew),
}
"""Parts of the detector, each with the question that it answers."""


def draw(part: str, seed: int) -> Service:
    """Draw a service for one part of the detector."""
    rng = np.random.default_rng((seed, list(QUESTIONS).index(part)))
    course = QUESTIONS[part].course(rng)
    levels = np.geomspace(3e-4, 2e-2, SERIES)
    rng.shuffle(levels[SERIES // 3 :])
    levels[SERIES // 6 : SERIES // 3] = levels[: SERIES // 6]  # new names have the cost of old ones
    rows = rng.choice(np.arange(SERIES // 3, SERIES), STEPS, replace=False)
    gains = STEP / np.sqrt(levels[rows] * SAMPLES * (WINDOWS.end - AT))
    course = np.array(course)
    course[rows, AT:] *= 1 + gains[:, None]
    samples = rng.binomial(int(SAMPLES), levels[:, None] * course).astype(np.float64)
    kind: MetricKind = "subroutine"
    names = tuple(f"{rng.integers(2**60):x}" for _ in range(SERIES))
    matrix = SeriesMatrix(0.0, WINDOW_S, (kind,) * SERIES, names, samples, np.full(len(TIME), SAMPLES))
    return Service(matrix, frozenset(names[row] for row in rows))


def reported(service: Service, without: frozenset[str]) -> tuple[int, int]:
    """Return the numbers of steady and of costlier subroutines among significant change points."""
    config = replace(search_config(WORKLOAD, 0.0, without), detectors=("short_term",))
    names = {
        candidate.metric
        for candidate in find_change_points(service.matrix, WINDOWS, config).candidates
        if judge_significance(candidate, series=SERIES).passed
    }
    return len(names - service.dearer), len(names & service.dearer)


def main(seeds: int = 20) -> None:
    """Print the table: sums over all services, and the mean difference a service with its interval."""
    for part, question in QUESTIONS.items():
        services = [draw(part, seed) for seed in range(1, seeds + 1)]
        without = np.array([reported(service, frozenset({part})) for service in services])
        whole = np.array([reported(service, frozenset()) for service in services])
        cells = [
            f"{lacking.sum()} → {having.sum()} | {_shown(mean_of((having - lacking).astype(np.float64)))}"
            for lacking, having in zip(without.T, whole.T, strict=True)
        ]
        print(f"| `{part}` | {question.about} | {' | '.join(cells)} |", flush=True)


def _shown(mean: Mean | None) -> str:
    if mean is None or mean.low is None:
        return "–"
    return f"{mean.value:+.2f} ({mean.low:+.2f} to {mean.high:+.2f})"


if __name__ == "__main__":
    main()
