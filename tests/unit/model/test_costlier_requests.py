"""Requests that cost more in a new release, written as decisions and read from them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipeline.model import Decision
from pipeline.model.costlier_requests import CostlierRequests, costlier_requests
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
    candidate = replace(build_candidate(), passed=(found.decision(),))
    assert costlier_requests(candidate) == [found]
    assert sentence(found.decision()) == "requests of GET /a cost more in release v2 than in v1"


@pytest.mark.parametrize(
    "passed",
    [
        pytest.param((), id="nothing"),
        pytest.param((Decision("threshold", True, 0.1, 0.01),), id="another step"),
        pytest.param(
            (Decision(RELEASE_COSTS, True, code="small", subjects=("v2", "v1")),), id="another code"
        ),
        pytest.param((Decision(RELEASE_COSTS, True, code="dearer", subjects=("a",)),), id="no releases"),
    ],
)
def test_other_candidates_have_none(passed: tuple[Decision, ...]) -> None:
    assert costlier_requests(replace(build_candidate(), passed=passed)) == []


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
