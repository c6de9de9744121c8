"""How sure it is that regressions of different kinds begin together: by time, changes and size; a trial."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pipeline.analysis.dedup.onsets import Onset, Watched, onset_similarities
from pipeline.model.units import DAY_S, HOUR_S

T0 = 1_700_000_000.0
SPAN_S = 18 * DAY_S
METRIC = Onset(T0 - HOUR_S / 2, T0 + HOUR_S / 2, gcpu=False, size=40.0)
CPU = Onset(T0 - 600.0, T0 + 600.0, gcpu=True, size=0.05, event="E1")
NO_CHANGES = np.zeros(0)


def sure(
    one: Onset, other: Onset, *reported: Onset, deployed: np.ndarray | None = None, span_s: float = SPAN_S
) -> float:
    """Return how sure it is that two begin together for a reason."""
    changes = NO_CHANGES if deployed is None else deployed
    return float(onset_similarities([one, other], Watched(span_s, reported, changes))[0, 1])


def others(count: int, size: float, *, gcpu: bool = True) -> list[Onset]:
    """Return events of other days."""
    return [
        Onset(T0 - (2 + n) * DAY_S, T0 - (2 + n) * DAY_S + 600.0, gcpu, size, f"X{n}") for n in range(count)
    ]


def every(hours: float) -> np.ndarray:
    """Return single changes at that distance, one of them at the onset."""
    return np.arange(T0 - 400 * HOUR_S, T0 + HOUR_S, hours * HOUR_S)


def release(changes: int) -> np.ndarray:
    """Return releases of so many changes, one a day."""
    return np.sort(np.concatenate([T0 - DAY_S * np.arange(17.0)] * changes))


@pytest.mark.parametrize(
    ("similarity", "one"),
    [
        pytest.param(sure(METRIC, CPU), True, id="the only one in weeks"),
        pytest.param(sure(CPU, METRIC), True, id="in either order"),
        pytest.param(sure(METRIC, CPU, *others(5, 0.06)), True, id="one of six as large"),
        pytest.param(sure(METRIC, CPU, *others(30, 0.001)), True, id="the largest of many"),
        pytest.param(sure(METRIC, CPU, *others(30, 0.06)), False, id="one of many as large"),
        pytest.param(
            sure(METRIC, replace(CPU, begin=T0 - DAY_S, end=T0)),
            False,
            id="a vague beginning",
        ),
        pytest.param(
            sure(METRIC, replace(CPU, begin=T0 + HOUR_S, end=T0 + 2 * HOUR_S)), False, id="an hour later"
        ),
        pytest.param(sure(METRIC, CPU, span_s=DAY_S), False, id="seen for a day only"),
        pytest.param(sure(METRIC, CPU, deployed=every(24)), True, id="one change a day"),
        pytest.param(sure(METRIC, CPU, deployed=every(0.5)), True, id="changes all the time"),
        pytest.param(sure(METRIC, CPU, deployed=release(20)), False, id="one large release a day"),
        pytest.param(sure(METRIC, replace(METRIC, size=0.3)), True, id="two metrics"),
        pytest.param(
            sure(METRIC, METRIC, *others(20, 1.0, gcpu=False)), False, id="two metrics, of many that step"
        ),
        pytest.param(sure(CPU, replace(CPU, event="E2")), False, id="gCPU has stacks to say so"),
    ],
)
def test_when_two_beginnings_are_one(similarity: float, one: bool) -> None:
    assert (similarity >= 0.95) is one


def test_an_event_counts_once_by_its_largest_series() -> None:
    members = [replace(CPU, size=0.001 * n) for n in range(40)]
    assert sure(METRIC, CPU, *members) == sure(METRIC, CPU)


RELEASES = T0 + np.arange(0, SPAN_S, 3 * HOUR_S)


@pytest.mark.parametrize(
    ("seed", "deployed", "most_met"),
    [
        pytest.param(5, NO_CHANGES, 0.08, id="at random times"),
        pytest.param(
            6,
            np.sort(np.concatenate([RELEASES, RELEASES + 60.0, RELEASES + 120.0])),
            0.09,
            id="with one of the releases of three changes each, eight a day",
        ),
    ],
)
def test_what_begins_by_chance_is_seldom_taken_for_one(
    seed: int, deployed: np.ndarray, most_met: float
) -> None:
    """One metric and eight gCPU regressions: one of twenty metrics may join at most."""
    rng = np.random.default_rng(seed)
    joined = met = 0
    for _ in range(2000):
        times = rng.choice(deployed, size=9) if len(deployed) else T0 + rng.uniform(0, SPAN_S, size=9)
        cpu = [
            Onset(time - 900.0, time + 900.0, True, size, f"E{n}")
            for n, (time, size) in enumerate(zip(times[1:], rng.lognormal(-5, 1, 8), strict=True))
        ]
        metric = Onset(times[0] - HOUR_S, times[0] + HOUR_S, False, 1.0)
        found = onset_similarities([*cpu, metric], Watched(SPAN_S, [], deployed))[-1, :-1]
        met += any(metric.overlaps(onset) for onset in cpu)
        joined += bool((found >= 0.95).any())
    assert 0.03 < met / 2000 < most_met
    assert joined / 2000 < 0.05
