"""Which changes production found to regress."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.messages.events import encode_event, regression_event
from pipeline.messages.lifecycle import regression_columns
from pipeline.messages.records import columns_of
from pipeline.messages.verdicts import verdict_to_row
from pipeline.model import Regression, Suspect, Verdict, VerdictKind
from pipeline.stages.gather.change_findings import caused_regressions, causes_of
from pipeline.storage.arrays import ArrayStore
from tests.support.builders import build_candidate, build_change

T = 1_700_000_000.0
REPORTED = Regression(
    id="r",
    service="shop",
    workload="hours",
    candidate=build_candidate(before=0.1, after=0.12, change_time=T),
    detected_time=T + 3600.0,
    suspects=(Suspect(build_change("commit-a"), 0.9, {}),),
    stacks=(),
)


def stored(*said: Verdict) -> ArrayStore:
    store = ArrayStore()
    store.insert("regressions", regression_columns([REPORTED], [encode_event(regression_event(REPORTED))]))
    if said:
        store.insert("verdicts", columns_of([verdict_to_row(one) for one in said]))
    return store


def verdict(kind: VerdictKind, subject: str = "") -> Verdict:
    return Verdict("r", "shop", kind, T + 7200.0, subject=subject)


@pytest.mark.parametrize(
    ("said", "causes"),
    [
        ([], ["commit-a"]),
        ([verdict("true")], ["commit-a"]),
        ([verdict("false")], []),
        ([verdict("cause", "commit-b")], ["commit-b"]),
    ],
    ids=["nobody answered", "confirmed", "false", "another cause"],
)
def test_regressions_have_the_cause_that_is_known(said: list[Verdict], causes: list[str]) -> None:
    found = caused_regressions(stored(*said), "shop", T - 1.0, T + 7200.0)
    assert [one.change for one in found] == causes
    assert all(one.size == pytest.approx(0.02) for one in found)


def test_regressions_that_were_detected_later_do_not_count() -> None:
    assert caused_regressions(stored(), "shop", T - 1.0, T + 3600.0) == []
    assert caused_regressions(stored(), "shop", T + 1.0, T + 7200.0) == []


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
