"""The bench of groupings: its counting of pairs, and one real run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import orjson
import pytest

from loadgen.evaluation.grouping.cases import GroupedFleet, GroupingCase
from loadgen.evaluation.grouping.command import GROUPINGS
from loadgen.evaluation.grouping.score import GroupingScore, score_grouping
from loadgen.evaluation.rates import Rate
from pipeline.analysis.stacks import Group
from pipeline.cli import run
from pipeline.model import Scan
from tests.support.builders import build_candidate, build_stacks
from tests.unit.evaluation.test_scoring import START, row

HOUR = 3600.0
ROWS = (
    row("one", series=("a", "a_caller", "main")),
    row("other", "new_feature", series=("b", "b_caller", "main")),
)


def case(*names: str, change_time: float = START, end: float = START + 8 * HOUR) -> GroupingCase:
    scan = Scan("shop", "w", START - 10 * HOUR, START, end, end, 100)
    candidates = tuple(build_candidate(name, change_time=change_time) for name in names)
    stacks = build_stacks(dict.fromkeys(names, (1, 2)), total=100)
    return GroupingCase(scan, candidates, stacks, ((),) * len(names), np.ones((len(names), 8)))


def scored(cases: Sequence[GroupingCase], groups: Sequence[Sequence[tuple[int, ...]]]) -> GroupingScore:
    fleet = GroupedFleet("p", 1, ROWS, len(cases), tuple(cases))
    made = [[Group(first, tuple(others), (1.0,) * len(others)) for first, *others in one] for one in groups]
    return score_grouping(fleet, made, tolerance_s=4 * HOUR)


@pytest.mark.parametrize(
    ("names", "groups", "right", "together"),
    [
        pytest.param(("a", "a_caller", "b"), [(0, 1), (2,)], (1, 1), (1, 1), id="as the truth has it"),
        pytest.param(("a", "a_caller", "b"), [(0, 1, 2)], (1, 3), (1, 1), id="two causes in one group"),
        pytest.param(("a", "a_caller", "b"), [(0,), (1,), (2,)], (0, 0), (0, 1), id="one cause in two"),
        pytest.param(("b", "main"), [(0, 1)], (1, 1), (0, 0), id="a caller that two rows explain"),
        pytest.param(("a", "noise"), [(0, 1)], (0, 0), (0, 0), id="what nothing explains counts for neither"),
    ],
)
def test_pairs(
    names: tuple[str, ...], groups: list[tuple[int, ...]], right: tuple[int, int], together: tuple[int, int]
) -> None:
    found = scored([case(*names)], [groups])
    assert (found.right, found.together) == (Rate(*right), Rate(*together))


def test_wrong_pairs_are_reported_by_kind() -> None:
    found = scored([case("a", "a_caller", "b", "noise")], [[(0, 2, 3), (1,)]])
    assert found.merged == {"new_feature + regression": 1}
    assert found.split == {"regression": 1}
    assert found.unexplained == 2


def test_candidates_of_different_scans_are_no_pair_and_of_one_scan_are() -> None:
    later = case("a_caller", end=START + 10 * HOUR)
    assert scored([case("a"), later], [[(0,)], [(0,)]]).together == Rate(0, 0)
    assert scored([case("a"), case("a_caller")], [[(0,)], [(0,)]]).together == Rate(0, 1)


def test_groups_are_counted_by_cause() -> None:
    found = scored([case("a", "a_caller", "b")], [[(0,), (1,), (2,)]])
    assert found.groups == 3
    assert found.groups_per_cause == 1.5


@pytest.mark.parametrize(
    ("group", "nearest"), [((0, 1), Rate(1, 1)), ((1, 0), Rate(0, 1)), ((0,), Rate(0, 0))]
)
def test_a_representative_should_be_the_nearest_to_the_cause(group: tuple[int, ...], nearest: Rate) -> None:
    assert scored([case("a", "a_caller")], [[group]]).nearest == nearest


def test_a_candidate_at_another_time_is_explained_by_nothing() -> None:
    found = scored([case("a", "a_caller", change_time=START + 5 * HOUR)], [[(0, 1)]])
    assert (found.unexplained, found.right) == (1, Rate(0, 0))


def test_scores_add_up() -> None:
    one = scored([case("a", "b")], [[(0, 1)]])
    assert (one + one).right == Rate(0, 2)
    assert (one + one).merged == {"new_feature + regression": 2}


@pytest.mark.parametrize("name", GROUPINGS)
def test_every_grouping_puts_each_candidate_into_one_group(name: str) -> None:
    one = case("a", "a_caller", "b")
    many = replace(one, values=np.random.default_rng(4).normal(size=(3, 64)))
    groups = GROUPINGS[name](many)
    assert sorted(i for group in groups for i in (group.representative, *group.members)) == [0, 1, 2]


@pytest.mark.slow
def test_the_command_prints_a_line_for_every_preset_and_grouping(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["bench", "grouping", "--seeds", "1", "--presets", "tiny", "--json"]) == 0
    lines = [orjson.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(line["preset"], line["grouping"]) for line in lines] == [
        (preset, name) for preset in ("tiny", "all") for name in GROUPINGS
    ]


def test_an_unknown_preset_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["bench", "grouping", "--presets", "missing"]) == 2
    assert "missing" in capsys.readouterr().err
