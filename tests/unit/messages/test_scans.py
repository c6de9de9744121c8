from __future__ import annotations

from dataclasses import replace
from typing import Any

import orjson
import pytest

from pipeline.messages.records import to_json
from pipeline.messages.scans import (
    MAX_GROUP_DEPTH,
    MAX_PART_ITEMS,
    decision_to_json,
    decode_progress,
    decode_scan,
    encode_scan,
    join_scan,
    split_scan,
)
from pipeline.model import Candidate, DomainDecision, Progress, Rename, Scan
from pipeline.model.errors import InvalidMessage
from pipeline.settings.topics import load_topics
from tests.support.builders import build_dropped
from tests.unit.messages.test_schema_messages import refused_by_schema

T0 = 1_760_000_000.0
CANDIDATE = Candidate("subroutine", "shop.total", "short_term", T0 + 50, 0.01, 0.02, 1e-9, 40.0)
DROPPED = build_dropped(CANDIDATE, "threshold", 0.00001, 0.00005, "too small")
SCAN = Scan("shop", "live", T0, T0 + 30, T0 + 45, T0 + 50, 7, (CANDIDATE,), (DROPPED,))

PROGRESS: dict[str, Any] = {
    "service": "shop",
    "topic": "profiles",
    "partition": 3,
    "watermark": T0,
    "earliest": T0 - 10,
}
DELETED = object()


def altered(raw: dict[str, Any], alteration: dict[str, Any]) -> bytes:
    merged = {**raw, **alteration}
    return orjson.dumps({key: value for key, value in merged.items() if value is not DELETED})


def scan_json() -> dict[str, Any]:
    raw: dict[str, Any] = orjson.loads(encode_scan(SCAN))
    return raw


def test_progress_is_read() -> None:
    assert decode_progress(orjson.dumps(PROGRESS)) == Progress("shop", "profiles", 3, T0, T0 - 10)


@pytest.mark.parametrize(
    ("alteration", "message"),
    [
        *(({field: DELETED}, f"{field}: missing") for field in PROGRESS),
        ({"partition": -1}, "partition: should be a whole number of at least 0"),
        ({"partition": 1.0}, "partition: should be a whole number of at least 0, not a number"),
        ({"partition": True}, "partition: should be a whole number of at least 0, not a boolean"),
        ({"watermark": 12}, "watermark: 12 is not a time"),
        ({"topic": ""}, "topic: empty"),
    ],
)
def test_wrong_progress_is_named(alteration: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidMessage) as caught:
        decode_progress(altered(PROGRESS, alteration))
    assert str(caught.value).startswith(message)
    refused_by_schema("progress", altered(PROGRESS, alteration), str(caught.value))


CANDIDATE_JSON = to_json(CANDIDATE)
FIRST = "candidates[0]"
PASSED = {
    **{"step": "release_costs", "statistic": 0.02, "bound": 0.004, "code": "dearer"},
    "subjects": ["GET /a", "v2", "v1", "GET /b"],
}


def first(**alteration: object) -> dict[str, Any]:
    """Return an alteration of a scan: its one candidate is altered."""
    return {"candidates": [{**CANDIDATE_JSON, **alteration}]}


@pytest.mark.parametrize(
    ("alteration", "message"),
    [
        *(
            ({field: DELETED}, f"{field}: missing")
            for field in (
                "service", "workload", "start", "analysis_start", "analysis_end", "end", "series",
                "candidates",
            )
        ),
        ({"series": -1}, "series: should be a whole number"),
        ({"part": 1}, "part: 1 of 1"),
        ({"part": 0, "parts": 0}, "part: 0 of 0"),
        ({"part": 2, "parts": 2}, "part: 2 of 2"),
        ({"candidates": {}}, "candidates: should be a list, not an object"),
        ({"candidates": [3]}, "candidates[0]: should be an object, not an integer"),
        (first(metric_kind="host"), f"{FIRST}.metric_kind: should be subroutine"),
        (first(kind="m"), f"{FIRST}.kind: should be short_term or long_term, not 'm'"),
        (first(before=None), f"{FIRST}.before: missing"),
        (first(p_value="0"), f"{FIRST}.p_value: should be a number, not a string"),
        (first(change_time=1), f"{FIRST}.change_time: 1 is not a time"),
        (first(group=[1]), f"{FIRST}.group[0]: should be an object"),
        (first(passed={}), f"{FIRST}.passed: should be a list, not an object"),
        (first(passed=[3]), f"{FIRST}.passed[0]: should be an object"),
        (first(passed=[{"step": "s"}]), f"{FIRST}.passed[0].statistic: missing"),
        (first(passed=[{**PASSED, "chances": {}}]), f"{FIRST}.passed[0].chances: should be a list"),
        (first(passed=[{**PASSED, "chances": [1.5]}]), f"{FIRST}.passed[0].chances[0]: 1.5 is more than 1"),
        (first(domains={}), f"{FIRST}.domains: should be a list, not an object"),
        (first(domains=[3]), f"{FIRST}.domains[0]: should be an object"),
        (
            first(domains=[{"domain": "d", "finding": "fell"}]),
            f"{FIRST}.domains[0].finding: should be new, too large, rose or shifted, not 'fell'",
        ),
        (first(domains=[{"finding": "new"}]), f"{FIRST}.domains[0].domain: missing"),
        ({"grown": {}}, "grown: should be a list, not an object"),
        ({"grown": [3]}, "grown[0]: should be an object"),
        ({"dropped": [3]}, "dropped[0]: should be an object"),
        (
            {"dropped": [{**to_json(DROPPED), "candidate": None}]},
            "dropped[0].candidate: should be an object, not null",
        ),
        ({"dropped": [{**to_json(DROPPED), "step": ""}]}, "dropped[0].step: empty"),
        ({"dropped": [{**to_json(DROPPED), "bound": None}]}, "dropped[0].bound: missing"),
    ],
)  # fmt: skip
def test_a_wrong_scan_is_named(alteration: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidMessage) as caught:
        decode_scan(altered(scan_json(), alteration))
    assert str(caught.value).startswith(message)
    refused_by_schema("scan", altered(scan_json(), alteration), str(caught.value))


@pytest.mark.parametrize(
    ("sent", "chances"),
    [
        pytest.param({"chances": [0.75, 0.125]}, (0.75, 0.125), id="new"),
        pytest.param({}, (), id="of a former version"),
        pytest.param({"chances": None}, (), id="null"),
        pytest.param({"chances": []}, (), id="none"),
    ],
)
def test_probabilities_of_types_are_read_if_they_are_there(
    sent: dict[str, Any], chances: tuple[float, ...]
) -> None:
    (found,) = decode_scan(altered(scan_json(), first(passed=[{**PASSED, **sent}]))).candidates
    (passed,) = found.passed
    assert passed.requests is not None
    assert passed.requests.chances == chances
    assert ("chances" in decision_to_json(passed)) == bool(chances)
    assert found.costlier_requests[0].types == ("GET /a", "GET /b")


def test_a_whole_scan_needs_no_part_numbers_and_may_lack_lists() -> None:
    lacking = dict.fromkeys(("part", "parts", "dropped", "grown"), DELETED)
    scan = decode_scan(altered(scan_json(), lacking))
    assert (scan.part, scan.parts, scan.dropped, scan.grown) == (0, 1, (), ())


def test_what_regressions_grew_into_is_reported_once_however_a_scan_is_cut() -> None:
    scan = replace(many(7, 9), grown=(CANDIDATE,))
    parts = [decode_scan(encode_scan(part)) for part in split_scan(scan, max_items=4)]
    assert sum(len(part.grown) for part in parts) == 1
    assert join_scan(parts) == scan


@pytest.mark.parametrize("depth", [MAX_GROUP_DEPTH + 1, 500])
def test_groups_nested_too_deep_are_refused(depth: int) -> None:
    innermost = orjson.dumps(CANDIDATE_JSON)
    opening = innermost[:-1] + b',"group":['  # spelt by hand: no encoder writes what a sender may nest
    scan = encode_scan(replace(SCAN, candidates=(), dropped=()))
    nested = b'"candidates":[' + opening * depth + innermost + b"]}" * depth + b"]"
    with pytest.raises(InvalidMessage, match="nested deeper than"):
        decode_scan(scan.replace(b'"candidates":[]', nested))


def many(candidates: int, dropped: int) -> Scan:
    return Scan(
        *("shop", "live", T0, T0 + 30, T0 + 45, T0 + 50, 7),
        tuple(Candidate("subroutine", f"c{i}", "short_term", T0, 0, 1, 0, 9) for i in range(candidates)),
        tuple(build_dropped(CANDIDATE, "threshold", float(i), 0.5, "") for i in range(dropped)),
    )


@pytest.mark.parametrize(
    ("candidates", "dropped", "sizes"),
    [
        pytest.param(0, 0, [(0, 0)], id="an empty scan is one part"),
        pytest.param(3, 1, [(3, 1)], id="exactly full"),
        pytest.param(3, 2, [(3, 1), (0, 1)], id="one too many"),
        pytest.param(5, 4, [(4, 0), (1, 3), (0, 1)], id="candidates first"),
    ],
)
def test_a_scan_is_cut(candidates: int, dropped: int, sizes: list[tuple[int, int]]) -> None:
    scan = many(candidates, dropped)
    parts = split_scan(scan, max_items=4)
    assert [(len(p.candidates), len(p.dropped)) for p in parts] == sizes
    assert [(p.part, p.parts) for p in parts] == [(i, len(sizes)) for i in range(len(sizes))]
    assert join_scan(parts) == scan


def test_the_attempt_is_of_the_content_of_all_parts() -> None:
    scan = many(5, 4)
    late = replace(scan, dropped=scan.dropped[:-1])  # first found without its last item
    attempts = [{part.attempt for part in split_scan(one, max_items=4)} for one in (scan, scan, late)]
    assert attempts[0] == attempts[1] != attempts[2]
    assert [len(found) for found in attempts] == [1, 1, 1]
    assert decode_scan(encode_scan(split_scan(scan, max_items=4)[1])).attempt in attempts[0]
    (only,) = split_scan(scan)
    assert only.attempt == ""
    assert b"attempt" not in encode_scan(only)


def test_a_full_part_fits_into_its_topic() -> None:
    name = "shop." + "x" * 200
    long_candidate = Candidate("subroutine", name, "short_term", T0 + 1 / 3, 1 / 3, 2 / 3, 1e-300, 1 / 7)
    dropped = build_dropped(long_candidate, "same_regression", 1 / 3, 1 / 7, "r" * 100)
    scan = Scan("shop", "live", T0, T0, T0, T0, 9, (), (dropped,) * MAX_PART_ITEMS)
    (part,) = split_scan(scan)
    assert len(encode_scan(part)) < load_topics()["change-points"].max_message_bytes


def test_decisions_of_domains_count_for_a_part() -> None:
    decision = DomainDecision("callers: " + "shop.x" * 100, "too large", 1 / 3, 2 / 3, 1 / 7, -1 / 3)
    judged = replace(CANDIDATE, domains=(decision,) * 9)
    parts = split_scan(replace(SCAN, candidates=(judged,) * 500, dropped=()))
    assert [len(part.candidates) for part in parts] == [300, 200]
    most = load_topics()["unique"].max_message_bytes
    assert max(len(encode_scan(part)) for part in parts) < most


def test_the_share_factor_travels_in_the_first_part_alone() -> None:
    scan = replace(many(9, 4), share_factor=(1.0, 0.1 + 0.2, 1 / 3))
    parts = [decode_scan(encode_scan(part)) for part in split_scan(scan, max_items=4)]
    assert [part.share_factor for part in parts] == [scan.share_factor, *[None] * (len(parts) - 1)]
    assert join_scan(parts) == scan


@pytest.mark.parametrize("factor", [None, (), (0.97,)])
def test_a_scan_with_and_without_a_share_factor(factor: tuple[float, ...] | None) -> None:
    scan = replace(SCAN, share_factor=factor)
    assert (b"share_factor" in encode_scan(scan)) == (factor is not None)
    assert decode_scan(encode_scan(scan)) == scan


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("share_factor", factor) for factor in ([0.0], [-1.0], ["1"], 1.0, [1.0, None])),
        *(("renames", [rename]) for rename in ({"former": "a"}, {"former": "", "name": "b"}, ["a", "b"])),
    ],
)
def test_a_share_factor_or_rename_that_is_none_is_refused(field: str, value: object) -> None:
    with pytest.raises(InvalidMessage, match=field):
        decode_scan(orjson.dumps({**scan_json(), field: value}))


def test_renames_travel_in_as_many_parts_as_they_need() -> None:
    renames = tuple(Rename(f"a{i}", f"org.a{i}") for i in range(9))
    scan = replace(many(3, 0), renames=renames)
    parts = [decode_scan(encode_scan(part)) for part in split_scan(scan, max_items=4)]
    assert [len(part.renames) for part in parts] == [1, 4, 4]
    assert join_scan(parts) == scan
