"""Who is sampled, how often, and when it is tried again: tables of pure functions."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.host.backoff import Backoff
from agents.host.budget import CALM, MEASURED, MOST_LEVELS, BudgetState, adjust_level, rate_at
from agents.host.choice import choose
from agents.host.cost import CostMeter
from agents.host.discovery import Found, Scan
from agents.host.rules import LOWEST_HZ, How, Identity, Target

TARGET = Target(1, Identity("shop"), How())


def found(**shares: float) -> list[Found]:
    return [Found((int(name[1:]), 0.0), TARGET, share) for name, share in shares.items()]


@pytest.mark.parametrize(
    ("shares", "sampled", "most", "chosen"),
    [
        pytest.param({}, set(), 2, [], id="none"),
        pytest.param({"p1": 0.0, "p2": 0.0}, set(), 2, [1, 2], id="idle ones too, where there is room"),
        pytest.param({"p1": 0.1, "p2": 0.9, "p3": 0.5}, set(), 2, [2, 3], id="the largest users of CPU"),
        pytest.param({"p1": 0.5, "p2": 0.9}, {1}, 1, [1], id="what is sampled stays"),
        pytest.param({"p1": 0.4, "p2": 0.9}, {1}, 1, [2], id="until another uses twice as much"),
        pytest.param({"p1": 0.0, "p2": 0.0}, {2}, 1, [2], id="what is sampled stays, though idle"),
    ],
)
def test_choice(shares: dict[str, float], sampled: set[int], most: int, chosen: list[int]) -> None:
    taken, waiting = choose(found(**shares), {(pid, 0.0) for pid in sampled}, most)
    assert [each.pid for each in taken] == chosen
    assert len(taken) + len(waiting) == len(shares)


def test_backoff_doubles_up_to_ten_minutes() -> None:
    backoffs = list(
        itertools.accumulate(range(9), lambda b, _: b.after_failure("why", 0.0), initial=Backoff())
    )
    assert [backoff.until for backoff in backoffs] == [0, 5, 10, 20, 40, 80, 160, 320, 600, 600]
    assert backoffs[-1].reason == "why"


@pytest.mark.parametrize(
    ("shares", "level", "expected"),
    [
        pytest.param([0.009] * 4, 0, [0] * 4, id="within the budget"),
        pytest.param([0.019, 0.001], 0, [0, 0], id="one costly interval is nothing"),
        pytest.param([0.015, 0.015], 0, [0, 1], id="half the rate"),
        pytest.param([0.08, 0.08], 0, [0, 3], id="as much as it needs at once"),
        pytest.param([0.015] * 4, 0, [0, 1, 1, 2], id="measured anew at each level"),
        pytest.param([0.003] * 2 * CALM, 2, [2] * (CALM - 1) + [1] * CALM + [0], id="slowly back up"),
        pytest.param([0.004] * 2 * CALM, 2, [2] * 2 * CALM, id="not up without room"),
        pytest.param([1.0] * 2, MOST_LEVELS, [MOST_LEVELS] * 2, id="the lowest rate"),
    ],
)
def test_rates_fall_where_the_budget_is_exceeded_and_rise_slowly(
    shares: list[float], level: int, expected: list[int]
) -> None:
    states = itertools.accumulate(shares, lambda s, x: adjust_level(s, x, 0.01), initial=BudgetState(level))
    assert [state.level for state in states][1:] == expected


@given(fixed=st.floats(0, 0.004), per_hz=st.floats(0, 0.01), rate_hz=st.floats(1, 1000))
def test_the_budget_is_kept_wherever_cost_grows_with_rates(
    fixed: float, per_hz: float, rate_hz: float
) -> None:
    state, shares = BudgetState(), []
    for _ in range(200):
        share = fixed + per_hz * rate_at(rate_hz, state.level)
        shares.append((state.level, share))
        state = adjust_level(state, share, 0.01)
    settled = [share for _, share in shares[MEASURED * MOST_LEVELS :]]
    assert max(settled) <= 0.01 + 1e-9
    assert len({level for level, _ in shares[-5 * CALM :]}) == 1  # no swinging


@pytest.mark.parametrize(
    ("rate_hz", "level", "expected"),
    [
        (101, 0, 101),
        (100, 0, 100),
        (101, 1, 51),
        (101, 2, 25),
        (101, 5, 3),
        (101, 6, 1),
        (1, 1, 0.5),
        (0.02, 3, LOWEST_HZ),
        (1000, MOST_LEVELS, LOWEST_HZ),
    ],
)
def test_rates_of_levels_are_few_and_odd(rate_hz: float, level: int, expected: float) -> None:
    assert rate_at(rate_hz, level) == expected


def scan(uptime_s: float, own_cpu_s: float) -> Scan:
    return Scan(uptime_s, (), (), own_cpu_s)


def test_cost_is_a_share_of_all_cpus() -> None:
    meter = CostMeter(cpus=4)
    assert meter.share(scan(100, 5.0)) is None
    assert meter.share(scan(100, 5.0)) is None
    assert meter.share(scan(110, 5.4)) == pytest.approx(0.01)
    assert meter.share(scan(120, 5.0)) == 0.0
