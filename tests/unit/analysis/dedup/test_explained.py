"""Grouping by the explanation: what has one cause is one, what only moved is none, rules have the rest."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipeline.analysis.dedup.decision import decide
from pipeline.model import StackMatrix
from tests.support.builders import build_candidate, build_change, build_stacks
from tests.support.dedup import CONFIG, START, build_candidates, build_evidence

EXPLAINED = replace(CONFIG, grouping="explained")

# Sixty leaves under four entries, a thousand samples each but for what a test changes.
LEAVES = [f"main->entry{number % 4}->handle{number}->leaf{number}" for number in range(60)]


def stacks_with(**changed: tuple[float, float]) -> StackMatrix:
    """Return the stacks, some leaves with other samples before and after, or in place of others."""
    rows = dict.fromkeys(LEAVES, (1000.0, 1000.0))
    for stack, pair in changed.items():
        rows[stack] = pair
    return build_stacks(rows)


def leaf(number: int, name: str = "") -> str:
    return f"main->entry{number % 4}->handle{number}->{name or f'leaf{number}'}"


def drained(entry: int, factor: float) -> dict[str, tuple[float, float]]:
    return {stack: (1000.0, 1000.0 * factor) for stack in LEAVES if f"entry{entry}->" in stack}


TWO = stacks_with(**{leaf(4): (1000, 2600), leaf(8): (1000, 1900)})


@pytest.mark.parametrize(
    ("stacks", "names", "reported", "dropped"),
    [
        pytest.param(
            TWO,
            ["leaf4", "handle4", "entry0", "leaf8", "handle8"],
            {"leaf4": {"handle4", "entry0"}, "leaf8": {"handle8"}},
            {"handle4": "som_dedup", "entry0": "som_dedup", "handle8": "som_dedup"},
            id="two causes under one caller",
        ),
        pytest.param(
            stacks_with(**{leaf(5): (1000, 0), leaf(5, "leaf5_v2"): (0, 1010)}),
            ["leaf5_v2"],
            {},
            {"leaf5_v2": "cost_shift"},
            id="renamed",
        ),
        pytest.param(
            stacks_with(**{leaf(5): (1000, 0), leaf(5, "leaf5_v2"): (0, 2200)}),
            ["leaf5_v2", "handle5"],
            {"leaf5_v2": {"handle5"}},
            {"handle5": "som_dedup"},
            id="renamed and dearer",
        ),
        pytest.param(
            stacks_with(**drained(1, 1.6)),
            ["handle5", "leaf9"],
            {},
            {"handle5": "traffic_shift", "leaf9": "traffic_shift"},
            id="an entry with more traffic",
        ),
    ],
)
def test_candidates_are_grouped_by_their_cause(
    stacks: StackMatrix, names: list[str], reported: dict[str, set[str]], dropped: dict[str, str]
) -> None:
    decision = decide(build_evidence(stacks, build_candidates(stacks, names)), EXPLAINED)
    groups = {unique.metric: {member.metric for member in unique.group} for unique in decision.unique}
    assert groups == reported
    assert {each.candidate.metric: each.decision.step for each in decision.dropped} == dropped


STAGES = [
    f"main->loop->handle->{stage}->{stage}{n}" for stage in ("auth", "db", "render", "log") for n in range(10)
]
SIBLINGS = [f"main->d->h{n}->l{n}" for n in range(20)]


@pytest.mark.parametrize(
    ("rows", "names"),
    [
        pytest.param(
            {stack: (1000, 1500 if "->db->" in stack else 1000) for stack in STAGES},
            ["db"],
            id="a stage of every request is no entry that has more traffic",
        ),
        pytest.param(
            {**dict.fromkeys(SIBLINGS, (1000, 1000)), SIBLINGS[3]: (1000, 1600), SIBLINGS[7]: (1000, 650)},
            ["l3"],
            id="a neighbour that got cheaper by less gave nothing",
        ),
        pytest.param(
            {**dict.fromkeys(SIBLINGS, (1000, 1000)), "main->poll": (8000, 7400), SIBLINGS[2]: (1000, 1600)},
            ["l2"],
            id="what idles less gave nothing",
        ),
    ],
)
def test_a_regression_that_looks_like_something_else_is_reported(
    rows: dict[str, tuple[float, float]], names: list[str]
) -> None:
    stacks = build_stacks(rows)
    decision = decide(build_evidence(stacks, build_candidates(stacks, names)), EXPLAINED)
    assert [unique.metric for unique in decision.unique] == names


def test_causes_of_one_change_are_one_regression() -> None:
    candidates = build_candidates(TWO, ["leaf4", "leaf8"])
    change = build_change("D1", ["leaf4", "leaf8"], time=START)
    apart = decide(build_evidence(TWO, candidates), EXPLAINED)
    together = decide(build_evidence(TWO, candidates, [change]), EXPLAINED)
    assert {unique.metric for unique in apart.unique} == {"leaf4", "leaf8"}
    assert [unique.metric for unique in together.unique] == ["leaf4"]


def test_what_no_stack_holds_is_left_to_the_rules() -> None:
    metric = replace(build_candidate("latency", change_time=START + 100), metric_kind="service")
    unseen = build_candidate("elsewhere", before=0.01, after=0.02, change_time=START + 100)
    decision = decide(build_evidence(TWO, [*build_candidates(TWO, ["leaf4"]), metric, unseen]), EXPLAINED)
    reported = [member.metric for unique in decision.unique for member in (unique, *unique.group)]
    assert sorted(reported) == ["elsewhere", "latency", "leaf4"]
    assert not any(each.decision.step == "explanation" for each in decision.dropped)


def test_without_the_step_rules_decide() -> None:
    config = replace(EXPLAINED, without=frozenset({"explanation"}))
    decision = decide(build_evidence(TWO, build_candidates(TWO, ["leaf4", "leaf8", "entry0"])), config)
    assert all(passed.step != "explanation" for unique in decision.unique for passed in unique.passed)


def test_a_failure_is_said_and_rules_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("no samples")

    monkeypatch.setattr("pipeline.analysis.dedup.evidence.explain", fail)
    decision = decide(build_evidence(TWO, build_candidates(TWO, ["leaf4"])), EXPLAINED)
    (unique,) = decision.unique
    (said,) = (passed for passed in unique.passed if passed.step == "explanation")
    assert (said.code, said.subjects) == ("failed", ("ZeroDivisionError: no samples",))
