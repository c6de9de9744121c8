"""Suspects of a regression, over every store."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pipeline.analysis.rootcause.evidence import Cause, find_causes
from pipeline.analysis.rootcause.gates import Gates
from pipeline.messages.events import decode_event
from pipeline.messages.records import columns_of
from pipeline.model import Candidate, Record, Scan, Suspect
from pipeline.settings.workloads import Workload
from pipeline.stages import rootcause
from pipeline.stages.gather.changes import HISTORY_S, recent_changes
from pipeline.stages.gather.suspects import CauseEvidence, cause_config
from pipeline.stages.rootcause import RootcauseStage
from pipeline.storage.interface import CountQuery, RowQuery, SeriesQuery, Store
from tests.contract.rows import change, gcpu, metrics, stacks, totals
from tests.contract.stages.stores import every_store
from tests.support.builders import build_dropped
from tests.support.trial_verdicts import verdict_row

STEP_S = 600.0
START = 1_700_000_400.0
WINDOWS = 120
AT = 90  # first window of the new regime
CHANGED = START + AT * STEP_S
END = START + WINDOWS * STEP_S
SAMPLES = 10_000
WORKLOAD = Workload.model_validate(
    {
        **{"name": "hours", "resolution": "10m", "rerun_interval": "1h", "historical": "10h"},
        **{"analysis": "10h", "threshold": {"absolute": 0.001}},
    }
)
SLOW = Candidate("subroutine", "shop.cart.total", "short_term", CHANGED, 0.1, 0.15, 1e-9, 40.0)
PATHS: dict[tuple[str, ...], tuple[int, int]] = {  # stack → its samples before and after, of 10,000 a window
    ("main", "shop.handle", "shop.cart.total"): (1000, 1500),
    ("main", "shop.handle", "shop.cart.total", "shop.tax.rate"): (200, 200),
    ("main", "shop.idle"): (8000, 7500),
    **{("main", f"shop.other{i}.work"): (20, 20) for i in range(40)},
}


@pytest.fixture
def service(store: Store, service_name: str) -> str:
    """A service whose shop.cart.total costs more from AT on."""
    rng = np.random.default_rng(1)
    counted: list[tuple[tuple[str, ...], float, int]] = []
    held: list[tuple[str, float, int]] = []
    for window in range(WINDOWS):
        time = START + window * STEP_S
        drawn = {path: int(rng.poisson(levels[window >= AT])) for path, levels in PATHS.items()}
        counted += [(path, time, count) for path, count in drawn.items()]
        cart = sum(count for path, count in drawn.items() if "shop.cart.total" in path)
        held.append(("shop.cart.total", time, cart))
    store.insert("stacks", stacks(service_name, counted, width=STEP_S))
    store.insert("gcpu", gcpu(service_name, held))
    store.insert("totals", totals(service_name, [(START + w * STEP_S, SAMPLES) for w in range(WINDOWS)]))
    return service_name


def scan(service: str, *candidates: Candidate, dropped: int = 0) -> Scan:
    lost = [
        Candidate("subroutine", f"x{i}", "short_term", CHANGED, 0.1, 0.2, 0.01, 4.0) for i in range(dropped)
    ]
    return Scan(
        service=service,
        workload="hours",
        start=START,
        analysis_start=START + 60 * STEP_S,
        analysis_end=END,
        end=END,
        series=1,
        candidates=candidates,
        dropped=tuple(build_dropped(one, "threshold", 1.0, 2.0, "") for one in lost),
    )


def deploy(store: Store, service: str, name: str, windows: float, **given: Any) -> None:
    """Deploy a change some windows after the regression, before it where negative."""
    store.insert("changes", change(service, name, CHANGED + windows * STEP_S, **{"subroutines": [], **given}))


def deploy_others(store: Store, service: str) -> None:
    for number in range(6):
        name = f"shop.other{number}.work"
        deploy(store, service, f"other-{number}", -8 * number - 0.2, subroutines=[name], title=f"Tidy {name}")


def causes(
    store: Store, found: Scan, workload: Workload = WORKLOAD, gates: Gates | None = None
) -> list[Cause]:
    """What the stage finds about each candidate of a scan."""
    gathered = CauseEvidence(store, gates).gather(found, workload, recent_changes(store, found))
    return [cause for cluster in gathered for cause in find_causes(cluster, cause_config(workload))]


def find(store: Store, service: str, gates: Gates | None = None) -> tuple[Suspect, ...]:
    (found,) = causes(store, scan(service, SLOW), gates=gates)
    return found.suspects


def test_the_change_of_the_regressed_code_is_suspected(store: Store, service: str) -> None:
    deploy_others(store, service)
    deploy(store, service, "cause", -0.3, subroutines=["shop.cart.total"], content="+ diff")
    (suspect, *_) = find(store, service)
    assert suspect.change.id == "cause"
    assert suspect.score > 0.8
    assert suspect.factors["attribution"] == pytest.approx(1.0, abs=0.05)
    assert suspect.factors["recency"] > 0.5
    assert suspect.change.content == "", "an event is no place for a diff"


def test_changes_that_had_no_part_in_it_are_not(store: Store, service: str) -> None:
    deploy_others(store, service)
    assert find(store, service) == ()


@every_store
def test_a_change_that_every_host_announces_counts_once(store: Store, service: str) -> None:
    for number in range(20):
        deploy(store, service, f"other-{number}", -2 - 2 * number, title=f"Tidy page {number}", files=[])
    described = {"title": "Rounding of shop.cart.total", "files": []}
    deploy(store, service, "cause", -0.3, **described)
    alone = find(store, service)
    assert alone[0].change.id == "cause"
    for host in range(60):
        deploy(store, service, "cause", -0.29 + 0.001 * host, **described)
    assert find(store, service) == alone


@pytest.mark.parametrize(
    ("described", "suggested"),
    [
        pytest.param({"files": ["docs/x.md", "README"], "content": "+ hello"}, False, id="documentation"),
        pytest.param({"files": ["tests/test_cart.py"]}, False, id="tests"),
        pytest.param({"files": ["shop/cart.php"]}, True, id="code of which nothing is known"),
        pytest.param({"files": []}, True, id="a bare deployment"),
        pytest.param({"files": [], "title": " "}, False, id="nothing at all"),
        pytest.param({"files": ["docs/x.md"], "gates": ["new_cart"]}, True, id="a gate"),
        pytest.param({"subroutines": ["shop.cart.<module>"]}, True, id="a constant, which anything may read"),
        pytest.param({"subroutines": ["shop.cart"]}, True, id="an attribute of a class in the stacks"),
        pytest.param(
            {"subroutines": ["shop.cart.<module>", "shop.idle"]}, False, id="code that did not rise"
        ),
        pytest.param({"subroutines": ["shop.gone"]}, False, id="code that never ran"),
    ],
)
def test_what_is_reported_the_only_change_before_a_regression(
    store: Store, service: str, described: dict[str, Any], suggested: bool
) -> None:
    deploy(store, service, "only", -0.3, **{"title": "Release 1.5", **described})
    assert [suspect.change.id for suspect in find(store, service)] == ["only"] * suggested


@pytest.mark.parametrize(("file", "suggested"), [("docs/x.md", False), ("shop/cart.php", True)])
@every_store
def test_documentation_is_no_suspect_of_a_metric_without_stacks(
    store: Store, service: str, file: str, suggested: bool
) -> None:
    rng = np.random.default_rng(2)
    points = [("latency", START + w * STEP_S, 1.0 + (w >= AT) + 0.1 * rng.normal()) for w in range(WINDOWS)]
    store.insert("metrics", metrics(service, points, setup=0))
    deploy(store, service, "only", -0.3, title="Fix a typo", files=[file])
    latency = Candidate("service", "latency", "short_term", CHANGED, 1.0, 2.0, 1e-9, 40.0)
    workload = WORKLOAD.model_copy(update={"series": "service"})
    (found,) = causes(store, scan(service, latency), workload)
    assert [suspect.change.id for suspect in found.suspects] == ["only"] * suggested


def test_without_changes_there_are_no_suspects(store: Store, service: str) -> None:
    assert find(store, service) == ()


def test_a_flip_is_suspected_through_the_code_behind_its_gate(store: Store, service: str) -> None:
    deploy_others(store, service)
    deploy(store, service, "code", -85, subroutines=["shop.cart.total"], gates=["new_cart"])
    deploy(store, service, "flip", -0.3, gates=["new_cart"], files=["config/new_cart.json"])
    (first, *_) = find(store, service)
    assert first.change.id == "flip"
    assert [change.id for change in first.switches] == ["code"]


@every_store
def test_a_flip_is_suspected_through_a_diff_that_names_its_gate(store: Store, service: str) -> None:
    deploy_others(store, service)
    deploy(store, service, "code", -85, subroutines=["shop.cart.total"], content='+if on("new_cart"):')
    deploy(store, service, "flip", -0.3, gates=["new_cart"], files=[])
    (first, *_) = find(store, service)
    assert first.change.id == "flip"
    assert first.factors["attribution"] == pytest.approx(1.0, abs=0.05)
    assert [(change.id, change.content) for change in first.switches] == [("code", "")]


def test_a_flip_is_suspected_through_the_mapping(store: Store, service: str) -> None:
    deploy_others(store, service)
    deploy(store, service, "flip", -0.3, gates=["new_cart"], files=[])
    assert not any("attribution" in suspect.factors for suspect in find(store, service))
    (first, *_) = find(store, service, gates={"new_cart": ["shop.cart.total"]})
    assert first.change.id == "flip"
    assert first.factors["attribution"] == pytest.approx(1.0, abs=0.05)


@every_store
def test_a_flip_correlates_with_its_setup_metric(store: Store, service: str) -> None:
    deploy_others(store, service)
    deploy(store, service, "flip", -0.3, gates=["new_cart"], files=[])
    points = [
        (name, START + w * STEP_S, float(w >= AT) * share)
        for w in range(WINDOWS)
        for name, share in (("setup.gate.new_cart", 1.0), ("setup.gate.old", 0.0))
    ]
    store.insert("metrics", metrics(service, points, setup=1))
    (suspect, *_) = find(store, service)
    assert suspect.change.id == "flip"
    assert suspect.factors["correlation"] > 0.9


@pytest.mark.parametrize("metric", ["servers", "smidgen.refused_points"])
def test_a_setup_metric_that_no_change_sets_accuses_none(store: Store, service: str, metric: str) -> None:
    deploy_others(store, service)
    words = {"title": f"Fix a typo about {metric}", "content": "+ # smidgen.refused_points of these servers"}
    deploy(store, service, "innocent", -1.3, subroutines=["shop.other5.work"], **words)
    points = [(metric, START + w * STEP_S, 100.0 + 30.0 * (w >= AT)) for w in range(WINDOWS)]
    store.insert("metrics", metrics(service, points, setup=1))
    assert find(store, service) == ()


def test_a_change_point_that_is_hours_early_does_not_hide_the_root_cause(store: Store, service: str) -> None:
    deploy_others(store, service)
    deploy(store, service, "cause", -0.3, subroutines=["shop.cart.total"])
    early = Candidate("subroutine", SLOW.metric, "short_term", CHANGED - 12 * STEP_S, 0.1, 0.15, 1e-9, 40.0)
    (found,) = causes(store, scan(service, early))
    assert [suspect.change.id for suspect in found.suspects][:1] == ["cause"]


@every_store
def test_code_that_is_older_than_the_history_is_forgotten(store: Store, service: str) -> None:
    deploy_others(store, service)
    old = -(HISTORY_S / STEP_S) - WINDOWS
    deploy(store, service, "code", old, subroutines=["shop.cart.total"], gates=["new_cart"])
    deploy(store, service, "flip", -0.3, gates=["new_cart"], files=[])
    assert not any("attribution" in suspect.factors for suspect in find(store, service))


@every_store
def test_a_series_and_stacks_that_are_gone_are_no_error(store: Store, service: str) -> None:
    deploy_others(store, service)
    lost = Candidate("subroutine", "gone", "long_term", CHANGED, 0.1, 0.2, 1e-9, 40.0)
    latency = Candidate("service", "latency", "short_term", CHANGED, 0.1, 0.2, 1e-9, 40.0)
    found = causes(store, scan(service, lost, SLOW))
    assert len(found) == 2
    service_level = WORKLOAD.model_copy(update={"series": "service"})
    (one,) = causes(store, scan(service, latency), service_level)
    assert one.stacks == ()


def test_the_changed_stacks_are_reported(store: Store, service: str) -> None:
    (found,) = causes(store, scan(service, SLOW))
    first = found.stacks[0]
    assert "shop.cart.total" in first.stack
    assert first.before == pytest.approx(0.10, abs=0.01)
    assert first.after == pytest.approx(0.15, abs=0.01)


@every_store
def test_the_newest_number_of_servers_counts(store: Store, service: str) -> None:
    finder = CauseEvidence(store)
    assert finder.servers(scan(service, SLOW)) is None
    points = [("servers", START + 5 * STEP_S, 100.0), ("servers", START + 80 * STEP_S, 120.0)]
    store.insert("metrics", metrics(service, [*points, ("servers", END + 1.0, 999.0)], setup=1))
    assert finder.servers(scan(service, SLOW)) == 120.0


@every_store
def test_of_two_changes_of_the_same_code_the_one_whose_trials_failed_comes_first(
    store: Store, service: str
) -> None:
    deploy_others(store, service)
    for name in ("change-a", "change-b"):
        deploy(store, service, name, -0.3, subroutines=["shop.cart.total"])
    assert [suspect.factors.get("trial") for suspect in find(store, service)] == [None, None]
    store.insert("trial_verdicts", columns_of([verdict_row(service, "change-a", CHANGED - 3600.0)]))
    (first, *others) = find(store, service)
    assert first.change.id == "change-a"
    assert first.factors["trial"] == pytest.approx(np.log(0.9 / 0.03))
    assert all(first.score > 5 * other.score for other in others)


class Counting:
    """A store that counts how often each verb is called: of which table or source, or which counts."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.calls: list[tuple[str, str]] = []

    def __getattr__(self, verb: str) -> Any:
        def call(query: str | RowQuery | SeriesQuery | CountQuery[Any], *rest: Any, **more: Any) -> Any:
            if isinstance(query, str):  # the table of an insert
                subject = query
            else:
                field = {RowQuery: "table", SeriesQuery: "source"}.get(type(query))
                subject = getattr(query, field) if field else type(query).__name__
            self.calls.append((verb, subject))
            return getattr(self._store, verb)(query, *rest, **more)

        return call


def test_a_scan_asks_once_for_what_its_candidates_share(store: Store, service: str) -> None:
    deploy_others(store, service)
    counting: Any = Counting(store)
    many = [
        Candidate("subroutine", name, "short_term", CHANGED, 0.1, 0.15, 1e-9, 40.0)
        for name in ("shop.cart.total", "shop.handle", "main", "shop.idle")
    ]
    causes(counting, scan(service, *many))
    assert sorted(counting.calls) == [
        ("counts", "RequestQuery"),
        ("counts", "StackQuery"),
        ("counts", "StrataQuery"),
        ("rows", "changes"),
        ("rows", "trial_verdicts"),
        ("series", "gcpu"),
        ("series", "setup"),
    ]


# The stage


@every_store
def test_an_event_has_suspects_with_factors(store: Store, service: str) -> None:
    deploy_others(store, service)
    deploy(store, service, "cause", -0.3, subroutines=["shop.cart.total"])
    stage = RootcauseStage(store=store, workloads=[WORKLOAD])
    (event,) = stage.handle([Record("unique", 0, 0, scan(service, SLOW))])
    first = decode_event(event.value)["data"]["root_causes"][0]
    assert first["change"]["id"] == "cause"
    assert set(first["factors"]) == {"attribution", "recency", "text"}
    again = RootcauseStage(store=store, workloads=[WORKLOAD])
    assert again.handle([Record("unique", 0, 0, scan(service, SLOW))]) == [event], "a replay changes nothing"


def test_a_factor_that_is_left_out_is_in_no_event(store: Store, service: str) -> None:
    deploy(store, service, "cause", -0.3, subroutines=["shop.cart.total"])
    stage = RootcauseStage(store=store, workloads=[WORKLOAD], without=frozenset({"factor_text"}))
    (event,) = stage.handle([Record("unique", 0, 0, scan(service, SLOW))])
    (suspect,) = decode_event(event.value)["data"]["root_causes"]
    assert set(suspect["factors"]) == {"attribution", "recency"}


@every_store
def test_the_ledger_is_written_in_parts(store: Store, service: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rootcause, "LEDGER_ROWS", 3)
    counting: Any = Counting(store)
    stage = RootcauseStage(store=counting, workloads=[WORKLOAD])
    stage.handle([Record("unique", 0, 0, scan(service, dropped=7))])
    assert counting.calls.count(("insert", "ledger")) == 3
    assert len(store.rows(RowQuery("ledger", service, END - 1e6, END + 1e6))) == 7
