"""When a regression counts as escalated."""

from __future__ import annotations

import pytest

from pipeline.analysis.lifecycle.escalation import has_escalated
from tests.support.builders import build_candidate


@pytest.mark.parametrize(
    ("before", "reported", "level", "escalated"),
    [
        pytest.param(0.10, 0.20, 0.26, True, id="by more than half of what was reported"),
        pytest.param(0.10, 0.20, 0.25, True, id="by half of it"),
        pytest.param(0.10, 0.20, 0.24, False, id="by less"),
        pytest.param(0.10, 0.30, 0.36, False, id="by half of what it was first, not of what was reported"),
        pytest.param(0.10, 0.12, 0.13, False, id="by half, but not by the threshold"),
        pytest.param(0.20, 0.10, 0.04, True, id="a fall that falls further"),
        pytest.param(0.20, 0.10, 0.14, False, id="a fall that rises"),
    ],
)
def test_what_has_escalated(before: float, reported: float, level: float, escalated: bool) -> None:
    candidate = build_candidate(before=reported, after=level)
    assert (
        has_escalated(candidate, before=before, reported=reported, absolute=0.015, relative=None) is escalated
    )


def test_a_relative_threshold_is_of_the_level_reported() -> None:
    candidate = build_candidate(before=100.0, after=104.0)
    assert has_escalated(candidate, before=94.0, reported=100.0, absolute=None, relative=0.04)
    assert not has_escalated(candidate, before=94.0, reported=100.0, absolute=None, relative=0.05)
