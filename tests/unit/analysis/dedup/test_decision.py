"""What becomes of a scan's candidates, with what was reported before and what was put into stacks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipeline.analysis.dedup.decision import decide
from pipeline.analysis.dedup.evidence import Cluster, Reported, ReportHistory
from tests.support.builders import build_change, build_stacks
from tests.support.dedup import CONFIG, START, build_candidates, build_evidence

TRACED = build_stacks(
    {
        "main->a->x": (30_000, 0),
        "main->tracer->a->x": (0, 40_000),
        "main->b->y": (70_000, 0),
        "main->tracer->b->y": (0, 60_000),
    }
)


@pytest.mark.parametrize(
    ("inserted_frames", "unique", "dropped"),
    [
        pytest.param(True, {"x"}, {"a": "som_dedup", "tracer": "cost_shift"}, id="by what each stack became"),
        pytest.param(False, {"tracer", "x"}, {"a": "som_dedup"}, id="by stacks as they are"),
    ],
)
def test_a_regression_under_a_frame_around_everything(
    inserted_frames: bool, unique: set[str], dropped: dict[str, str]
) -> None:
    candidates = build_candidates(TRACED, ["x", "a", "tracer"])
    evidence = build_evidence(TRACED, candidates)
    clusters = [Cluster(candidates, each.stacks, inserted_frames) for each in evidence.clusters]
    decision = decide(replace(evidence, clusters=clusters), CONFIG)
    assert {candidate.metric for candidate in decision.unique} == unique
    assert {each.candidate.metric: each.decision.step for each in decision.dropped} == dropped


def test_a_frame_by_itself_is_no_regression() -> None:
    candidates = build_candidates(TRACED, ["tracer"])
    decision = decide(build_evidence(TRACED, candidates), CONFIG)
    assert not decision.unique
    assert [each.decision.code for each in decision.dropped] == ["shifted"]


GROWN = build_stacks(
    {
        "main->a->x": (1000, 1120),
        "main->c->x": (1000, 1200),
        "main->a": (1000, 1168),
        "main->b": (7000, 6512),
    },
)


@pytest.mark.parametrize(
    ("modified", "reported"),
    [
        pytest.param(["b"], set(), id="what is left is no change point"),
        pytest.param(["a"], {"a"}, id="a change modified it"),
    ],
)
def test_a_caller_of_what_goes_on_rising(modified: list[str], reported: set[str]) -> None:
    (x,) = build_candidates(GROWN, ["x"], times=[START - 1800.0])
    (a,) = build_candidates(GROWN, ["a"])
    evidence = build_evidence(GROWN, [replace(a, p_value=1e-8)], [build_change("D1", modified)])
    evidence = replace(evidence, history=ReportHistory([Reported(x, "E1")]))
    assert {candidate.metric for candidate in decide(evidence, CONFIG).unique} == reported
