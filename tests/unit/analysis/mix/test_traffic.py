"""Traffic shifts: what rises with its callers' traffic is dropped, what got slower by itself is not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from pipeline.analysis.cost_shift.stack_history import stack_history
from pipeline.analysis.mix.traffic import judge_traffic_shifts
from pipeline.analysis.stacks import index_stacks
from pipeline.model import Decision, StackMatrix
from tests.support.builders import build_candidate, build_stacks
from tests.support.calibration import calibrated

SAMPLES = 400_000
ENDPOINTS = 12
CALLEES = 5


def fleet(
    traffic: Mapping[int, float],
    slower: Mapping[str, float],
    *,
    seed: int = 0,
    samples: int = SAMPLES,
    endpoints: int = ENDPOINTS,
) -> StackMatrix:
    """Stacks of endpoints with callees, each with a library below it.

    Args:
        traffic: Endpoint → factor of its requests after.
        slower: Subroutine → factor of what one request costs there.
        seed: Of the shares and samples.
        samples: On either side.
        endpoints: How many there are.
    """
    rng = np.random.default_rng(seed)
    stacks = {}
    for endpoint in range(endpoints):
        for callee in range(CALLEES):
            path = f"main->handle{endpoint}->f{endpoint}.{callee}"
            stacks[path] = float(rng.gamma(2))
            stacks[f"{path}->lib.{callee}"] = float(rng.gamma(2))
    before = np.array(list(stacks.values()))
    after = before.copy()
    for row, path in enumerate(stacks):
        frames = path.split("->")
        after[row] *= traffic.get(int(frames[1].removeprefix("handle")), 1.0)
        for name, factor in slower.items():
            after[row] *= factor if name == frames[-1] or (name in frames and name.startswith("f")) else 1.0
    drawn = [rng.multinomial(samples, side / side.sum()) for side in (before, after)]
    return build_stacks({path: (float(b), float(a)) for path, b, a in zip(stacks, *drawn, strict=True)})


def judge(matrix: StackMatrix, labels: Sequence[str], days: Sequence[StackMatrix] = ()) -> list[Decision]:
    candidates = [build_candidate(label) for label in labels]
    judged = judge_traffic_shifts(stack_history(index_stacks(matrix), days), candidates)
    assert [candidate for candidate, _ in judged] == candidates
    return [decision for _, decision in judged]


MOVED = {0: 2.0, 1: 0.5, 2: 1.7, 3: 0.6, 4: 1.4, 5: 0.7, 6: 3.0, 7: 0.8}


@pytest.mark.parametrize("days", [0, 5], ids=["a young service", "a week of days"])
@pytest.mark.parametrize(
    ("traffic", "slower", "label", "passes"),
    [
        pytest.param({}, {"f0.1": 1.5}, "f0.1", True, id="it got slower"),
        pytest.param({}, {"lib.1": 1.3}, "lib.1", True, id="a library got slower for all callers"),
        pytest.param(MOVED, {}, "f0.1", False, id="its endpoint has more requests"),
        pytest.param(MOVED, {}, "f6.3", False, id="another one has"),
        pytest.param(MOVED, {"f0.1": 2.0}, "f0.1", True, id="both: it got slower too"),
        pytest.param(MOVED, {"f3.1": 3.0}, "f3.1", True, id="it got slower, and its endpoint has less"),
        pytest.param(MOVED, {"f8.0": 1.5}, "f8.0", True, id="it got slower where traffic stayed"),
        pytest.param(MOVED, {"lib.2": 1.6}, "lib.2", True, id="a library got slower as traffic moved"),
        pytest.param({0: 2.0}, {}, "f0.1", False, id="one endpoint alone has more requests"),
        pytest.param(MOVED, {}, "f1.0", True, id="it fell"),
        pytest.param(MOVED, {}, "unheard", True, id="no stack holds it"),
    ],
)
def test_what_rose_with_its_callers_is_dropped(
    traffic: dict[int, float], slower: dict[str, float], label: str, passes: bool, days: int
) -> None:
    quiet = [fleet({}, {}, seed=0, samples=SAMPLES + day) for day in range(1, days + 1)]
    decided = judge(fleet(traffic, slower), [label], quiet)[0]
    assert decided.passed is passes
    assert decided.step == "traffic_shift"
    assert decided.code == ("" if passes else "callers")


def test_the_statistic_is_its_own_part() -> None:
    (moved,) = judge(fleet(MOVED, {}), ["f0.1"])
    (slower,) = judge(fleet({}, {"f0.1": 1.5}), ["f0.1"])
    assert abs(moved.statistic) < moved.bound <= 1 / 3
    assert slower.statistic == pytest.approx(1.0, abs=0.1)


def test_two_that_got_slower_are_no_witnesses_of_each_other() -> None:
    # Most of what their caller does got slower; the rest says that no requests were added.
    slower = {f"f0.{callee}": 1.6 for callee in range(4)}
    decided = judge(fleet({}, slower), [*slower, "handle0"])
    assert all(decision.passed for decision in decided)


def test_of_few_callers_nothing_is_known() -> None:
    decided = judge(fleet({0: 2.0}, {}, endpoints=2), ["f0.1"])
    assert [decision.passed for decision in decided] == [True]


@pytest.mark.parametrize("fleets", calibrated([40, 200], lambda fleets: fleets == 40))
@pytest.mark.parametrize(
    ("traffic", "slower", "label"),
    [
        pytest.param({}, {"f0.1": 1.12}, "f0.1", id="five standard errors beside its caller's others"),
        pytest.param({0: 1.09}, {}, "handle0", id="a type by six standard errors on a quiet day"),
    ],
)
def test_without_a_shift_what_rose_is_hardly_ever_dropped(
    traffic: dict[int, float], slower: dict[str, float], label: str, fleets: int
) -> None:
    dropped = sum(
        not judge(fleet(traffic, slower, seed=seed, samples=SAMPLES // 4), [label])[0].passed
        for seed in range(fleets)
    )
    assert dropped <= 2


def test_another_callee_that_got_slower_is_no_traffic() -> None:
    # It is no candidate of this scan: an earlier one reported it.
    (decided,) = judge(fleet(MOVED, {"f8.0": 4.0, "f8.1": 1.5}), ["f8.1"])
    assert decided.passed


@pytest.mark.parametrize(
    ("traffic", "slower", "label", "code"),
    [
        pytest.param(MOVED, {}, "handle6", "requests", id="a request type rises as others move"),
        pytest.param(MOVED, {}, "handle4", "requests", id="by less than they do"),
        pytest.param({6: 3.0}, {}, "handle6", "", id="one alone rises"),
        pytest.param({0: 0.5, 6: 3.0}, {}, "handle6", "requests", id="one fell as a whole, and it rose so"),
        pytest.param({0: 0.5}, {"f6.1": 9.0}, "handle6", "", id="one fell, and a callee of it got slower"),
        pytest.param({}, {"f0.1": 0.1, "f6.1": 9.0}, "handle6", "", id="one became faster, it got slower"),
        pytest.param({0: 1.6, 2: 2.0, 6: 3.0}, {}, "handle6", "", id="several rise, as what is slower does"),
        pytest.param({**MOVED, 6: 60.0}, {}, "handle6", "requests", id="it rises far beyond the others"),
        pytest.param(MOVED, {"f6.1": 1.3}, "handle6", "requests", id="most of its rise is requests"),
        pytest.param(MOVED, {"f8.1": 1.6}, "f8.1", "", id="a callee got slower where its siblings stayed"),
        pytest.param(MOVED, {"f4.1": 2.5}, "f4.1", "", id="and where they rose by less"),
    ],
)
def test_a_request_type_is_held_against_the_others(
    traffic: dict[int, float], slower: dict[str, float], label: str, code: str
) -> None:
    (decided,) = judge(fleet(traffic, slower), [label])
    assert decided.code == code
    assert decided.passed is (code == "")


def test_a_request_type_rises_by_itself_where_only_what_got_slower_in_it_did() -> None:
    matrix = fleet(MOVED, {"f8.1": 3.0})
    assert all(decision.passed for decision in judge(matrix, ["handle8"]))
    assert all(decision.passed for decision in judge(matrix, ["handle8", "f8.1"]))


def test_where_most_rose_with_traffic_what_rose_by_half_did_too() -> None:
    matrix = fleet({0: 2.0, 1: 0.5}, {"f0.3": 1.4}, seed=2, samples=10_000)
    (alone,) = judge(matrix, ["f0.3"])
    *others, among = judge(matrix, ["f0.0", "f0.1", "f0.2", "f0.3"])
    assert not any(decision.passed for decision in others)
    assert alone.passed
    assert not among.passed
    assert 1 / 3 < among.statistic < among.bound
