"""Declarations and codecs held to each other: what is written is declared, what is read is allowed.

A schema cannot say how fields depend on each other, nor how a number is spelt. ``BEYOND`` lists what decoders
refuse for such reasons alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import jsonschema
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.analysis.lifecycle import OpenRegression, Update
from pipeline.messages.events import decode_event, encode_event, regression_event, update_event
from pipeline.messages.inputs import decode_change, encode_change
from pipeline.messages.measurements import encode_metric_points, encode_profile
from pipeline.messages.scans import decode_scan, encode_progress, encode_scan
from pipeline.messages.schema.generate import message_schemas
from pipeline.model import Candidate, Decision, DomainDecision, Joined, Regression, Scan, StackChange, Suspect
from pipeline.model.errors import InvalidMessage
from tests.properties import test_codec as given_by
from tests.unit.messages.test_former import former

SCHEMAS = message_schemas()


def strict(node: Any) -> Any:
    """Return a schema that allows no field which it does not name."""
    if isinstance(node, list):
        return [strict(child) for child in node]
    if not isinstance(node, dict):
        return node
    inner = {key: strict(child) for key, child in node.items()}
    return {**inner, "additionalProperties": False} if "properties" in node else inner


CHECKS = {name: jsonschema.Draft202012Validator(schema) for name, schema in SCHEMAS.items()}
STRICT = {name: jsonschema.Draft202012Validator(strict(schema)) for name, schema in SCHEMAS.items()}


FEW = settings(max_examples=30)  # large documents; what matters is which fields there are


def written(name: str, message: bytes) -> None:
    STRICT[name].validate(orjson.loads(message))
    former(name, orjson.loads(message))


# What is written is declared, field by field.

name, text, moment, finite = given_by.name, given_by.text, given_by.moment, given_by.finite
domains = st.builds(
    DomainDecision,
    name,
    st.sampled_from(["new", "too large", "rose", "shifted"]),
    finite,
    finite,
    finite,
    finite,
)
decisions = st.builds(
    Decision, name, st.just(True), finite, finite, st.sampled_from(["", "text"]), st.tuples(name)
)


def few(items: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(items, max_size=2).map(tuple)


def enriched(plain: st.SearchStrategy[Candidate]) -> st.SearchStrategy[Candidate]:
    return st.builds(
        lambda candidate, passed, domains: replace(candidate, passed=passed, domains=domains),
        plain,
        few(decisions),
        few(domains),
    )


candidates = enriched(given_by.candidates)
changes = st.builds(lambda change, content: replace(change, content=content), given_by.changes, text)
scans = st.builds(
    lambda scan, found, joined: replace(scan, candidates=found, grown=found, joined=joined),
    given_by.scans,
    few(candidates),
    few(st.builds(Joined, name, candidates)),
)
regressions = st.builds(
    Regression,
    id=name,
    service=name,
    workload=name,
    candidate=candidates,
    detected_time=moment,
    suspects=few(
        st.builds(Suspect, changes, given_by.ratio, st.dictionaries(name, given_by.ratio, max_size=2))
    ),
    stacks=few(
        st.builds(
            StackChange, st.lists(text, max_size=3).map(tuple), before=given_by.ratio, after=given_by.ratio
        )
    ),
    servers=st.none() | st.floats(0, 1e6),
)
updates = st.builds(
    Update,
    kind=st.just("updated"),
    regression=st.builds(OpenRegression, name, given_by.flat_candidates),
    service=name,
    workload=name,
    time=moment,
    change_time=moment,
    level=given_by.ratio,
    escalated=st.none() | candidates,
    joined=few(candidates),
    changes=few(changes),
)


@FEW
@given(given_by.profiles())
def test_profiles_are_declared(profile: Any) -> None:
    written("profile", encode_profile(profile))


@given(given_by.metric_points())
def test_metric_points_are_declared(points: Any) -> None:
    written("metric-points", encode_metric_points(points))


@given(changes)
def test_changes_are_declared(change: Any) -> None:
    written("change", encode_change(change))


@given(given_by.progresses)
def test_progress_is_declared(progress: Any) -> None:
    written("progress", encode_progress(progress))


@FEW
@given(scans)
def test_scans_are_declared(scan: Scan) -> None:
    written("scan", encode_scan(scan))
    assert decode_scan(encode_scan(scan)) == scan


@FEW
@given(regressions, st.none() | given_by.scans)
def test_detected_events_are_declared(regression: Regression, scan: Scan | None) -> None:
    event = regression_event(regression, scan)
    written("regression-detected", encode_event(event))
    assert decode_event(encode_event(event)) == event


@FEW
@given(updates)
def test_updated_and_resolved_events_are_declared(update: Update) -> None:
    written("regression-updated", encode_event(update_event(update)))
    written("regression-resolved", encode_event(update_event(replace(update, kind="resolved"))))


# What is read is allowed, and what is not allowed is not read.

Decoder = Callable[[bytes | None], object]
T0 = given_by.T0
CANDIDATE: dict[str, Any] = {
    **given_by._CANDIDATE,
    "passed": [{"step": "s", "statistic": 1.0, "bound": 2.0, "reason": "r", "code": "c", "subjects": ["s"]}],
    "domains": [
        {"domain": "d", "finding": "rose", "before": 0.1, "after": 0.2, "statistic": 1.0, "bound": 0.5}
    ],
}
VALID: Mapping[str, tuple[Decoder, dict[str, Any]]] = {
    "profile": given_by._VALID["profile"],
    "metric-points": given_by._VALID["metric"],
    "change": (
        decode_change,
        {**given_by._VALID["change"][1], "gates": ["g"], "content": "+ x", "author": "a"},
    ),
    "progress": given_by._VALID["progress"],
    "scan": (
        decode_scan,
        {
            **given_by._VALID["scan"][1],
            "candidates": [{**CANDIDATE, "group": [CANDIDATE]}],
            "grown": [CANDIDATE],
            "joined": [{"regression": "i", "candidate": CANDIDATE}],
            "silent_partitions": 2,
        },
    ),
}
BEYOND = re.compile(
    r"end: should be at or after start"
    r"|stacks: index .* outside|annotations\[\d+\]\.frame: index .* outside"
    r"|counts: \d+ of them for \d+ stacks"
    r"|part: \d+ of \d+"
    r"|not an ISO 8601 time|is not a time between 2000 and 2100"  # of a time spelt as text
    r"|should be (integers|a whole number)"  # 1.0 is an integer in JSON Schema
    r"|beyond 64 bits"
    r"|labels: a name is empty"  # of a key, of which the schema says nothing
)


def outcome(kind: str, message: object) -> tuple[bool, str]:
    """Return whether the schema allows a message, and why the decoder refuses it, empty if it does not."""
    encoded = json.dumps(message).encode()
    try:
        parsed = orjson.loads(encoded)
    except orjson.JSONDecodeError:
        return False, "not JSON"
    try:
        VALID[kind][0](encoded)
    except InvalidMessage as error:
        return CHECKS[kind].is_valid(parsed), str(error)
    return CHECKS[kind].is_valid(parsed), ""


@pytest.mark.parametrize("kind", VALID)
def test_the_messages_that_are_altered_under_are_valid(kind: str) -> None:
    assert outcome(kind, VALID[kind][1]) == (True, "")
    assert not list(STRICT[kind].iter_errors(VALID[kind][1]))


@pytest.mark.parametrize("kind", VALID)
@given(data=st.data())
def test_schema_and_decoder_agree_on_a_message_with_one_value_replaced(
    kind: str, data: st.DataObject
) -> None:
    message = VALID[kind][1]
    path = data.draw(st.sampled_from(given_by.positions(message)))
    broken = given_by.with_replaced(message, path, data.draw(given_by.documents))
    allowed, refused = outcome(kind, broken)
    assert allowed != bool(refused) or (allowed and BEYOND.search(refused)), refused


@pytest.mark.parametrize("kind", VALID)
@given(data=st.data())
def test_schema_and_decoder_agree_on_a_message_that_lacks_a_field(kind: str, data: st.DataObject) -> None:
    message = json.loads(json.dumps(VALID[kind][1]))
    objects = [(), *(path for path in given_by.positions(message) if isinstance(at(message, path), dict))]
    found = at(message, data.draw(st.sampled_from(objects)))
    if found:
        del found[data.draw(st.sampled_from(sorted(found)))]
    allowed, refused = outcome(kind, message)
    assert allowed != bool(refused), refused


def at(node: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        node = node[step]
    return node


def refused_by_schema(kind: str, message: bytes, reason: str) -> None:
    """Check that a schema allows a message that the decoder refuses only if it cannot say the reason."""
    try:
        parsed = orjson.loads(message)
    except orjson.JSONDecodeError:
        return
    assert not CHECKS[kind].is_valid(parsed) or BEYOND.search(reason), reason


UNSAID: Mapping[str, tuple[str, dict[str, Any]]] = {
    "an end before the start": ("profile", {"end": T0 - 1}),
    "an interval of two days": ("profile", {"end": T0 + 2 * 86_400}),
    "an index outside the frames": ("profile", {"stacks": [[0, 9], [0]]}),
    "fewer counts than stacks": ("profile", {"counts": [1]}),
    "an integer spelt as a decimal": ("progress", {"partition": 1.0}),
    "a text that is no time": ("change", {"time": "yesterday"}),
    "a part beyond the last": ("scan", {"part": 2, "parts": 2}),
}


@pytest.mark.parametrize(("kind", "alteration"), UNSAID.values(), ids=UNSAID.keys())
def test_what_a_schema_cannot_say_is_refused_by_the_decoder(kind: str, alteration: dict[str, Any]) -> None:
    allowed, refused = outcome(kind, {**VALID[kind][1], **alteration})
    assert allowed
    assert BEYOND.search(refused)


@pytest.mark.parametrize("kind", VALID)
def test_readers_ignore_what_they_do_not_know(kind: str) -> None:
    assert outcome(kind, {**VALID[kind][1], "added_later": {"x": 1}}) == (True, "")


@pytest.mark.parametrize("attribute", ["specversion", "id", "type", "source", "time", "data"])
def test_an_event_without_what_every_event_has_is_refused_by_both(attribute: str) -> None:
    regression = Regression(
        "i", "s", "w", Candidate("subroutine", "m", "short_term", T0, 0.1, 0.2, 0.0, 9.0), T0
    )
    event = regression_event(regression)
    del event[attribute]
    with pytest.raises(InvalidMessage, match=attribute):
        decode_event(encode_event(event))
    assert not CHECKS["regression-detected"].is_valid(event)
