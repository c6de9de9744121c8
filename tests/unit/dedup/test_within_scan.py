from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from pipeline.dedup.links import Link
from pipeline.dedup.within_scan import CauseConfig, CauseGroup, group_by_cause
from pipeline.frames import element
from pipeline.model import Change, StackMatrix
from pipeline.stacks import Series, index_stacks, membership, rows_of, sum_below
from tests.support.builders import build_change, build_stacks

Stacks = Mapping[str, tuple[float, float]]

REST = {"main->idle": (10_000.0, 10_000.0)}


def grouped(
    stacks: Stacks | StackMatrix,
    names: Sequence[str],
    changes: Sequence[Change] = (),
    config: CauseConfig | None = None,
) -> list[CauseGroup]:
    matrix = stacks if isinstance(stacks, StackMatrix) else build_stacks({**stacks, **REST}, total=10_000)
    series: list[Series] = [("subroutine", name) for name in names]
    holds = membership(index_stacks(matrix), series)
    before, after = holds @ matrix.before / matrix.total_before, holds @ matrix.after / matrix.total_after
    deployed = [tuple(changes)] * len(names)
    return group_by_cause(index_stacks(matrix), series, before, after, deployed, config=config)


def sets(groups: Sequence[CauseGroup], names: Sequence[str]) -> set[frozenset[str]]:
    return {frozenset(names[i] for i in (group.representative, *group.members)) for group in groups}


def parts(text: str) -> set[frozenset[str]]:
    return {frozenset(group.split()) for group in text.split(" | ")}


TWO_CALLERS = {"main->h->lib": (10.0, 30.0), "main->k->lib": (10.0, 30.0)}
TWO_CAUSES = {"main->h->a": (10.0, 20.0), "main->h->b": (10.0, 20.0)}
NEW_FEATURE = {f"main->h{i}->part{i}": (10.0, 20.0) for i in range(4)}


@pytest.mark.parametrize(
    ("stacks", "names", "changes", "expected"),
    [
        pytest.param(TWO_CALLERS, ["h", "k", "lib"], [], "h k lib", id="callers of one subroutine"),
        pytest.param(TWO_CALLERS, ["h", "k"], [], "h k", id="of one that is no candidate itself"),
        pytest.param(TWO_CAUSES, ["a", "b"], [], "a | b", id="neighbours that share no cause"),
        pytest.param(TWO_CAUSES, ["a", "b", "h"], [], "a b h", id="what a rare caller calls more often"),
        pytest.param(
            {"main->a": (10, 20), "main->b": (10, 20), "main->c": (900, 900)},
            ["a", "b", "main"],
            [],
            "a main | b",
            id="a common caller that is not rare makes no group: the sum goes with one part",
        ),
        pytest.param(
            {"main->h->a": (400, 500), "main->h->b": (200, 260), "main->h->c": (300, 375)},
            ["a", "b", "c", "h"],
            [],
            "a b c h",
            id="a common caller of which all rises alike is called more often",
        ),
        pytest.param(
            {"main->h->a": (10, 50), "main->h->b": (10, 14)},
            ["a", "b", "h"],
            [],
            "a h | b",
            id="a caller that something below explains is no cause",
        ),
        pytest.param(
            {"main->first": (0, 60), "main->second": (0, 40)},
            ["first", "second"],
            [build_change("D1", ["first", "second"])],
            "first second",
            id="modified by one change",
        ),
        pytest.param(
            {"main->h->first": (10, 60), "main->k->second": (10, 40)},
            ["h", "k"],
            [build_change("D1", ["first", "second"])],
            "h k",
            id="callers of what one change modified",
        ),
        pytest.param(
            {"main->first": (0, 60), "main->second": (0, 40)},
            ["first", "second"],
            [build_change("D1", ["first"]), build_change("D2", ["second"], time=1_700_000_060.0)],
            "first | second",
            id="modified by two changes",
        ),
        pytest.param(
            NEW_FEATURE,
            ["part0", "part1", "h2", "part3"],
            [build_change(f"D{i}", [f"part{i}"]) for i in range(4)],
            "part0 part1 h2 part3",
            id="a new feature: all changes of one deployment, each with a regression",
        ),
        pytest.param(
            {**NEW_FEATURE, "main->h->part4": (10.0, 22.0), "main->h->part5": (10.0, 20.0)},
            ["part0", "part1", "h2", "part3", "part4", "part5", "h"],
            [build_change(f"D{i}", [f"part{i}"]) for i in range(6)],
            "part0 part1 h2 part3 part4 part5 h",
            id="of which two below one caller, which no change modified",
        ),
        pytest.param(
            NEW_FEATURE,
            ["part0", "part1"],
            [build_change(f"D{i}", [f"part{i}" if i < 2 else f"other{i}"]) for i in range(40)],
            "part0 | part1",
            id="two of a release's forty changes may regress by chance",
        ),
        pytest.param(
            TWO_CAUSES,
            ["a", "b", "h"],
            [build_change("D1", ["h"]), build_change("D2", ["b"], time=1_700_000_060.0)],
            "a h | b",
            id="what was modified itself is not just called more often",
        ),
        pytest.param(
            {"main->h->a->x": (10, 20), "main->h": (10, 20), "main->k->x": (100, 200)},
            ["a", "h"],
            [],
            "a | h",
            id="nor what rises through something that rises elsewhere too",
        ),
        pytest.param(
            {"main->h->a": (10, 15), "main->h->b": (10, 17), "main->a": (10, 15), "main->b": (10, 17)},
            ["a", "b", "h"],
            [],
            "a | b h",
            id="a sum of two goes with the larger, and does not make them one",
        ),
        pytest.param({}, ["gone"], [], "gone", id="in no stack"),
        pytest.param(
            {},
            ["gone", "lost"],
            [build_change("D1", ["gone", "lost"])],
            "gone lost",
            id="in no stack, but modified by one change",
        ),
    ],
)
def test_groups(stacks: Stacks, names: list[str], changes: list[Change], expected: str) -> None:
    assert sets(grouped(stacks, names, changes), names) == parts(expected)


@pytest.mark.parametrize("elsewhere", [0, 100, 250, 400])
def test_what_stays_elsewhere_says_nothing_of_a_caller(elsewhere: int) -> None:
    # Its share falls, as the service does more.
    steady = {"main->k->x": (elsewhere, elsewhere), "main->z": (1000 - elsewhere, 1000 - elsewhere)}
    stacks = build_stacks({"main->h->a->x": (20, 40), "main->h->own": (20, 40), **steady})
    names = ["a", "h"]
    assert sets(grouped(stacks, names), names) == parts("a h")


def test_no_candidates_make_no_groups() -> None:
    assert grouped(TWO_CALLERS, []) == []


def test_the_representative_is_what_most_rise_through() -> None:
    names = ["main", "h", "lib"]
    (group,) = grouped({"main->h->lib": (10.0, 30.0)}, names)
    assert names[group.representative] == "lib"
    assert group.explained == pytest.approx((1.0, 1.0))
    assert [link.code for link in group.links] == ["below", "below"]


def test_each_member_tells_by_which_step_it_came() -> None:
    names = ["first", "caller", "second"]
    (group,) = grouped(
        {"main->caller->first": (0.0, 60.0), "main->second": (0.0, 40.0)},
        names,
        [build_change("D1", ["first", "second"])],
    )
    links = dict(zip((names[i] for i in group.members), group.links, strict=True))
    assert names[group.representative] == "first"
    assert links == {"caller": Link("below", 1.0, 0.7), "second": Link("change", 1.0, 1.0)}
    assert group.explained == (1.0, 0.0), "a change is no share of a rise"


PARTS = {f"main->part{i}": (10.0, 20.0) for i in range(4)}


@pytest.mark.parametrize(
    ("stacks", "names", "changes", "feature", "least"),
    [
        pytest.param(
            {"main->h->a": (10, 50), "main->h->b": (10, 18)}, ["a", "h"], [], "below", 0.8, id="below"
        ),
        pytest.param(
            {"main->h->a": (10, 20), "main->h->b": (10, 20)}, ["a", "h"], [], "caller", 0.9, id="caller"
        ),
        pytest.param(
            {"main->h->a": (10, 15), "main->h->b": (10, 17), "main->a": (10, 15), "main->b": (10, 17)},
            ["a", "b", "h"],
            [],
            "sum",
            0.9,
            id="sum",
        ),
        pytest.param(
            PARTS,
            [*(name.split("->")[1] for name in PARTS)],
            [build_change(f"D{i}", [f"part{i}"]) for i in range(4)],
            "deployment",
            0.99,
            id="deployment",
        ),
    ],
)
def test_a_link_has_the_number_of_its_own_rule(
    stacks: Stacks, names: list[str], changes: list[Change], feature: str, least: float
) -> None:
    links = [link for group in grouped(stacks, names, changes) for link in group.links]
    assert {link.code for link in links} == {feature}
    assert all(max(least, link.bound) <= link.similarity <= 1 for link in links)
    assert {link.bound for link in links} == {0.99 if feature == "deployment" else 0.7}


def test_a_link_need_not_be_to_what_stands_for_the_group() -> None:
    # Most of h's rise comes through a, and most of k's through h.
    stacks = {
        "main->k->h->a": (10.0, 60.0),
        "main->k->h": (100.0, 117.0),
        "main->k": (400.0, 422.0),
        "main->z->a": (1.0, 1.0),
    }
    (group,) = grouped(stacks, ["a", "h", "k"])
    assert min(group.explained) == pytest.approx(50 / 89), "less than most"
    assert [link.similarity for link in group.links] == pytest.approx([50 / 67, 67 / 89])


def test_one_series_may_be_two_candidates() -> None:
    assert sets(grouped(TWO_CAUSES, ["a", "a", "b"]), ["a", "a2", "b"]) == parts("a a2 | b")


def test_a_rise_that_the_stacks_do_not_show_is_compared_with_the_change_point() -> None:
    # The load mix hides h's rise: lib's in it is twenty times what is left of it.
    stacks = build_stacks(
        {"main->h->lib": (100, 200), "main->h": (900, 805), "main->k->lib": (100, 200)}, total=10_000
    )
    series: list[Series] = [("subroutine", name) for name in ("h", "k")]
    before, after = np.array([0.10, 0.01]), np.array([0.11, 0.02])
    (group,) = group_by_cause(index_stacks(stacks), series, before, after, [(), ()])
    assert {group.representative, *group.members} == {0, 1}


def test_sums_below_count_each_stack_once() -> None:
    stacks = build_stacks({"a->b->a->c": (0, 3), "b->a": (0, 5), "endpoint=/x->b": (1, 0)}, total=10)
    series: list[Series] = [("subroutine", "a"), ("endpoint", "/x"), ("subroutine", "gone")]
    frames = index_stacks(stacks)
    found = sum_below(frames, rows_of(frames, series))
    rises = [
        {frames.names[column]: round(10 * value) for column, value in _entries(found.rise, row)}
        for row in range(3)
    ]
    assert rises == [{"a": 8, "b": 3, "c": 3}, {"endpoint=/x": -1, "b": -1}, {}]
    assert frames.names[int(frames.label[-2])] == element("endpoint", "/x")


def _entries(matrix, row: int) -> list[tuple[int, float]]:  # type: ignore[no-untyped-def]
    span = slice(matrix.indptr[row], matrix.indptr[row + 1])
    return list(zip(matrix.indices[span].tolist(), matrix.data[span].tolist(), strict=True))
