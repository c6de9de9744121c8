"""The lab's ranges of commits: one of 16 is slower, and what a bisection found of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from loadgen.bench.lab.bisection import COMMITS, Bisected, summary, write_range
from loadgen.target.repository import git


def test_one_commit_of_a_range_changes_the_cost(tmp_path: Path) -> None:
    folder = tmp_path / "range"
    span = write_range(folder, 5)
    assert len(span.commits) == COMMITS
    changed = git(folder, "log", "--format=%H", f"{span.first}..HEAD", "--", "shop/settings.py")
    assert changed == span.versions[5]


@pytest.mark.parametrize(
    ("found", "right"),
    [
        pytest.param((3,), True, id="found"),
        pytest.param((4,), False, id="another one"),
        pytest.param((3, 4), False, id="with its neighbour"),
        pytest.param((), False, id="none"),
    ],
)
def test_only_the_slow_commit_alone_is_right(found: tuple[int, ...], right: bool) -> None:
    one = Bisected(3, found, 6, 10, 0.01)
    assert one.right is right
    assert str(one).endswith("right" if right else "wrong")
    assert summary([one]).startswith(f"{right:d} of 1 right; on average 6.0 builds and 10.0 runs")
