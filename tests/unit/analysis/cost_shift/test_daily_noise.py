from __future__ import annotations

import numpy as np
import pytest

from pipeline.analysis.cost_shift.daily_noise import Movement, moving_dispersion
from pipeline.analysis.cost_shift.stack_history import stack_history
from pipeline.analysis.stacks import index_stacks
from pipeline.model import StackMatrix

SAMPLES = 9000
LABELS = 60


def movement(seed: int, *, bursts: float = 1.0, regressed: float = 0.0) -> Movement:
    """Counts of labels in two spans; ``bursts`` samples come together, one label grows by ``regressed``."""
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(LABELS, 5.0))
    later = shares + regressed * (np.arange(LABELS) == 0)
    before, after = (
        (rng.multinomial(round(SAMPLES / bursts), side / side.sum()) * bursts).astype(np.float64)
        for side in (shares, later)
    )
    return Movement(before, after, float(before.sum()), float(after.sum()))


@pytest.mark.parametrize(
    ("bursts", "expected"),
    [
        pytest.param(1.0, 1.0, id="independent samples"),
        pytest.param(3.0, 3.0, id="three at a time"),
        pytest.param(6.0, 6.0, id="six at a time"),
    ],
)
@pytest.mark.parametrize("regressed", [0.0, 0.1, 0.3])
def test_the_noise_of_labels_is_that_of_the_load_whatever_one_of_them_does(
    bursts: float, expected: float, regressed: float
) -> None:
    found = [
        moving_dispersion(
            [movement(2 * seed, bursts=bursts), movement(2 * seed + 1, bursts=bursts, regressed=regressed)]
        )
        for seed in range(100)
    ]
    assert np.median(found) == pytest.approx(expected, rel=0.25)
    assert min(found) >= 1.0


def test_a_few_labels_say_nothing_of_the_load() -> None:
    few = Movement(np.full(20, 100.0), np.linspace(50.0, 150.0, 20), 4000.0, 4000.0)
    assert moving_dispersion([few]) == 1.0
    assert moving_dispersion([few, few]) > 2.0
    assert moving_dispersion([]) == 1.0


def test_a_span_without_samples_is_passed_over() -> None:
    nothing = Movement(np.zeros(LABELS), np.zeros(LABELS), 0.0, 0.0)
    one = movement(1, bursts=3.0)
    assert moving_dispersion([nothing, one]) == moving_dispersion([one])


def test_spans_before_the_change_say_by_how_much_a_young_service_moves() -> None:
    def stacks(seed: int, bursts: float) -> StackMatrix:
        one = movement(seed, bursts=bursts)
        names = tuple((f"main{i % 3}", f"x{i}") for i in range(LABELS))
        return StackMatrix(names, one.before, one.after, one.total_before, one.total_after)

    change = stacks(1, 4.0)
    index = index_stacks(change)
    assert stack_history(index).dispersion == 1.0  # too few stacks by themselves
    assert stack_history(index, earlier=[stacks(2, 4.0)]).dispersion == pytest.approx(4.0, rel=0.5)
