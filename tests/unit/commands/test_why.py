"""``smidgen why``: a story in words, and what it takes from the store."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest

from pipeline.analysis.lifecycle import OpenRegression
from pipeline.cli import run
from pipeline.messages.events import regression_event, regression_id, update_event
from pipeline.messages.ledger import dropped_entries, ledger_columns, reported_entries
from pipeline.model import (
    AppliedSilence,
    CostlierRequests,
    Decision,
    DomainDecision,
    Dropped,
    Record,
    SeriesKey,
    Silence,
    Suspect,
)
from pipeline.model.steps import FUNNEL
from pipeline.settings.workloads import load_workloads
from pipeline.stages.rootcause import RootcauseStage
from pipeline.storage.arrays import ArrayStore
from pipeline.storage.interface import Store
from pipeline.views.report.case import case_in_store, frame_of
from pipeline.views.report.explain import explain, number
from tests.contract.rows import gcpu, totals
from tests.support.builders import build_dropped
from tests.support.fleets import START
from tests.unit.commands.explained import CHANGE, DROPPED, FOUND, GONE, LOST, REGRESSION, SCAN


def test_a_dropped_candidate_is_explained_step_by_step() -> None:
    (entry,) = dropped_entries(SCAN)
    story = explain(entry)
    assert story.headline == "search.find rose from 20 % to 21 % of the service's CPU"
    assert story.outcome == "Step threshold dropped it: absolute change below the threshold."
    assert [(step.name, step.passed) for step in story.steps] == [
        ("change point", True),
        ("went_away", True),
        ("threshold", False),
    ]
    assert story.steps[1].answer == "significant, lasting and still there"
    assert (
        story.steps[2].numbers == "0.01 against 0.03 (size of the change, against the workload's threshold)"
    )
    facts = dict(story.facts)
    assert facts["change"] == "+1 points (+5.0%) at 2023-11-14 22:14:18 UTC, short-term"
    assert facts["scan"] == "live, up to 2023-11-14 22:14:35 UTC: history 30s, analysis 15s, extended 5s"


def test_the_frame_behind_a_symbol_is_a_fact() -> None:
    (entry,) = dropped_entries(SCAN)
    assert dict(explain(entry, frame="search::find<int>(int)").facts)["frame"] == "search::find<int>(int)"
    assert "frame" not in dict(explain(entry).facts)


def test_the_frame_behind_a_symbol_is_in_the_store() -> None:
    store = ArrayStore()
    row = {"service": "shop", "symbol": "search.find", "time": START, "name": "search.find(int)"}
    store.insert("symbols", {name: [value] for name, value in row.items()})
    store.insert("ledger", ledger_columns(dropped_entries(SCAN)))
    assert case_in_store(store, DROPPED, {}).frame == "search.find(int)"
    assert frame_of(store, "shop", SeriesKey("subroutine", "cart.tax")) == ""
    assert frame_of(store, "shop", SeriesKey("endpoint", "search.find")) == ""


def test_a_reported_one_has_its_suspects_and_what_followed() -> None:
    (entry,) = reported_entries(SCAN)
    story = explain(entry, event=regression_event(REGRESSION, SCAN), updates=[update_event(GONE)])
    assert (story.reported, story.outcome) == (True, "It was reported.")
    assert story.suspects == ("f67ada14f Round <b>twice</b> by Ada, score 0.90",)
    assert story.later == ("resolved since 2023-11-14 22:14:50 UTC: 10.1 %, 2% of the change",)
    assert all(step.passed for step in story.steps)


def test_what_was_announced_of_it_is_a_fact() -> None:
    (entry,) = reported_entries(SCAN)
    said = Silence(
        "e1", "shop", "expected", START, START, owner="Ada", subroutine="cart.*", cost=0.001, reason="tax"
    )
    found = replace(REGRESSION, silences=(AppliedSilence(said, 0.1),))
    story = explain(entry, event=regression_event(found, SCAN))
    assert dict(story.facts)["expected"] == "e1, of cart.*, 0.1 % announced, 10 % taken, by Ada, tax"
    muted = replace(said, id="m1", kind="muted", cost=0.0, end=START + 60, subroutine="", reason="")
    story = explain(entry, event=regression_event(replace(found, silences=(AppliedSilence(muted),)), SCAN))
    assert dict(story.facts)["muted"] == "m1, of whatever it is about, by Ada, until 2023-11-14 22:14 UTC"


def test_what_was_silenced_is_explained_from_the_ledger_alone() -> None:
    decision = Decision("muted", False, code="muted", subjects=("m1", "ada"))
    (entry,) = dropped_entries(replace(SCAN, candidates=(), dropped=(Dropped(FOUND, decision),)))
    assert explain(entry).outcome == "Step muted dropped it: muted by ada (m1)."


def test_a_suspected_flip_has_what_it_switches_beside_it() -> None:
    (entry,) = reported_entries(SCAN)
    flip = replace(CHANGE, id="flip-17", title="Turn on new_tax", author="", gates=("new_tax",))
    found = replace(REGRESSION, suspects=(Suspect(flip, 0.9, {}, (CHANGE,)),))
    story = explain(entry, event=regression_event(found, SCAN))
    text = "flip-17 Turn on new_tax, score 0.90; it switches f67ada14f Round <b>twice</b>"
    assert story.suspects == (text,)


DOMAINS = (
    DomainDecision("callers: cart.pay", "rose", 0.2, 0.26, 0.98, 0.5),
    DomainDecision("module: cart", "new", 0.0, 0.2, 1.0, 0.5),
    DomainDecision("class: cart.Tax", "shifted", 0.3, 0.301, 0.02, 0.5),
)


def test_a_cost_shift_is_explained_by_its_domains() -> None:
    decision = Decision("cost_shift", False, 0.02, 0.5, "shifted", ("class: cart.Tax",))
    shifted = Dropped(replace(LOST, domains=DOMAINS), decision)
    (entry,) = dropped_entries(replace(SCAN, dropped=(shifted,)))
    story = explain(entry)
    assert story.outcome == "Step cost_shift dropped it: cost shift: class: cart.Tax."
    assert story.domains == (
        "class: cart.Tax (30 % → 30.1 %) did not rise with it: the cost came from within; "
        "2% of the rise that a regression brings, against 50%",
        "callers: cart.pay (20 % → 26 %) rose with it: the cost is new; "
        "98% of the rise that a regression brings, against 50%",
        "module: cart (0 % → 20 %) did not exist before: there was no cost in it to move",
    )


def test_of_many_domains_the_first_are_reported() -> None:
    many = tuple(replace(DOMAINS[0], domain=f"class: c{n}") for n in range(30)) + DOMAINS[2:]
    (entry,) = reported_entries(replace(SCAN, candidates=(replace(FOUND, domains=many),)))
    domains = explain(entry).domains
    assert domains[0].startswith("class: cart.Tax")
    assert (len(domains), domains[-1]) == (9, "and 23 more")


@pytest.mark.parametrize(
    ("alteration", "output"),
    [
        pytest.param({"grown": True}, "escalated since", id="escalated"),
        pytest.param({"joined": 2}, "joined by j0, j1 since", id="joined"),
        pytest.param(
            {"grown": True, "joined": 9}, "escalated, joined by j0, j1, j2 and 6 more since", id="both"
        ),
    ],
)
def test_an_update_says_what_it_is_about(alteration: dict[str, int], output: str) -> None:
    update = replace(
        GONE,
        kind="updated",
        escalated=replace(FOUND, before=0.16, after=0.2) if alteration.get("grown") else None,
        joined=tuple(replace(FOUND, metric=f"j{n}") for n in range(alteration.get("joined", 0))),
    )
    (entry,) = reported_entries(SCAN)
    (later,) = explain(entry, updates=[update_event(update)]).later
    assert later.startswith(output)


def test_a_metric_has_its_own_unit_and_may_fall() -> None:
    fall = replace(FOUND, metric_kind="service", metric="throughput", before=1500.0, after=1312.5)
    (entry,) = reported_entries(replace(SCAN, candidates=(fall,)))
    story = explain(entry)
    assert story.headline == "throughput fell from 1500 to 1312.5"
    assert dict(story.facts)["change"].startswith("-187.5 (-12.5%) at")


@pytest.mark.parametrize(
    ("chances", "text"),
    [
        ((0.62, 0.31), "GET /a 62% or GET /b 31%"),
        pytest.param((), "GET /a or GET /b", id="of a former version"),
    ],
)
def test_requests_that_cost_more_are_a_fact(chances: tuple[float, ...], text: str) -> None:
    costlier = CostlierRequests("GET /a", "v2", "v1", 0.02, 0.004, ("GET /b",), chances)
    risen = replace(FOUND, metric_kind="service", metric="cpu", passed=(costlier.decision(),))
    (entry,) = reported_entries(replace(SCAN, candidates=(risen,)))
    assert dict(explain(entry).facts)["requests"] == text


def test_what_was_not_there_before_is_new() -> None:
    (entry,) = reported_entries(replace(SCAN, candidates=(replace(FOUND, before=0.0),)))
    assert "(new)" in dict(explain(entry).facts)["change"]


@pytest.mark.parametrize("name", FUNNEL)
def test_every_step_says_what_it_asks(name: str) -> None:
    (entry,) = dropped_entries(replace(SCAN, dropped=(build_dropped(LOST, name, 3.0, 2.0, "it was so"),)))
    step = explain(entry).steps[-1]
    assert step.asks.endswith(("?", ")"))
    assert re.fullmatch(r"3 against 2 \(.+\)", step.numbers)


def test_a_step_of_another_version_is_reported_all_the_same() -> None:
    lost = build_dropped(LOST, "astrology", 3.0, 2.0, "Mercury")
    (entry,) = dropped_entries(replace(SCAN, dropped=(lost,)))
    step = explain(entry).steps[-1]
    assert (step.asks, step.numbers, step.answer) == ("", "3 against 2", "Mercury")


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (1e-9, "1e-09"), (0.5, "0.5"), (1234.5678, "1235"), (1e9, "1,000,000,000")],
)
def test_numbers_have_the_digits_that_one_compares(value: float, text: str) -> None:
    assert number(value) == text


@pytest.mark.e2e
def test_the_ledger_in_the_store_is_reported_and_drawn(
    shared_store: Store, store_dsn: str, service_name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scan = replace(SCAN, service=service_name)
    level = np.where(np.arange(100) < 60, 100, 160)
    rows = [("cart.tax", START + second, int(count)) for second, count in enumerate(level)]
    shared_store.insert("gcpu", gcpu(service_name, rows))
    shared_store.insert("totals", totals(service_name, [(START + second, 1000) for second in range(100)]))
    stage = RootcauseStage(store=shared_store, workloads=load_workloads(["live"]))
    stage.handle([Record("unique", 0, 0, scan)])
    reported, dropped = (regression_id(service_name, "live", c, SCAN.end) for c in (FOUND, LOST))
    flags = ["--store", store_dsn]

    assert run(["why", "--service", service_name, *flags]) == 0
    assert {line.split()[0] for line in capsys.readouterr().out.splitlines()} == {reported[:12], dropped[:12]}
    assert run(["why", reported[:12], "-o", str(tmp_path / "why.html"), *flags]) == 0
    out = capsys.readouterr().out
    assert "It was reported." in out
    assert "▲ 2023-11-14 22:14:20 UTC" in out
    assert 'id="figure-series"' in (tmp_path / "why.html").read_text(encoding="utf-8")
    assert run(["why", dropped, *flags]) == 0
    assert "Step threshold dropped it" in capsys.readouterr().out
    assert run(["why", "0123456789", *flags]) == 2
    assert "no candidate '0123456789'" in capsys.readouterr().err


@pytest.mark.e2e
def test_an_event_outlives_its_line_of_the_ledger(
    shared_store: Store, store_dsn: str, service_name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also one from before there was a ledger, and the id of what followed."""
    identity = regression_id(service_name, "live", FOUND, SCAN.end)
    old = replace(REGRESSION, id=identity, service=service_name)
    event = regression_event(old)
    del event["data"]["passed"]
    columns: dict[str, Any] = {
        **{"id": identity, "service": service_name, "workload": "live", "metric_kind": "subroutine"},
        **{"metric": "cart.tax", "time": FOUND.change_time, "detected_time": SCAN.end, "before": 0.1},
        **{"after": 0.16, "delta": 0.06, "p_value": 0.0, "event": orjson.dumps(event).decode()},
    }
    shared_store.insert("regressions", {name: [value] for name, value in columns.items()})
    gone = replace(GONE, service=service_name, regression=OpenRegression(identity, FOUND))
    output = update_event(gone)
    update: dict[str, Any] = {
        **{"id": output["id"], "type": "resolved", "regression": identity, "service": service_name},
        **{"workload": "live", "metric_kind": "subroutine", "metric": "cart.tax", "time": gone.time},
        **{"before": 0.1, "after": 0.16, "level": 0.101, "share_remaining": 0.0},
        "event": orjson.dumps(output).decode(),
    }
    shared_store.insert("updates", {name: [value] for name, value in update.items()})

    for asked in (identity, output["id"]):
        assert run(["why", asked, "--store", store_dsn]) == 0
        out = capsys.readouterr().out
        assert "cart.tax rose from 10 % to 16 %" in out
        assert "history 30s, analysis 30s, extended 5s" in out
        assert "resolved since" in out


def test_scans_that_could_not_judge_are_listed(
    shared_store: Store, store_dsn: str, service_name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    whose: dict[str, list[Any]] = {
        "service": [service_name] * 2,
        "workload": ["live"] * 2,
        "time": [START, START + 5],
    }
    numbers: dict[str, list[Any]] = {
        "code": ["windows_empty"] * 2,
        "series": [8, 9],
        "value": [2.0, 1.0],
        "bound": [3.0, 3.0],
    }
    shared_store.insert("unjudged", {**whose, **numbers})
    assert run(["why", "--service", service_name, "--store", store_dsn]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert f"{service_name} live 2 scans could not judge; the last, " in out
    assert "9 series: windows_empty: 1 of the windows could begin or hold a change; 3 are needed" in out
