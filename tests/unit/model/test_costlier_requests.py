"""Requests that cost more in a new release, written as decisions and read from them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import pipeline.messages.scans  # noqa: F401 - declares how decisions are written
from pipeline.messages.records import read, to_json
from pipeline.model import CostlierRequests, Decision
from pipeline.model.step_codes import RELEASE_COSTS
from pipeline.model.steps import sentence
from tests.support.builders import build_candidate

FOUND = CostlierRequests("GET /a", "v2", "v1", 0.02, 0.004, ("GET /b", "GET /c"), (0.6, 0.3, 0.06))


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(FOUND, id="with probabilities"),
        pytest.param(replace(FOUND, chances=()), id="of a former version"),
        pytest.param(replace(FOUND, or_types=(), chances=(0.97,)), id="one type"),
    ],
)
def test_what_is_written_is_read(found: CostlierRequests) -> None:
    decision = found.decision()
    assert replace(build_candidate(), passed=(decision,)).costlier_requests == (found,)
    assert sentence(decision) == "requests of GET /a cost more in release v2 than in v1"
    written = to_json(decision)
    former = {name: value for name, value in written.items() if name != "requests"}
    assert former["subjects"] == [found.type, "v2", "v1", *found.or_types], "as former versions read it"
    for raw in (written, former):
        assert read(Decision, raw) == decision


@pytest.mark.parametrize(
    "written",
    [
        pytest.param({"step": "threshold"}, id="another step"),
        pytest.param({"step": RELEASE_COSTS, "code": "small", "subjects": ["v2", "v1"]}, id="another code"),
        pytest.param({"step": RELEASE_COSTS, "code": "dearer", "subjects": ["a"]}, id="no releases"),
    ],
)
def test_other_decisions_have_none(written: dict[str, Any]) -> None:
    assert read(Decision, {"statistic": 0.1, "bound": 0.01, **written}).requests is None


@pytest.mark.parametrize(
    ("chances", "likely"),
    [
        ((0.6, 0.3, 0.06), {"GET /a": 0.6, "GET /b": 0.3, "GET /c": 0.06}),
        ((), {}),
        ((0.6, 0.3), {}),
        ((0.0, 0.0, 0.0), {}),
    ],
)
def test_types_are_likely_as_far_as_it_is_known(chances: tuple[float, ...], likely: dict[str, float]) -> None:
    assert replace(FOUND, chances=chances).likely == likely
