from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pipeline.analysis.dedup.links import Link
from pipeline.analysis.dedup.merging import Nearest, merge
from pipeline.analysis.dedup.pairs import Pairs, day_differences, pearson, stack_overlaps
from pipeline.analysis.dedup.releases import release_similarities
from pipeline.analysis.dedup.rules import DEFAULT_RULES, Feature, MergeRule, PairwiseConfig
from pipeline.model import FloatArray, StackMatrix
from tests.support.builders import build_change
from tests.support.dedup import CONFIG, START, build_pairs, pairs_of

TOTAL = 10_000.0


def matrix(**rises: tuple[float, float]) -> StackMatrix:
    """Stacks spelt as ``a_b_c``, with their samples before and after."""
    stacks = tuple(tuple(name.split("_")) for name in rises)
    before, after = (np.array([rise[side] for rise in rises.values()]) for side in (0, 1))
    return StackMatrix(stacks, before, after, TOTAL, TOTAL)


def groups(found: Pairs) -> list[set[int]]:
    return [set(group) for group in merge(found).groups]


FAR = [START + 100.0, START + 9 * 3600.0]


TWO = matrix(main_a_x=(100, 200), main_b_x=(100, 250), main_c=(500, 500))
LED = matrix(main_a_x=(100, 200), main_b_x=(100, 250), main_c_y=(100, 300))
LARGER_X = matrix(main_a_x=(1000, 1250), main_a_y=(600, 800), main_a=(1400, 1400), main_z=(2000, 2000))
LARGER_Y = matrix(main_a_x=(1000, 1400), main_a_y=(3000, 3500), main_z=(2000, 2000))
OWN = matrix(main_a_x=(1000, 1100), main_a_y=(600, 640), main_a=(1400, 2400), main_z=(2000, 2000))
IN_STEP = matrix(main_a_x=(1000, 1200), main_a_y=(700, 850), main_a=(1300, 1550), main_z=(2000, 2000))
RARE = matrix(main_a_x=(100, 200), main_a_y=(100, 200), main_z=(5000, 5000))
MOSTLY_X = matrix(main_a_x=(1000, 1900), main_a_y=(1000, 1200), main_z=(5000, 5000))
APART = matrix(main_a_x=(100, 200), main_b_y=(100, 250), main_z=(5000, 5000))
TWO_LEAVES = matrix(main_a_x=(1000, 1200), main_a_y=(1000, 1250), main_z=(5000, 5000))
D1, D2 = build_change("D1", ["x", "y"]), build_change("D2", ["x"])
BEFORE = build_change("D1", ["x", "y"], time=START - 7000.0)


@pytest.mark.parametrize(
    ("stacks", "names", "given", "expected"),
    [
        pytest.param(TWO, "ab", {}, [{0, 1}], id="callers of what is no candidate itself"),
        pytest.param(LED, "axbc", {}, [{0, 1, 2}, {3}], id="the regressed one leads its callers"),
        pytest.param(LARGER_X, "xya", {}, [{0, 2}, {1}], id="a common caller joins the larger cause"),
        pytest.param(LARGER_Y, "xya", {}, [{0}, {1, 2}], id="whichever that is"),
        pytest.param(OWN, "xya", {}, [{0}, {1}, {2}], id="a caller that costs more itself joins nothing"),
        pytest.param(IN_STEP, "xya", {}, [{0, 1, 2}], id="a caller of which all rises is called more often"),
        pytest.param(RARE, "xya", {}, [{0, 1, 2}], id="a rare caller is the cause of what it calls"),
        pytest.param(MOSTLY_X, "axy", {}, [{0, 1}, {2}], id="a caller joins what explains most of its rise"),
        pytest.param(APART, "xy", {}, [{0}, {1}], id="no change"),
        pytest.param(APART, "xy", {"changes": [D1, D2]}, [{0, 1}], id="what one change modified is one"),
        pytest.param(
            APART,
            "xy",
            {"changes": [BEFORE], "times": [START, START + 3000.0]},
            [{0}, {1}],
            id="what a change modified long before one of them is two",
        ),
        pytest.param(
            TWO_LEAVES,
            "xy",
            {"changes": [build_change("D1", ["main"])]},
            [{0}, {1}],
            id="a change above both",
        ),
        pytest.param(TWO, "ab", {"times": FAR}, [{0}, {1}], id="far apart in time"),
    ],
)
def test_what_is_one(
    stacks: StackMatrix, names: str, given: dict[str, Any], expected: list[set[int]]
) -> None:
    found = build_pairs(stacks, [*names], **given)
    assert groups(found) == expected
    if stacks is IN_STEP or stacks is RARE:
        assert {link.code for link in merge(found).links.values()} == {"caller"}


def test_known_groups_take_up_others_but_never_each_other() -> None:
    stacks = matrix(main_a_x=(100, 200), main_b_x=(100, 250), main_c_x=(100, 250), main_d=(100, 250))
    merged = merge(build_pairs(stacks, ["a", "b", "c", "d"], events=["E1", "E2"]))
    assert [set(group) for group in merged.groups] in ([{0, 2}, {1}, {3}], [{0}, {1, 2}, {3}])
    assert 2 in merged.links
    assert 3 not in merged.links


def test_a_known_group_is_seen_as_the_union_of_its_regressions() -> None:
    stacks = matrix(main_a_x=(1000, 1400), main_a_y=(1000, 1400), main_a=(4000, 4200), main_b=(10, 10))
    merged = merge(build_pairs(stacks, ["x", "y", "a"], events=["E", "E"]))
    assert merged.groups == ((0, 1, 2),)
    assert merged.links[2].code == "stacks"
    assert merged.links[2].similarity == pytest.approx(0.8)


def test_the_order_of_regressions_does_not_matter() -> None:
    stacks = matrix(main_a_x=(100, 200), main_b_x=(100, 250), main_c_y=(100, 300), main_d=(100, 130))
    names = ["a", "b", "c", "d", "x", "y"]
    expected = {frozenset(names[i] for i in group) for group in groups(build_pairs(stacks, [*names]))}
    rng = np.random.default_rng(1)
    for _ in range(20):
        order = [names[i] for i in rng.permutation(len(names))]
        found = groups(build_pairs(stacks, [*order]))
        assert {frozenset(order[i] for i in group) for group in found} == expected


@pytest.mark.parametrize(
    ("rule", "merged"),
    [
        pytest.param(MergeRule({"correlation": 0.9}), True, id="one feature over its bound"),
        pytest.param(MergeRule({"correlation": 0.96}), False, id="under its bound"),
        pytest.param(MergeRule({"correlation": 0.9, "metric_id": 0.5}), False, id="all must be"),
        pytest.param(MergeRule({"correlation": 0.9, "metric_id": 0.3}), True, id="all are"),
        pytest.param(MergeRule({"release": 0.9}), False, id="a feature that is not known"),
        pytest.param(MergeRule({"correlation": 0.9}, between="gcpu"), False, id="not for these metrics"),
        pytest.param(MergeRule({"correlation": 0.9}, between="mixed"), True, id="for one of each"),
    ],
)
def test_users_write_the_rules(rule: MergeRule, merged: bool) -> None:
    pair = np.array([[1.0, 0.95], [0.95, 1.0]])
    names = np.array([[1.0, 0.4], [0.4, 1.0]])
    rules = PairwiseConfig(rules=(rule,))
    found = pairs_of({"correlation": pair, "metric_id": names}, [True, False], rules=rules)
    assert len(merge(found).groups) == (1 if merged else 2)


@pytest.mark.parametrize(
    ("gcpu", "onset", "cause", "expected"),
    [
        pytest.param([True, False], {(0, 1): 0.97}, {}, {(0, 1)}, id="one of each"),
        pytest.param([True, False], {(0, 1): 0.94}, {}, {(0,), (1,)}, id="perhaps by chance"),
        pytest.param([False, False], {(0, 1): 0.97}, {}, {(0, 1)}, id="two metrics"),
        pytest.param([True, True], {(0, 1): 0.97}, {}, {(0,), (1,)}, id="two of gCPU"),
        pytest.param(
            [True, True, False],
            {(0, 2): 0.97, (1, 2): 0.99},
            {},
            {(0,), (1, 2)},
            id="the surer cause",
        ),
        pytest.param(
            [True, True, False], {(0, 2): 0.97, (1, 2): 0.99}, {(0, 1): 0.8}, {(0, 1, 2)}, id="one cause"
        ),
        pytest.param(
            [True, False, False],
            {(0, 1): 0.97, (1, 2): 0.97, (0, 2): 0.97},
            {},
            {(0, 1, 2)},
            id="both",
        ),
    ],
)
def test_what_begins_together_is_one_unless_it_has_two_causes(
    gcpu: list[bool],
    onset: dict[tuple[int, int], float],
    cause: dict[tuple[int, int], float],
    expected: set[tuple[int, ...]],
) -> None:
    features: dict[Feature, FloatArray] = {"onset": np.eye(len(gcpu)), "cause": np.eye(len(gcpu))}
    given: list[tuple[Feature, dict[tuple[int, int], float]]] = [("onset", onset), ("cause", cause)]
    for feature, pairs in given:
        for (row, other), similarity in pairs.items():
            features[feature][row, other] = features[feature][other, row] = similarity
    assert set(merge(pairs_of(features, gcpu)).groups) == expected


@pytest.mark.parametrize(
    ("rules", "groups"),
    [
        pytest.param(DEFAULT_RULES, 1, id="by default most of a rise"),
        pytest.param((MergeRule({"stacks": 0.9}),), 1, id="as much as it is"),
        pytest.param((MergeRule({"stacks": 0.95}),), 2, id="more than it is"),
        pytest.param((MergeRule({"stacks": 0.95}), MergeRule({"stacks": 0.5})), 1, id="any of the rules"),
        pytest.param((MergeRule({"metric_id": 0.9}),), 2, id="no rule asks for it"),
        pytest.param((), 2, id="no rule at all"),
        pytest.param((MergeRule({"stacks": 0.5, "metric_id": 0.3}),), 1, id="beside another feature"),
        pytest.param((MergeRule({"stacks": 0.95, "metric_id": 0.3}),), 2, id="not so much of both rises"),
    ],
)
def test_overlap_of_stacks_is_a_rule_too(rules: tuple[MergeRule, ...], groups: int) -> None:
    # Each rises by ten, nine of which are in a stack that holds both.
    holds = np.array([[True, True, False], [True, False, True]])
    change = np.array([9.0, 1.0, 1.0])
    features: dict[Feature, FloatArray] = {
        "metric_id": np.array([[1.0, 0.4], [0.4, 1.0]]),
        "stacks": stack_overlaps(holds, change),
    }
    found = pairs_of(features, [True, True], holds=holds, rise=change, rules=PairwiseConfig(rules=rules))
    assert stack_overlaps(holds, change)[0, 1] == pytest.approx(0.9)
    assert len(merge(found).groups) == groups


def test_what_stays_apart_has_what_came_nearest_to_a_bound() -> None:
    correlation = np.array(
        [[1.0, 0.95, 0.6, 0.5], [0.95, 1.0, 0.2, 0.1], [0.6, 0.2, 1.0, 0.3], [0.5, 0.1, 0.3, 1.0]]
    )
    names = np.array([[1.0, 0.0, 0.9, 0.0], [0.0, 1.0, 0.0, 0.0], [0.9, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]])
    rules = (MergeRule({"correlation": 0.9}), MergeRule({"correlation": 0.7, "metric_id": 0.5}))
    features: dict[Feature, FloatArray] = {"correlation": correlation, "metric_id": names}
    merged = merge(pairs_of(features, [False] * 4, rules=PairwiseConfig(rules=rules)))
    assert merged.groups == ((0, 1), (2,), (3,))
    assert merged.nearest == {
        0: Nearest(2, Link("correlation", 0.6, 0.7)),
        1: Nearest(2, Link("metric_id", 0.0, 0.5)),
        2: Nearest(0, Link("correlation", 0.6, 0.7)),
        3: Nearest(0, Link("correlation", 0.5, 0.9)),
    }


def test_what_joins_or_is_far_apart_came_near_to_nothing() -> None:
    stacks = matrix(main_a_x=(100, 200), main_b_x=(100, 250))
    assert merge(build_pairs(stacks, ["a", "b"])).nearest == {}
    assert merge(build_pairs(stacks, ["a", "b"], times=FAR)).nearest == {}


def test_the_overlap_with_a_group_may_be_what_came_nearest() -> None:
    stacks = matrix(main_a_x=(1000, 1400), main_a_y=(1000, 1100), main_a=(4000, 4500))
    config = replace(CONFIG, pairwise=PairwiseConfig(rules=(MergeRule({"stacks": 0.7}),)))
    merged = merge(build_pairs(stacks, ["x", "y", "a"], config=config))
    nearest = merged.nearest[2]
    assert (nearest.link.code, nearest.link.bound) == ("stacks", 0.7)
    assert nearest.link.similarity == pytest.approx(0.5)
    assert nearest.other == 0


@pytest.mark.parametrize(
    ("rules", "gcpu", "bound"),
    [
        pytest.param(DEFAULT_RULES, True, 0.7, id="gCPU"),
        pytest.param(DEFAULT_RULES, False, 0.9, id="a service-level metric"),
        pytest.param((MergeRule({"correlation": 0.9, "metric_id": 0.4}),), True, 0.4, id="for any"),
        pytest.param((), False, 0.7, id="without a rule"),
    ],
)
def test_the_least_that_could_have_been_enough(
    rules: tuple[MergeRule, ...], gcpu: bool, bound: float
) -> None:
    assert PairwiseConfig(rules=rules).least_bound(gcpu=gcpu) == bound


def test_changes_of_one_release_that_regress_are_one_thing() -> None:
    assert release_similarities([[(5.0, f"D{i}")] for i in range(8)], {5.0: 12}).min() >= 0.99
    few = release_similarities([[(5.0, "D1")], [(5.0, "D2")], [(9.0, "D3")]], {5.0: 200, 9.0: 1})
    assert few.max() < 0.99, "a few changes of a large release regress each for itself"
    assert not release_similarities([[(5.0, "D1")], [(5.0, "D1")]], {5.0: 1}).any(), "one change is none"


def test_pearson_is_that_of_the_windows_both_know() -> None:
    rng = np.random.default_rng(2)
    values = rng.normal(size=(3, 50))
    values[1] += values[0]
    values[0, :5] = values[1, 10:13] = np.nan
    both = ~np.isnan(values[0]) & ~np.isnan(values[1])
    assert pearson(values)[0, 1] == pytest.approx(np.corrcoef(values[0, both], values[1, both])[0, 1])
    assert pearson(np.ones((2, 9)))[0, 1] == 0.0
    assert pearson(np.full((2, 9), np.nan))[0, 1] == 0.0


def test_what_all_do_every_day_does_not_correlate() -> None:
    rng = np.random.default_rng(3)
    cycle = np.tile(np.sin(np.linspace(0, 2 * np.pi, 24, endpoint=False)), 3) * 10
    values = cycle + rng.normal(size=(2, 72))
    assert pearson(values)[0, 1] > 0.9
    assert abs(pearson(day_differences(values, slice(24, 72), day=24))[0, 1]) < 0.4
