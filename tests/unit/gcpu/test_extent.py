"""How large a message's stacks are before they are counted."""

from __future__ import annotations

import pytest

from pipeline.gcpu.bounds import STACK_BOUNDS, profile_extent
from tests.support.builders import build_profile


@pytest.mark.parametrize(
    ("stacks", "exact_from", "extent"),
    [
        pytest.param({}, 0.0, (0, 0), id="none"),
        pytest.param({"a;bbb": 2, "a": 1}, 100.0, (3, 9), id="bounded by the longest name"),
        pytest.param({"a;bbb": 2, "a": 1}, 5.0, (3, 5), id="counted, where that is much"),
        pytest.param(
            {"a;" * 3 + "b" * STACK_BOUNDS.characters: 1}, 0.0, (4, STACK_BOUNDS.characters), id="cut"
        ),
    ],
)
def test_the_extent_of_a_profile(stacks: dict[str, int], exact_from: float, extent: tuple[int, int]) -> None:
    assert profile_extent(build_profile(stacks), exact_from=exact_from) == extent
