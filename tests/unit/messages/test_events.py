from __future__ import annotations

from dataclasses import replace
from typing import Any

import orjson
import pytest

from pipeline.analysis.lifecycle import OpenRegression, Update
from pipeline.messages.events import (
    DETECTED,
    RESOLVED,
    UPDATED,
    decode_event,
    encode_event,
    regression_event,
    regression_id,
    update_event,
    update_id,
)
from pipeline.messages.fields import MAX_NAME
from pipeline.messages.ledger import candidate_of_event
from pipeline.model import (
    Candidate,
    Change,
    CostlierRequests,
    Decision,
    DomainDecision,
    Regression,
    Scan,
    StackChange,
    Suspect,
)
from pipeline.model.errors import InvalidMessage
from tests.support.builders import build_decision

T0 = 1_760_000_000.0
MEMBER = Candidate("subroutine", "shop.checkout", "short_term", T0, 0.1, 0.15, 1e-9, 40.0)
CANDIDATE = Candidate("subroutine", "shop.total", "short_term", T0, 0.1, 0.15, 1e-12, 50.0, (MEMBER,))
CHANGE = Change(
    "c0ffee", "shop", T0 - 5, "Sort twice", "ann", files=("shop.py",), subroutines=("shop.total",)
)
REGRESSION = Regression(
    id="id-1",
    service="shop",
    workload="live",
    candidate=CANDIDATE,
    detected_time=T0 + 30,
    suspects=(Suspect(CHANGE, 0.9, {"attribution": 0.8, "text": 1.0}),),
)


def test_an_event_has_what_subscribers_script_against() -> None:
    event = regression_event(REGRESSION)
    assert event["specversion"] == "1.0"
    assert (event["id"], event["type"]) == ("id-1", DETECTED)
    assert (event["source"], event["subject"]) == ("/smidgen/shop", "shop.total")
    assert event["time"] == "2025-10-09T08:53:50.000Z"
    data = event["data"]
    promised = {
        "service", "metric", "kind", "change_time", "detected_time", "before", "after", "delta", "relative",
        "p_value", "group", "root_causes", "workload",
    }  # fmt: skip
    assert promised <= set(data)
    assert data["change_time"] == "2025-10-09T08:53:20.000Z"
    assert data["delta"] == pytest.approx(0.05)
    assert data["relative"] == pytest.approx(0.5)
    assert [member["metric"] for member in data["group"]] == ["shop.checkout"]
    (cause,) = data["root_causes"]
    assert (cause["change"]["id"], cause["score"], cause["factors"]["attribution"]) == ("c0ffee", 0.9, 0.8)


def test_a_flip_has_the_commits_that_it_switches_beside_it() -> None:
    code = replace(CHANGE, id="d1ff", title="x" * 900, content="+ a diff")
    suspect = Suspect(replace(CHANGE, gates=("new_cart",)), 0.9, {}, (code,))
    (cause,) = regression_event(replace(REGRESSION, suspects=(suspect,)))["data"]["root_causes"]
    assert cause["switches"] == [{"id": "d1ff", "time": code.time, "title": "x" * 500, "author": "ann"}]
    (cause,) = regression_event(REGRESSION)["data"]["root_causes"]
    assert "switches" not in cause


def test_what_did_not_exist_before_has_no_relative_change() -> None:
    regression = replace(REGRESSION, candidate=replace(CANDIDATE, before=0.0))
    data = orjson.loads(encode_event(regression_event(regression)))["data"]
    assert data["relative"] is None
    assert data["delta"] == 0.15


def test_the_id_is_the_scan_and_the_series_not_the_estimate() -> None:
    first = regression_id("shop", "live", CANDIDATE, T0)
    late_samples = replace(CANDIDATE, change_time=T0 + 1, before=0.11, after=0.16, p_value=0.001, group=())
    assert regression_id("shop", "live", late_samples, T0) == first
    assert first == "f03ea12edaaee689b102dbfef21872b8", "an id outlives versions"


@pytest.mark.parametrize(
    ("service", "workload", "alteration", "end"),
    [
        pytest.param("store", "live", {}, T0, id="service"),
        pytest.param("shop", "other", {}, T0, id="workload"),
        pytest.param("shop", "live", {"metric": "shop.taxes"}, T0, id="metric"),
        pytest.param("shop", "live", {"metric_kind": "endpoint"}, T0, id="metric kind"),
        pytest.param("shop", "live", {"kind": "long_term"}, T0, id="kind"),
        pytest.param("shop", "live", {}, T0 + 5, id="scan"),
    ],
)
def test_anything_else_is_another_event(
    service: str, workload: str, alteration: dict[str, Any], end: float
) -> None:
    other = regression_id(service, workload, replace(CANDIDATE, **alteration), end)
    assert other != regression_id("shop", "live", CANDIDATE, T0)


@pytest.mark.parametrize(
    ("alteration", "message"),
    [
        ({"specversion": None}, "specversion: missing"),
        ({"id": ""}, "id: empty"),
        ({"type": 3}, "type: should be a string, not an integer"),
        ({"source": None}, "source: missing"),
        ({"time": None}, "time: missing"),
        ({"data": None}, "data: should be an object"),
        ({"data": [1]}, "data: should be an object"),
    ],
)
def test_what_is_no_event_is_refused(alteration: dict[str, Any], message: str) -> None:
    raw = {**regression_event(REGRESSION), **alteration}
    with pytest.raises(InvalidMessage) as caught:
        decode_event(orjson.dumps(raw))
    assert str(caught.value).startswith(message)


def test_an_event_shows_what_each_step_measured_and_where_the_windows_lie() -> None:
    scan = Scan("shop", "live", T0 - 20, T0 - 5, T0 + 25, T0 + 30, 7)
    passed = (build_decision("threshold", 0.05, 0.03),)
    found = replace(REGRESSION, candidate=replace(CANDIDATE, passed=passed))
    data = regression_event(found, scan)["data"]
    assert data["passed"] == [{"step": "threshold", "statistic": 0.05, "bound": 0.03, "reason": ""}]
    assert data["scan"]["analysis_end"] == "2025-10-09T08:53:45.000Z"


@pytest.mark.parametrize(
    ("chances", "likely"),
    [
        pytest.param((0.7, 0.25), {"likely": {"GET /a": 0.7, "GET /b": 0.25}}, id="known"),
        pytest.param((), {}, id="of a former version"),
    ],
)
def test_an_event_says_how_likely_it_is_each_type(
    chances: tuple[float, ...], likely: dict[str, dict[str, float]]
) -> None:
    costlier = CostlierRequests("GET /a", "v2", "v1", 0.02, 0.004, ("GET /b",), chances)
    found = replace(REGRESSION, candidate=replace(CANDIDATE, passed=(costlier.decision(),)))
    (data,) = decode_event(encode_event(regression_event(found)))["data"]["requests"]
    assert data == {
        **{"type": "GET /a", "release": "v2", "former_release": "v1", "share": 0.02, "share_error": 0.004},
        **{"or_types": ["GET /b"], **likely},
    }
    assert "requests" not in regression_event(REGRESSION)["data"]


def test_an_event_shows_what_cost_domains_said_and_which_stacks_changed() -> None:
    decision = DomainDecision("callers: shop.checkout", "rose", 0.2, 0.25, 0.98, 0.5)
    found = replace(
        REGRESSION,
        candidate=replace(CANDIDATE, domains=(decision,)),
        stacks=(StackChange(("main", "…", "shop.total"), 0.1, 0.15),),
    )
    data = decode_event(encode_event(regression_event(found)))["data"]
    assert data["cost_domains"] == [
        {
            "domain": "callers: shop.checkout",
            "finding": "rose",
            "before": 0.2,
            "after": 0.25,
            "statistic": 0.98,
            "bound": 0.5,
        }
    ]
    assert data["stacks"] == [{"stack": ["main", "…", "shop.total"], "before": 0.1, "after": 0.15}]


@pytest.mark.parametrize(
    ("servers", "alteration", "waste"),
    [
        pytest.param(500_000.0, {"before": 0.001, "after": 0.00105}, 25.0, id="0.005 % of half a million"),
        pytest.param(None, {}, None, id="nobody knows how many there are"),
        pytest.param(
            40.0, {"metric_kind": "service", "before": 900.0, "after": 800.0}, None, id="a metric is no share"
        ),
    ],
)
def test_waste_is_the_change_times_the_servers(
    servers: float | None, alteration: dict[str, Any], waste: float | None
) -> None:
    found = replace(REGRESSION, servers=servers, candidate=replace(CANDIDATE, **alteration))
    data = regression_event(found)["data"]
    assert data["servers"] == servers
    assert data["waste_servers"] == (waste if waste is None else pytest.approx(waste))


def test_a_change_is_reported_without_its_diff_and_says_where_it_is_cut() -> None:
    short = replace(CHANGE, content="+ sorted(sorted(rows))")
    long = replace(
        CHANGE,
        title="t" * 600,
        summary="s" * 100_000,
        files=tuple(f"module_{n}/file_{n}.py" for n in range(5000)),
    )
    suspects = tuple(Suspect(change, 0.4, {}) for change in (short, long))
    first, second = regression_event(replace(REGRESSION, suspects=suspects))["data"]["root_causes"]
    assert "content" not in first["change"]
    assert "cut" not in first["change"]
    assert second["change"]["cut"] is True
    assert second["change"]["title"] == "t" * 500
    assert second["change"]["files"] == list(long.files[: len(second["change"]["files"])])
    assert 100 < len(second["change"]["files"]) < 5000


@pytest.mark.parametrize("character", ["f", "€", "\x00"], ids=["plain", "three bytes", "six when escaped"])
def test_no_event_is_too_large(character: str) -> None:
    """With names as long as they may be, and more of everything than is reported."""
    name = character * MAX_NAME
    member = replace(CANDIDATE, metric=name, group=())
    huge = Regression(
        id="id-1",
        service=character * 200,
        workload="live",
        candidate=replace(
            member,
            group=(replace(MEMBER, metric=name),) * 3000,
            passed=(build_decision("went_away", 1.0, 0.5, character * 1000),) * 40,
            domains=(DomainDecision(name, "rose", 0.1, 0.2, 1.0, 0.5),) * 40,
        ),
        detected_time=T0 + 30,
        suspects=(
            Suspect(
                Change(
                    character * 400,
                    character * 200,
                    T0,
                    name,
                    name,
                    character * 100_000,
                    *((name,) * 300,) * 3,
                ),
                0.3,
                {},
            ),
        )
        * 3,
        stacks=(StackChange((name,) * 32, 0.1, 0.2),) * 20,
    )
    encoded = encode_event(regression_event(huge))
    data = decode_event(encoded)["data"]
    assert len(encoded) < 256 * 1024
    assert data["group_size"] == 3000
    assert 0 < len(data["group"]) < 3000
    assert len(data["root_causes"]) >= 2
    joined = Update("updated", OPEN, "shop", "live", T0, T0, level=0.2, joined=(member,) * 3000)
    updated = update_event(joined)
    assert len(encode_event(updated)) < 256 * 1024
    assert (updated["data"]["joined_size"], updated["data"]["grown"]) == (3000, None)


def test_a_usual_group_is_reported_whole() -> None:
    group = tuple(replace(MEMBER, metric=f"shop.checkout.Basket.handler_{n}") for n in range(200))
    data = regression_event(replace(REGRESSION, candidate=replace(CANDIDATE, group=group)))["data"]
    assert len(data["group"]) == data["group_size"] == 200


OPEN = OpenRegression("c0ffee", CANDIDATE)
ESCALATED = replace(CANDIDATE, before=0.15, after=0.2, change_time=T0 + 100)
UPDATE = Update("updated", OPEN, "shop", "live", T0 + 130, T0 + 100, level=0.2, escalated=ESCALATED)
RETURN = Update("resolved", OPEN, "shop", "live", T0 + 130, T0 + 90, level=0.11, changes=(CHANGE,))


@pytest.mark.parametrize(
    ("update", "kind"), [(UPDATE, UPDATED), (RETURN, RESOLVED)], ids=["updated", "resolved"]
)
def test_what_became_of_a_regression_names_it(update: Update, kind: str) -> None:
    event = decode_event(encode_event(update_event(update)))
    assert (event["type"], event["subject"], event["source"]) == (kind, "shop.total", "/smidgen/shop")
    data = event["data"]
    promised = {"service": "shop", "workload": "live", "metric": "shop.total", "metric_kind": "subroutine"}
    assert promised.items() <= data.items()
    assert (data["regression"], data["kind"]) == ("c0ffee", "short_term")
    assert (data["before"], data["after"]) == (0.1, 0.15)
    assert data["regression_time"] == "2025-10-09T08:53:20.000Z"
    assert data["detected_time"] == "2025-10-09T08:55:30.000Z"


def test_growth_and_return_show_what_changed() -> None:
    grown, gone = update_event(UPDATE)["data"], update_event(RETURN)["data"]
    assert grown["change_time"] == "2025-10-09T08:55:00.000Z"
    assert (grown["level"], grown["share_remaining"]) == (0.2, pytest.approx(2.0))
    assert (grown["grown"]["before"], grown["grown"]["after"]) == (0.15, 0.2)
    assert (gone["level"], gone["share_remaining"]) == (0.11, pytest.approx(0.2))
    assert [change["id"] for change in gone["resolved_by"]] == ["c0ffee"]
    assert "joined" not in gone


@pytest.mark.parametrize("update", [UPDATE, RETURN], ids=["updated", "resolved"])
def test_what_became_of_a_release_says_which(update: Update) -> None:
    passed = (
        Decision("release_effect", True, 1.5, 1e-9, "side_by_side", ("r260114",)),
        Decision("one_stratum", True, code="only", subjects=("region=west",)),
    )
    reported = regression_event(replace(REGRESSION, candidate=replace(CANDIDATE, passed=passed)))
    known = candidate_of_event(reported["data"])
    data = update_event(replace(update, regression=replace(OPEN, candidate=known)))["data"]
    assert (data["releases"], data["strata"]) == (["r260114"], ["region=west"])
    assert "releases" not in update_event(update)["data"]


def test_what_joined_a_regression_is_reported_with_its_levels() -> None:
    data = update_event(replace(UPDATE, escalated=None, joined=(MEMBER,)))["data"]
    assert data["grown"] is None
    assert [(one["metric"], one["before"], one["after"]) for one in data["joined"]] == [
        ("shop.checkout", 0.1, 0.15)
    ]
    assert data["joined_size"] == 1


def test_the_id_of_an_update_is_the_regression_the_type_and_the_scan() -> None:
    first = update_id(UPDATE)
    assert update_id(replace(UPDATE, level=0.21, change_time=T0 + 99)) == first
    others = [
        replace(UPDATE, kind="resolved"),
        replace(UPDATE, time=T0 + 135),
        replace(UPDATE, regression=replace(OPEN, id="decaf0")),
    ]
    assert len({first, *map(update_id, others)}) == 4
    assert first == "276b9209d937c0c04158c5636287ca90", "an id outlives versions"


def test_what_joins_in_scans_of_two_workloads_is_two_updates() -> None:
    joins = replace(UPDATE, escalated=None, joined=(MEMBER,))
    others = [joins, replace(joins, workload="slow"), UPDATE]
    assert len({*map(update_id, others)}) == 3
    assert update_id(replace(joins, joined=())) == update_id(joins), "the same scan, whatever it finds"
