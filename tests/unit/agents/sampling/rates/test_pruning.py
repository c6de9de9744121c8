"""Pruning: what Atys drops, what is drawn instead, and how much of it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.sampling.rates import Trial, busy_threads, choose_share, percentage_error, thin_stacks

Stack = tuple[str, ...]


def _tree(seed: int, stacks: int = 400) -> dict[Stack, int]:
    rng = np.random.default_rng(seed)
    counts = rng.zipf(1.6, stacks)
    return {
        ("main", f"a{rng.integers(8)}", f"b{rng.integers(40)}", f"c{number}"): int(min(count, 500))
        for number, count in enumerate(counts)
    }


def _samples_of(stacks: dict[Stack, int], frame: str) -> int:
    return sum(count for stack, count in stacks.items() if frame in stack)


@pytest.mark.parametrize(
    ("kept", "left"),
    [
        pytest.param(0.5, [0], id="the busiest"),
        pytest.param(0.9, [0, 1], id="a share between threads"),
        pytest.param(1.0, [0, 1, 2], id="all with samples"),
    ],
)
def test_busy_threads(kept: float, left: list[int]) -> None:
    threads, counts = np.array([0, 0, 1, 2, 3]), np.array([50, 30, 15, 5, 0])
    assert sorted(set(threads[busy_threads(threads, counts, kept)].tolist())) == left


@given(seed=st.integers(0, 100), share=st.floats(0, 0.6), offset=st.floats(0, 1, exclude_max=True))
def test_every_part_of_the_tree_keeps_its_samples_within_a_step(
    seed: int, share: float, offset: float
) -> None:
    stacks = _tree(seed, 100)
    thinned = thin_stacks(stacks, share, offset)
    changed = {stack: count for stack, count in stacks.items() if thinned.get(stack) != count}
    step = max(changed.values(), default=0) + 1
    assert sum(changed.values()) <= share * sum(stacks.values())
    for frame in ("main", *(f"a{number}" for number in range(8))):
        assert abs(_samples_of(thinned, frame) - _samples_of(stacks, frame)) <= step


def test_every_stack_keeps_its_samples_on_average() -> None:
    stacks, draws = _tree(1), 400
    thinned = thin_stacks(stacks, 0.2, 0.5)
    step = max(count for stack, count in stacks.items() if thinned.get(stack) != count) + 1
    sums = dict.fromkeys(stacks, 0)
    for offset in (np.arange(draws) + 0.5) / draws:
        for stack, count in thin_stacks(stacks, 0.2, float(offset)).items():
            sums[stack] += count
    for stack, count in stacks.items():
        assert sums[stack] / draws == pytest.approx(count, abs=step / draws + 1e-9)


@pytest.mark.parametrize(("share", "left"), [(0.0, 1.0), (0.05, 0.95), (0.3, 0.6)])
def test_thinning_leaves_few_stacks(share: float, left: float) -> None:
    stacks = _tree(2, 2000)
    assert len(thin_stacks(stacks, share, 0.3)) <= left * len(stacks)


def test_percentage_error_is_of_the_top() -> None:
    assert percentage_error(np.array([100.0, 50.0, 1.0]), np.array([90.0, 50.0, 0.0]), 2) == pytest.approx(
        0.05
    )
    assert percentage_error(np.zeros(2), np.zeros(2)) == 0.0


def test_the_largest_share_within_the_error_is_chosen() -> None:
    shares = np.linspace(0, 0.2, 9)
    trials = [Trial(share, 10 - 8 * share, 0.02 * math.log1p(30 * share)) for share in shares.tolist()]
    plan = choose_share(trials, 0.02)
    assert plan.share == pytest.approx((math.e - 1) / 30, rel=0.02)
    assert plan.saved == pytest.approx(0.8 * plan.share, rel=0.05)
    assert choose_share(trials, 1.0).share == pytest.approx(0.2)
    with pytest.raises(ValueError, match="three shares"):
        choose_share(trials[1:], 0.02)
