from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from pipeline.analysis.dedup.evidence import Reported
from pipeline.analysis.dedup.links import Link
from pipeline.analysis.dedup.within_scan import new_rises
from pipeline.analysis.stacks import Group, index_stacks, rows_of
from pipeline.analysis.stacks.subtree import sum_descendants
from pipeline.model import Candidate, Change, SeriesKey, StackMatrix
from pipeline.model.frames import element
from pipeline.model.units import HOUR_S
from tests.support.builders import build_candidate, build_change, build_stacks
from tests.support.dedup import CONFIG, START, build_candidates, group

Stacks = Mapping[str, tuple[float, float]]

REST = {"main->idle": (10_000.0, 10_000.0)}


def grouped(
    stacks: Stacks | StackMatrix, names: Sequence[str], changes: Sequence[Change] = ()
) -> list[tuple[Group, Sequence[Link]]]:
    matrix = stacks if isinstance(stacks, StackMatrix) else build_stacks({**stacks, **REST}, total=10_000)
    return group(matrix, build_candidates(matrix, names), changes)


def sets(groups: Sequence[tuple[Group, Sequence[Link]]], names: Sequence[str]) -> set[frozenset[str]]:
    return {frozenset(names[i] for i in (found.representative, *found.members)) for found, _ in groups}


def parts(text: str) -> set[frozenset[str]]:
    return {frozenset(group.split()) for group in text.split(" | ")}


TWO_CALLERS = {"main->h->lib": (10.0, 30.0), "main->k->lib": (10.0, 30.0)}
TWO_CAUSES = {"main->h->a": (10.0, 20.0), "main->h->b": (10.0, 20.0)}
NEW_FEATURE = {f"main->h{i}->part{i}": (10.0, 20.0) for i in range(4)}


TWO_NEW = {"main->first": (0.0, 60.0), "main->second": (0.0, 40.0)}
ONE_CHANGE = [build_change("D1", ["first", "second"])]


def each(*subroutines: str, apart_s: float = 0.0) -> list[Change]:
    """Changes of one subroutine each, of one deployment unless they are apart."""
    times = (1_700_000_000.0 + apart_s * number for number in range(len(subroutines)))
    return [
        build_change(f"D{name}", [name], time=time) for name, time in zip(subroutines, times, strict=True)
    ]


@pytest.mark.parametrize(
    ("stacks", "changes", "expected"),
    [
        pytest.param(TWO_CALLERS, [], "h k lib", id="callers of one subroutine"),
        pytest.param(TWO_CALLERS, [], "h k", id="of one that is no candidate itself"),
        pytest.param(TWO_CAUSES, [], "a | b", id="neighbours that share no cause"),
        pytest.param(TWO_CAUSES, [], "a b h", id="what a rare caller calls more often"),
        pytest.param(
            {"main->a": (10, 20), "main->b": (10, 20), "main->c": (900, 900)},
            [],
            "a main | b",
            id="a common caller that is not rare makes no group: the sum goes with one part",
        ),
        pytest.param(
            {"main->h->a": (400, 500), "main->h->b": (200, 260), "main->h->c": (300, 375)},
            [],
            "a b c h",
            id="a common caller all of which rises in step is called more often",
        ),
        pytest.param(
            {"main->h->a": (10, 50), "main->h->b": (10, 14)},
            [],
            "a h | b",
            id="a caller that something below explains is no cause",
        ),
        pytest.param(TWO_NEW, ONE_CHANGE, "first second", id="modified by one change"),
        pytest.param(
            {"main->h->first": (10, 60), "main->k->second": (10, 40)},
            ONE_CHANGE,
            "h k",
            id="callers of what one change modified",
        ),
        pytest.param(
            TWO_NEW, each("first", "second", apart_s=60.0), "first | second", id="modified by two changes"
        ),
        pytest.param(
            NEW_FEATURE,
            each(*(f"part{i}" for i in range(4))),
            "part0 part1 h2 part3",
            id="a new feature: all changes of one deployment, each with a regression",
        ),
        pytest.param(
            {**NEW_FEATURE, "main->h->part4": (10.0, 22.0), "main->h->part5": (10.0, 20.0)},
            each(*(f"part{i}" for i in range(6))),
            "part0 part1 h2 part3 part4 part5 h",
            id="of which two below one caller, which no change modified",
        ),
        pytest.param(
            NEW_FEATURE,
            each("part0", "part1", *(f"other{i}" for i in range(38))),
            "part0 | part1",
            id="two of a release's forty changes may regress by chance",
        ),
        pytest.param(
            TWO_CAUSES, each("h", "b", apart_s=60.0), "a b h", id="what is called more often, though modified"
        ),
        pytest.param(
            {"main->h->a": (10, 20), "main->h->b": (30, 35)},
            [],
            "a h | b",
            id="a sum of two goes with the larger, and does not make them one",
        ),
        pytest.param({}, [], "gone", id="in no stack"),
        pytest.param({}, ONE_CHANGE, "first second", id="in no stack, but modified by one change"),
    ],
)
def test_groups(stacks: Stacks, changes: list[Change], expected: str) -> None:
    names = expected.replace("|", "").split()
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
    ((found, links),) = grouped({"main->h->lib": (10.0, 30.0)}, names)
    assert names[found.representative] == "lib"
    assert found.explained == pytest.approx((1.0, 1.0))
    assert [link.code for link in links] == ["cause", "cause"]


T0 = START + 100.0
KNOWN = build_candidate("h", before=0.10, after=0.12, change_time=T0 - HOUR_S)
ANEW = replace(
    build_candidate("h", before=0.11, after=0.13, change_time=T0),
    change_time_interval=(T0 - 300.0, T0 + 300.0),
)


@pytest.mark.parametrize(
    ("known", "candidate", "rise"),
    [
        pytest.param(KNOWN, ANEW, 0.01, id="a step was reported an hour before"),
        pytest.param(KNOWN, replace(ANEW, after=0.115), 0.0, id="it is lower than after that step"),
        pytest.param(KNOWN, replace(ANEW, before=0.125), 0.005, id="it rose by less than that"),
        pytest.param(KNOWN, replace(ANEW, metric="lib"), 0.02, id="of another series"),
        pytest.param(replace(KNOWN, kind="long_term"), ANEW, 0.02, id="a slow rise was reported"),
        pytest.param(replace(KNOWN, before=0.14), ANEW, 0.02, id="a fall was reported"),
        pytest.param(replace(KNOWN, change_time=T0 - 400.0), ANEW, 0.02, id="it may be the same step"),
        pytest.param(
            KNOWN, replace(ANEW, change_time_interval=(T0 - 4000.0, T0)), 0.02, id="it is in the interval"
        ),
    ],
)
def test_rises_beyond_what_was_reported(known: Candidate, candidate: Candidate, rise: float) -> None:
    assert new_rises([candidate], [Reported(known, "E1")], CONFIG) == pytest.approx([rise])


def test_the_representative_is_what_the_largest_rises_through_though_it_seems_to_rise_more() -> None:
    """The levels of ``h`` are over a span in which it stepped before."""
    stacks = build_stacks({"main->h->lib": (10.0, 30.0), "main->h": (50.0, 52.0), **REST}, total=10_000)
    h, lib = build_candidates(stacks, ["h", "lib"])
    candidates = [replace(h, before=h.before - 2 * h.delta), lib]
    ((found, _),) = group(stacks, candidates)
    assert found.representative == 1


PARTS = {f"main->part{i}": (10.0, 20.0) for i in range(4)}


@pytest.mark.parametrize(
    ("stacks", "names", "changes", "code", "least"),
    [
        ({"main->h->a": (10, 50), "main->h->b": (10, 18)}, "a h", [], "cause", 0.8),
        ({"main->h->a": (10, 20), "main->h->b": (10, 20)}, "a h", [], "caller", 0.9),
        (TWO_NEW, "first second", ONE_CHANGE, "cause", 1.0),
        (PARTS, "part0 part1 part2 part3", each(*(f"part{i}" for i in range(4))), "release", 0.99),
    ],
    ids=("cause", "caller", "one change", "release"),
)
def test_a_link_has_the_number_of_its_own_rule(
    stacks: Stacks, names: str, changes: list[Change], code: str, least: float
) -> None:
    links = [link for _, some in grouped(stacks, names.split(), changes) for link in some]
    assert {link.code for link in links} == {code}
    assert all(max(least, link.bound) <= link.similarity <= 1 for link in links)
    assert {link.bound for link in links} == {0.99 if code == "release" else 0.7}


def test_one_series_may_be_two_candidates() -> None:
    assert sets(grouped(TWO_CAUSES, ["a", "a", "b"]), ["a", "a2", "b"]) == parts("a a2 | b")


def test_sums_under_count_each_stack_once() -> None:
    stacks = build_stacks({"a->b->a->c": (0, 3), "b->a": (0, 5), "endpoint=/x->b": (1, 0)}, total=10)
    series: list[SeriesKey] = [
        SeriesKey("subroutine", "a"),
        SeriesKey("endpoint", "/x"),
        SeriesKey("subroutine", "gone"),
    ]
    frames = index_stacks(stacks)
    found = sum_descendants(frames, rows_of(frames, series))
    rises = [
        {frames.names[column]: round(10 * value) for column, value in _entries(found, row)}
        for row in range(3)
    ]
    assert rises == [{"a": 8, "b": 3, "c": 3}, {"endpoint=/x": -1, "b": -1}, {}]
    assert frames.names[int(frames.label[-2])] == element("endpoint", "/x")


def _entries(matrix, row: int) -> list[tuple[int, float]]:  # type: ignore[no-untyped-def]
    span = slice(matrix.indptr[row], matrix.indptr[row + 1])
    return list(zip(matrix.indices[span].tolist(), matrix.data[span].tolist(), strict=True))
