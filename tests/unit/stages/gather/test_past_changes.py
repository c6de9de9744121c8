"""Which changes production found to regress."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.stages.gather.past_changes import causes_of


def event(*suspects: tuple[str, float]) -> dict[str, Any]:
    causes = [{"change": {"id": change}, "score": score} for change, score in suspects]
    return {"data": {"root_causes": causes}}


@pytest.mark.parametrize(
    ("suspects", "causes"),
    [([("a", 0.8), ("b", 0.6)], ["a"]), ([("a", 0.4)], []), ([], [])],
    ids=["the first", "not likely", "none"],
)
def test_the_first_suspect_is_the_cause_if_it_is_likely(
    suspects: list[tuple[str, float]], causes: list[str]
) -> None:
    assert list(causes_of([event(*suspects)])) == causes
    assert list(causes_of([{"data": {}}])) == []
