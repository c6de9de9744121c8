"""The simulation of one process, and the programs that are run."""

from __future__ import annotations

import numpy as np
import pytest

from loadgen.bench.live.programs import PROGRAMS, slowed
from loadgen.bench.live.simulation import START, Process, Slowdown, simulate, standard_error
from loadgen.bench.live.trials import try_step
from pipeline.settings.workloads import load_workloads


def test_a_step_has_the_size_that_was_asked_for() -> None:
    slowdown = Slowdown(2000, lambda share: share)
    dataset, step = simulate(Process(), 4000, np.random.default_rng(3), slowdown)
    assert step is not None
    assert step.after == pytest.approx(2 * step.before)
    row = dataset.names.index(step.subroutine)
    for span, level in ((slice(0, 2000), step.before), (slice(2000, 4000), step.after)):
        seen = dataset.samples[row, span].sum() / dataset.totals[span].sum()
        assert seen == pytest.approx(level, abs=4 * standard_error(level, 101 * 50))
    assert step.time == START + 2000
    assert (dataset.totals > 0).tolist() == [True, False] * 2000


def test_costs_that_wander_scatter_more_than_samples() -> None:
    steady, _ = simulate(Process(), 4000, np.random.default_rng(3))
    restless, _ = simulate(Process(wander=0.3), 4000, np.random.default_rng(3))

    def scatter(samples: np.ndarray) -> float:
        return float(samples[1:, ::2].var(axis=1).mean())

    assert scatter(restless.samples) > 1.5 * scatter(steady.samples)
    assert restless.samples[-1].tolist() == restless.totals.tolist()  # main


def test_a_large_step_is_reported_within_a_minute() -> None:
    (workload,) = load_workloads(["live"])
    trial = try_step(workload, Process(), 12.0, 1)
    assert trial.delay_s is not None
    assert trial.delay_s <= 60
    assert trial.others == 0


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_run(name: str) -> None:
    works = PROGRAMS[name]()
    assert len({work.__name__ for work in works}) >= 3
    assert works[0].__name__ == slowed(name)
    for work in works:
        work()
