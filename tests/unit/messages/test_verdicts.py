"""Verdicts as messages and rows: they survive both, and a wrong one names its field."""

from __future__ import annotations

from dataclasses import replace

import orjson
import pytest

from pipeline.messages.inputs import decode_feedback, encode_feedback
from pipeline.messages.verdicts import verdict_of_row, verdict_to_row
from pipeline.model import Verdict
from pipeline.model.errors import InvalidMessage

T0 = 1_760_000_000.0
FALSE = Verdict("e1", "shop", "false", T0, "ada", "a load test, Ünruhe")
DUPLICATE = {"kind": "verdict", "event": "e1", "service": "s", "verdict": "duplicate", "time": T0}


@pytest.mark.parametrize(
    "said",
    [
        FALSE,
        Verdict("e1", "shop", "true", T0),
        replace(FALSE, verdict="duplicate", subject="e0"),
        replace(FALSE, verdict="cause", subject="8f2c11d"),
        replace(FALSE, verdict="expected", end=T0 + 60),
    ],
    ids=lambda said: said.verdict,
)
def test_a_verdict_survives_its_message_and_its_row(said: Verdict) -> None:
    assert decode_feedback(encode_feedback(said)) == said
    assert verdict_of_row(verdict_to_row(said)) == said


def test_a_cause_is_another_aspect_than_the_state() -> None:
    aspects = {kind: verdict_to_row(replace(FALSE, verdict=kind))["aspect"] for kind in ("true", "cause")}
    assert aspects == {"true": "state", "cause": "cause"}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        pytest.param({"subject": None}, "subject: missing; it is the id of the other event", id="of nothing"),
        pytest.param({"subject": "e1"}, "subject: an event is no duplicate of itself", id="of itself"),
        pytest.param({"verdict": "cause"}, "subject: missing; it is the id of the change", id="no change"),
        pytest.param(
            {"verdict": "true", "subject": "x"}, "subject: of duplicates and causes", id="a subject"
        ),
        pytest.param({"verdict": "maybe"}, "verdict: should be true, false, cost-shift", id="a verdict"),
        pytest.param({"verdict": True}, "verdict: should be true, false, cost-shift", id="no text"),
        pytest.param({"event": ""}, "event: empty", id="no event"),
        pytest.param({"end": T0 + 5, "subject": "e0"}, "end: of expected ones alone", id="an end"),
        pytest.param({"verdict": "expected", "end": T0}, "end: should be after time", id="ended"),
        pytest.param({"time": T0 + 8000, "subject": "e0"}, "time: 8000 s in the future", id="later"),
    ],
)
def test_a_wrong_verdict_names_its_field(changes: dict[str, object], reason: str) -> None:
    with pytest.raises(InvalidMessage) as caught:
        decode_feedback(orjson.dumps({**DUPLICATE, **changes}), now=T0)
    assert str(caught.value).startswith(reason)
