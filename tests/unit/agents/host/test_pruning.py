"""Pruning of a host's stacks: by an initialisation stage an hour and service, and right on average."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np
import pytest

from agents.host.parts import Part
from agents.host.pruning import PLANNED_S, Pruner
from agents.host.rules import Identity
from agents.profiles.formats import Stack
from agents.sampling.rates import SHARES

HEAVY: dict[Stack, int] = {("main", f"busy{number}"): 4_000 for number in range(10)}
RARE: dict[Stack, int] = {
    ("main", f"busy{number % 10}", f"rare{number}", "read"): 1 for number in range(4_000)
}


def part(service: str = "shop", end: float = 10.0, stacks: dict[Stack, int] | None = None) -> Part:
    counts = HEAVY | RARE if stacks is None else stacks
    return Part(Identity(service=service), 49.0, end - 10.0, end, counts)


class Aggregation:
    """Takes far longer for many stacks than for few, and counts how often it is asked."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, given: Part) -> int:
        self.asked += 1
        return sum(sum(range(200)) for _ in given.stacks)


def pruner(most_error: float = 0.05) -> Pruner:
    return Pruner(most_error, np.random.default_rng(1))


def test_rare_stacks_are_drawn_from_and_functions_keep_their_samples(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    subject, aggregation, given = pruner(), Aggregation(), part()
    found = [subject.prune(given, aggregation) for _ in range(20)]
    assert all(len(each.stacks) < 0.8 * len(given.stacks) for each in found)
    assert all(abs(sum(each.stacks.values()) - sum(given.stacks.values())) < 5_000 for each in found)
    reads = [sum(count for stack, count in each.stacks.items() if stack[-1] == "read") for each in found]
    assert np.mean(reads) == pytest.approx(len(RARE), rel=0.05)
    (line,) = [record.message for record in caplog.records]
    assert line.startswith("shop: stacks with ")


def test_each_service_is_set_up_once_an_hour() -> None:
    subject, aggregation = pruner(), Aggregation()
    asked = []
    for service, end in (("shop", 10.0), ("shop", 20.0), ("cart", 20.0), ("shop", 10.0 + PLANNED_S)):
        subject.prune(part(service, end), aggregation)
        asked.append(aggregation.asked)
    once = 3 * len(SHARES)
    assert asked == [once, once, 2 * once, 3 * once]


@pytest.mark.parametrize(
    ("stacks", "most_error"), [((), 0.05), (("heavy",), 0.05), (("heavy", "rare"), 1e-9)]
)
def test_what_saves_nothing_or_errs_too_much_is_left_as_it_is(
    stacks: Sequence[str], most_error: float
) -> None:
    rare: dict[Stack, int] = {("main", f"rare{number}"): 1 for number in range(40)}
    given = part(stacks=(HEAVY if "heavy" in stacks else {}) | (rare if "rare" in stacks else {}))
    assert pruner(most_error).prune(given, Aggregation()).stacks == given.stacks
