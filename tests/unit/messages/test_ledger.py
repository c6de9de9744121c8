"""Lines of the ledger: the same after a way through the store, a file, or an event."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import orjson
import pytest

from pipeline.messages.events import encode_event, regression_event, regression_id
from pipeline.messages.ledger import (
    LedgerEntry,
    dropped_entries,
    entry_from_json,
    entry_from_row,
    entry_to_json,
    ledger_columns,
    reported_entries,
)
from pipeline.model import Candidate, CostlierRequests, DomainDecision, Regression, Scan
from pipeline.model.errors import InvalidMessage
from tests.support.builders import build_candidate, build_decision, build_dropped

T0 = 1_700_000_000.0
TRAIL = (build_decision("went_away", 0.9, 0.5, "still there"), build_decision("threshold", 0.1, 0.03))
DOMAINS = (
    DomainDecision("callers: shop.a, shop.b", "new", 0.0, 0.2, 1.0, 0.5),
    DomainDecision("class: shop", "rose", 0.2, 0.3, 0.9, 0.5),
)
FIRST = replace(build_candidate("shop.f", change_time=T0 + 35), passed=TRAIL)
SECOND = replace(build_candidate("shop.g", change_time=T0 + 40), group=(build_candidate("shop.h"),))
SCAN = Scan(
    service="shop",
    workload="live",
    start=T0,
    analysis_start=T0 + 30,
    analysis_end=T0 + 45,
    end=T0 + 50,
    series=7,
    candidates=(SECOND,),
    dropped=(build_dropped(FIRST, "som_dedup", 0.8, 0.7, "explained by the stacks of shop.g"),),
)
WINDOWS = replace(SCAN, candidates=(), dropped=(), series=0)


def rows(entries: list[LedgerEntry]) -> list[dict[str, Any]]:
    columns = ledger_columns(entries)
    return [{name: values[i] for name, values in columns.items()} for i in range(len(entries))]


def test_a_scan_becomes_lines() -> None:
    (dropped,), (reported,) = dropped_entries(SCAN), reported_entries(SCAN)
    assert dropped.dropped == SCAN.dropped[0].decision
    assert (reported.dropped, reported.candidate) == (None, SECOND)
    assert reported.id == regression_id("shop", "live", SECOND, SCAN.end)
    assert dropped.id == regression_id("shop", "live", FIRST, SCAN.end)


@pytest.mark.parametrize(
    "entry", [*dropped_entries(SCAN), *reported_entries(SCAN)], ids=["dropped", "reported"]
)
def test_a_line_of_a_file_is_the_line_and_a_row_of_the_store_lacks_its_group(entry: LedgerEntry) -> None:
    line = orjson.loads(orjson.dumps(entry_to_json(entry)))
    assert entry_from_json(line) == replace(entry, scan=WINDOWS)
    (row,) = rows([entry])
    assert entry_from_row(row) == replace(entry, scan=WINDOWS, candidate=replace(entry.candidate, group=()))


def test_a_line_has_what_people_script_against() -> None:
    (line,) = map(entry_to_json, dropped_entries(SCAN))
    promised = "service workload scan_end metric candidate step statistic bound reason"
    assert set(promised.split()) <= set(line)
    assert (line["step"], line["statistic"], line["bound"]) == ("som_dedup", 0.8, 0.7)
    assert line["candidate"]["metric"] == line["metric"] == "shop.f"
    assert [decision["step"] for decision in line["passed"]] == ["went_away", "threshold"]


def test_the_event_of_a_reported_one_shows_the_same() -> None:
    (entry,) = reported_entries(replace(SCAN, candidates=(replace(SECOND, passed=TRAIL),)))
    regression = Regression(entry.id, "shop", "live", entry.candidate, SCAN.end)
    found = entry_from_json(orjson.loads(encode_event(regression_event(regression, SCAN))))
    # An event gives its members' levels alone.
    members = tuple(replace(m, p_value=0.0, statistic=0.0) for m in entry.candidate.group)
    assert found == replace(entry, scan=WINDOWS, candidate=replace(entry.candidate, group=members))


def test_what_cost_domains_said_survives_a_line_an_event_and_a_row() -> None:
    candidate = replace(build_candidate("shop.f", change_time=T0 + 35), domains=DOMAINS)
    (entry,) = reported_entries(replace(SCAN, candidates=(candidate,)))
    line = entry_to_json(entry)
    assert "domains" not in line["candidate"], "written once"
    assert entry_from_json(line).candidate.domains == DOMAINS
    event = regression_event(Regression(entry.id, "shop", "live", candidate, SCAN.end), SCAN)
    assert entry_from_json(event).candidate.domains == DOMAINS
    (row,) = rows([entry])
    assert entry_from_row(row).candidate.domains == DOMAINS
    assert entry_from_row({**row, "domains": ""}).candidate.domains == (), "a row of an older version"


@pytest.mark.parametrize("chances", [(0.7, 0.25), ()], ids=["known", "of a former version"])
def test_probabilities_of_types_survive_a_line_an_event_and_a_row(chances: tuple[float, ...]) -> None:
    costlier = CostlierRequests("GET /a", "v2", "v1", 0.02, 0.004, ("GET /b",), chances)
    candidate = replace(build_candidate("cpu", change_time=T0 + 35), passed=(costlier.decision(),))
    (entry,) = reported_entries(replace(SCAN, candidates=(candidate,)))
    event = regression_event(Regression(entry.id, "shop", "live", candidate, SCAN.end), SCAN)
    (row,) = rows([entry])
    for found in (entry_from_json(entry_to_json(entry)), entry_from_json(event), entry_from_row(row)):
        assert found.candidate.costlier_requests == (costlier,)


def test_a_line_of_an_older_version_gets_its_id() -> None:
    (entry,) = dropped_entries(SCAN)
    line = entry_to_json(entry)
    del line["id"], line["passed"], line["domains"]
    found = entry_from_json(line)
    assert (found.id, found.candidate.passed) == (entry.id, ())


@pytest.mark.parametrize(
    ("alteration", "message"),
    [
        ({"candidate": None}, "candidate: should be an object"),
        ({"candidate": {"metric": "f"}}, "metric_kind: missing"),
        ({"scan": None}, "scan: should be an object"),
        ({"scan": {"start": 1}}, "start: 1 is not a time"),
        ({"statistic": "much"}, "statistic: should be a number"),
        ({"step": 3}, "step: should be a string"),
        ({"passed": [3]}, r"passed\[0\]: should be an object"),
        ({"domains": [3]}, r"domains\[0\]: should be an object"),
        ({"domains": [{"domain": "class: f", "finding": "vanished"}]}, "should be new, .*, not 'vanished'"),
    ],
)
def test_what_is_no_line_is_refused(alteration: dict[str, Any], message: str) -> None:
    (line,) = map(entry_to_json, dropped_entries(SCAN))
    with pytest.raises(InvalidMessage, match=message):
        entry_from_json({**line, **alteration})


def test_windows_out_of_order_and_a_trail_that_cannot_be_read_are_refused() -> None:
    (line,), (row,) = map(entry_to_json, dropped_entries(SCAN)), rows(dropped_entries(SCAN))
    line["scan"]["analysis_end"] = line["scan"]["start"]
    with pytest.raises(InvalidMessage, match="should follow each other"):
        entry_from_json(line)
    with pytest.raises(InvalidMessage, match="passed: not JSON"):
        entry_from_row({**row, "passed": "{"})


def test_candidates_of_any_kind_come_back() -> None:
    fall = Candidate("service", "throughput", "long_term", T0 + 1, 100.0, 80.0, 0.0, 1e6)
    (entry,) = reported_entries(replace(SCAN, candidates=(fall,)))
    assert entry_from_json(entry_to_json(entry)).candidate == fall
