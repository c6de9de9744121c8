from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from pipeline.analysis.cost_shift.scan import StackEvidence, judge_cost_shifts
from pipeline.analysis.dedup.evidence import TOLERANCE_WINDOWS, Deployed
from pipeline.analysis.stacks import index_stacks
from pipeline.model import Candidate, Change, Decision, StackMatrix, divide
from pipeline.settings.workloads import Workload
from pipeline.stages.gather import domain_plugins
from pipeline.stages.gather.deduplication import dedup_config
from pipeline.stages.gather.domain_plugins import ENTRY_POINTS, DomainPlugin, load_plugins, plugged_in
from tests.support.builders import build_candidate, build_change, build_stacks
from tests.support.fleets import LIVE

T0 = 1_700_000_000.0
NO_STACKS = StackMatrix((), np.zeros(0), np.zeros(0), 0.0, 0.0)

# Work moves from y to x, which nothing in their stacks or names connects.
MATRIX = build_stacks(
    {"main->page->x": (6e3, 11e3), "main->other->y": (9e3, 4e3), "main->idle": (85e3, 85e3)}
)


def shifts(
    candidate: Candidate,
    changes: Sequence[Change] = (),
    workload: Workload = LIVE,
    plugins: Sequence[tuple[str, DomainPlugin]] = (),
    matrix: StackMatrix = MATRIX,
) -> list[tuple[Candidate, Decision]]:
    config = dedup_config(workload)
    return judge_cost_shifts(
        StackEvidence(index_stacks(matrix)),
        [candidate],
        Deployed(changes).before([candidate], config, early=TOLERANCE_WINDOWS),
        defined=config.cost_domains,
        label_groups=partial(plugged_in, tuple(plugins)),
    )


def judged(
    *changes: Change,
    workload: Workload = LIVE,
    plugins: Sequence[tuple[str, DomainPlugin]] = (),
    candidate: Candidate | None = None,
    matrix: StackMatrix = MATRIX,
) -> tuple[bool, Candidate]:
    candidate = candidate or build_candidate("x", before=0.06, after=0.11, change_time=T0)
    ((found, decision),) = shifts(candidate, changes, workload, plugins, matrix)
    assert replace(found, domains=()) == candidate
    return decision.passed, found


def findings(candidate: Candidate) -> dict[str, str]:
    return {decision.domain: decision.finding for decision in candidate.domains}


def drawing(kind: str, metric: str, stacks: Sequence[tuple[str, ...]]) -> Iterable[tuple[str, list[str]]]:
    assert (kind, metric) == ("subroutine", "x")
    assert ("main", "page", "x") in stacks
    return [("drawing", ["y"])]


def broken(kind: str, metric: str, stacks: Sequence[tuple[str, ...]]) -> Iterable[tuple[str, list[str]]]:
    raise RuntimeError("no such team")


def talking(kind: str, metric: str, stacks: Sequence[tuple[str, ...]]) -> Any:
    return 3


def test_without_a_domain_that_holds_both_the_candidate_passes() -> None:
    passed, candidate = judged()
    assert passed
    assert "shifted" not in findings(candidate).values()


def test_a_change_that_modified_both_makes_a_domain() -> None:
    passed, candidate = judged(build_change("c7", ["x", "y"], time=T0 - 10, service="s"))
    assert not passed
    assert findings(candidate)["change: c7"] == "shifted"


def test_a_change_long_before_makes_none() -> None:
    passed, _ = judged(build_change("c7", ["x", "y"], time=T0 - LIVE.lookback_s - 60, service="s"))
    assert passed


def test_a_domain_of_the_workload_counts() -> None:
    domains = [{"name": "drawing", "subroutines": ["re:[xy]"]}]
    workload = Workload.model_validate({**LIVE.model_dump(by_alias=True), "cost_domains": domains})
    passed, candidate = judged(workload=workload)
    assert not passed
    assert findings(candidate)["defined: drawing"] == "shifted"


def test_a_plug_in_counts() -> None:
    passed, candidate = judged(plugins=[("teams", drawing)])
    assert not passed
    assert findings(candidate)["teams: drawing"] == "shifted"


@pytest.mark.parametrize("plugin", [broken, talking])
def test_a_plug_in_that_fails_is_logged_and_left_out(
    plugin: DomainPlugin, caplog: pytest.LogCaptureFixture
) -> None:
    domain_plugins._failures.clear()
    with caplog.at_level(logging.ERROR):
        for _ in range(3):
            passed, _ = judged(plugins=[("bad", plugin), ("teams", drawing)])
            assert not passed
    assert caplog.text.count("plug-in bad left out for x") == 1


class Point:
    """An entry point as importlib.metadata has them."""

    def __init__(self, name: str, found: DomainPlugin | None) -> None:
        self.name = name
        self._found = found

    def load(self) -> DomainPlugin:
        if self._found is None:
            raise ImportError("gone")
        return self._found


def test_plug_ins_are_loaded_and_those_that_cannot_be_left_out(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    points = {ENTRY_POINTS: [Point("teams", drawing), Point("old", None)]}
    monkeypatch.setattr(domain_plugins, "entry_points", lambda group: points[group])
    load_plugins.cache_clear()
    try:
        assert load_plugins() == (("teams", drawing),)
    finally:
        load_plugins.cache_clear()
    assert "plug-in old left out" in caplog.text


def test_what_has_no_stacks_passes() -> None:
    metric = Candidate("service", "latency", "short_term", T0, 1.0, 2.0, 1e-9, 40.0)
    passed, candidate = judged(candidate=metric, matrix=NO_STACKS)
    assert passed
    assert candidate.domains == ()
    assert judged(candidate=metric)[0]  # in one cluster with subroutines


def test_decisions_travel_with_what_is_dropped() -> None:
    candidate = build_candidate("x", before=0.06, after=0.11, change_time=T0)
    change = build_change("c7", ["x", "y"], time=T0 - 10, service="s")
    passed, dropped = divide(shifts(candidate, [change]))
    assert passed == ()
    assert dropped[0].decision.subjects == ("change: c7",)
    assert "change: c7" in findings(dropped[0].candidate)
