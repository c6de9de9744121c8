"""Verdicts over every store: stored once over replays, the latest of each author and aspect."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pipeline.analysis.feedback import confirmed_causes, latest_verdicts
from pipeline.messages.inputs import decode_feedback, encode_feedback
from pipeline.model import Record, Silence, Verdict
from pipeline.stages.aggregate import AggregateStage
from pipeline.stages.gather.verdicts import gather_verdicts
from pipeline.storage.interface import RowQuery, Store

T0 = 1_760_000_000.0


@pytest.fixture
def said(service_name: str) -> list[Verdict]:
    """What two people said of two events, oldest first."""
    first = Verdict("e1", service_name, "acknowledged", T0, "ada")
    return [
        first,
        replace(first, verdict="true", time=T0 + 10, comment="O'Brien \\ said"),
        replace(first, verdict="cause", time=T0 + 20, subject="8f2c11d"),
        replace(first, event="e2", verdict="expected", time=T0 + 30, end=T0 + 90),
        replace(first, verdict="false", time=T0 + 40, author="ben"),
    ]


def send(store: Store, said: list[Verdict], *more: Any) -> None:
    stage = AggregateStage(
        store=store, clock=lambda: T0 + 100, streams={}, window_s=60.0, stack_window_s=600.0
    )
    values = [decode_feedback(encode_feedback(one)) for one in (*said, *more)]
    batch = [Record("feedback", 0, offset, value) for offset, value in enumerate(values)]
    assert stage.handle(batch) == []


def test_the_latest_of_each_author_and_aspect_stays(
    store: Store, service_name: str, said: list[Verdict]
) -> None:
    send(store, said)
    found = gather_verdicts(store, service_name)
    assert found == tuple(said[1:])
    assert {event: one.verdict for event, one in latest_verdicts(found).items()} == {
        "e1": "false",
        "e2": "expected",
    }
    assert confirmed_causes(found)["e1"].subject == "8f2c11d"
    assert gather_verdicts(store, service_name, event="e2") == (said[3],)
    assert set(found) <= set(gather_verdicts(store))


def test_messages_that_are_read_once_more_change_nothing(
    store: Store, service_name: str, said: list[Verdict]
) -> None:
    send(store, said)
    before = gather_verdicts(store, service_name)
    send(store, said)
    send(store, said[:1])  # an early one alone, long after
    assert gather_verdicts(store, service_name) == before


def test_verdicts_and_silences_share_a_batch(store: Store, service_name: str, said: list[Verdict]) -> None:
    mute = Silence("m1", service_name, "muted", T0, T0, T0 + 60, owner="ada")
    send(store, said, mute)
    assert len(gather_verdicts(store, service_name)) == 4
    assert [row["id"] for row in store.rows(RowQuery("silences", service_name, T0, T0 + 1))] == ["m1"]
