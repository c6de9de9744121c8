"""The control of stacks: what earlier days say of the hours after a change."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from pipeline.analysis.stacks import ControlConfig, against_control, index_stacks, usual_factors
from tests.support.builders import build_stacks

Rows = dict[str, tuple[float, float]]

DAY: Rows = {"main->a->x": (10_000, 12_000), "main->a->y": (100, 120), "main->b": (89_900, 87_880)}
"""Every day endpoint ``a`` has a fifth more at the hours after."""


def factors(days: Sequence[Rows], config: ControlConfig | None = None) -> dict[str, float]:
    index = index_stacks(build_stacks(DAY))
    before, after = np.array([[list(pair) for pair in day.values()] for day in days]).transpose(2, 0, 1)
    return dict(zip(DAY, usual_factors(index, before, after, config).tolist(), strict=True))


@pytest.mark.parametrize(
    ("days", "stack", "expected"),
    [
        pytest.param([DAY] * 7, "main->a->x", 1.2, id="what every day does"),
        pytest.param([DAY] * 7, "main->b", 0.9775, id="what gives way to it"),
        pytest.param([{**DAY, "main->a->y": (0, 0)}] * 7, "main->a->y", 1.2, id="a stack that is new"),
        pytest.param([{**DAY, "main->a->y": (1, 1)}] * 7, "main->a->y", 1.2, id="few samples: the caller's"),
        pytest.param([{**DAY, "main->a->y": (1000, 600)}] * 7, "main->a->y", 0.6, id="many: its own"),
        pytest.param(
            [*([DAY] * 6), {**DAY, "main->a->x": (10_000, 40_000)}], "main->a->x", 1.2, id="one day apart"
        ),
        pytest.param([dict.fromkeys(DAY, (0.0, 0.0))] * 3, "main->a->x", 1.0, id="nothing known"),
    ],
)
def test_the_usual_factor(days: Sequence[Rows], stack: str, expected: float) -> None:
    assert factors(days)[stack] == pytest.approx(expected, rel=0.04)


def test_a_narrow_prior_keeps_to_the_caller() -> None:
    few = [{**DAY, "main->a->y": (300, 180)}] * 7
    wide, narrow = (factors(few, ControlConfig(spread=spread))["main->a->y"] for spread in (0.5, 0.01))
    assert wide < 0.65
    assert narrow > 1.05


def test_a_chain_of_callers_counts_once() -> None:
    """A callee that is all of its caller knows nothing that its caller does not."""
    rows: Rows = {"main->a": (40, 80), "main->b": (9960, 9920)}
    chained = {name.replace("main->a", "main->a->a1->a2->a3"): pair for name, pair in rows.items()}
    found = []
    for named in (rows, chained):
        index = index_stacks(build_stacks(named))
        before, after = (np.tile([pair[side] for pair in named.values()], (5, 1)) for side in (0, 1))
        found.append(usual_factors(index, before, after)[0])
    assert found[0] == pytest.approx(found[1])


@pytest.mark.parametrize(("known", "changed"), [(0, False), (2, False), (3, True), (7, True)])
def test_too_few_days_leave_the_index_as_it_is(known: int, changed: bool) -> None:
    index = index_stacks(build_stacks(DAY))
    assert (against_control(index, [build_stacks(DAY)] * known) is not index) is changed


def test_what_rises_every_day_is_no_rise() -> None:
    index = index_stacks(build_stacks({**DAY, "main->a->x": (10_000, 15_000), "main->b": (89_900, 84_880)}))
    rise = against_control(index, [build_stacks(DAY)] * 7).rise
    assert rise[0] == pytest.approx(0.03, rel=0.02)
    assert abs(rise[1]) < 1e-5


def test_days_without_samples_and_stacks_that_are_gone_are_no_error() -> None:
    index = index_stacks(build_stacks(DAY))
    more = build_stacks({**DAY, "main->gone": (50, 50)})
    found = against_control(index, [build_stacks({}), more, more, more, build_stacks({"main->gone": (1, 0)})])
    assert found.matrix.stacks == index.matrix.stacks
    assert np.isfinite(found.rise).all()


def test_the_order_of_days_and_stacks_plays_no_part() -> None:
    rng = np.random.default_rng(3)
    names = [f"main->e{i % 5}->f{i % 17}->g{i}" for i in range(60)]
    days = [{name: tuple(rng.poisson(50, 2).tolist()) for name in names} for _ in range(6)]
    order = rng.permutation(len(names)).tolist()
    index = index_stacks(build_stacks(days[0]))
    mixed = index_stacks(build_stacks({names[i]: days[0][names[i]] for i in order}))
    one = against_control(index, [build_stacks(day) for day in days]).rise
    other = against_control(mixed, [build_stacks(day) for day in reversed(days)]).rise
    np.testing.assert_allclose(other, one[order], atol=1e-12)
