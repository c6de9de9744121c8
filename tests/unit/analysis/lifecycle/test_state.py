"""What is known of an open regression and of its updates."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipeline.analysis.lifecycle.state import OpenRegression, Update
from pipeline.model import SeriesKey
from tests.support.builders import build_candidate


def test_levels_of_a_group_are_reported_each_by_itself() -> None:
    caller = build_candidate("shop.caller", before=0.3, after=0.4)
    open_one = OpenRegression("r", replace(build_candidate("shop.f"), group=(caller,)))
    assert open_one.last_level(SeriesKey("subroutine", "shop.caller")) == 0.4
    assert open_one.last_level(SeriesKey("endpoint", "shop.caller")) is None
    later = replace(open_one, levels={SeriesKey("subroutine", "shop.f"): 0.25})
    assert (
        later.last_level(SeriesKey("subroutine", "shop.f")),
        later.last_level(SeriesKey("subroutine", "shop.caller")),
    ) == (
        0.25,
        0.4,
    )


def test_what_remains_is_a_share_of_what_was_reported() -> None:
    one = OpenRegression("r", build_candidate(before=0.1, after=0.2))
    update = Update("resolved", one, "shop", "live", 2.0, 1.0, level=0.12)
    assert update.share_remaining == pytest.approx(0.2)
