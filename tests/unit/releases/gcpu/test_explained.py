"""Which change explains which: a table of call trees."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.releases.gcpu import Changes, explained_by

STACKS = (
    ("main",),
    ("main", "a"),
    ("main", "a", "b"),
    ("main", "a", "b", "c"),
    ("main", "d"),
    ("main", "d", "b"),
)
NAMES = ("main", "a", "b", "c", "d")
WEIGHTS = np.array([5.0, 20.0, 10.0, 25.0, 30.0, 10.0])


def changes(rises: dict[int, float]) -> Changes:
    """Return the changes of all series where stacks take more, in shares of the whole before."""
    held = np.array([[name in stack for stack in STACKS] for name in NAMES], dtype=np.float64)
    after = WEIGHTS + 100 * np.array([rises.get(row, 0.0) for row in range(len(STACKS))])
    shares = (held @ WEIGHTS / WEIGHTS.sum(), held @ after / after.sum())
    joint = (held * after) @ held.T
    return Changes(
        change=shares[1] - shares[0],
        error=np.sqrt(np.maximum(shares[0] * (1 - shares[0]), 1e-6) / 1e4),
        share=shares[0],
        depth=np.array([0.0, 1, 2, 3, 1]),
        overlap=joint / np.diag(joint)[:, None],
    )


CASES = {
    "a callee; its callers rise with it": ({3: 0.05}, {"c"}),
    "a caller's own code; what it calls does not rise": ({1: 0.05}, {"a"}),
    "more calls of one callee of two callers": ({2: 0.02, 3: 0.05, 5: 0.02}, {"b"}),
    "two causes apart": ({3: 0.05, 4: 0.05}, {"c", "d"}),
    "a callee that got faster; all else gets its share": ({3: -0.1}, {"c"}),
}


@pytest.mark.parametrize(("rises", "causes"), CASES.values(), ids=CASES.keys())
def test_what_stands_for_itself(rises: dict[int, float], causes: set[str]) -> None:
    found = explained_by(changes(rises))
    roots = {NAMES[row] for row, by in enumerate(found.tolist()) if row == by and NAMES[row] != "main"}
    assert roots == causes
