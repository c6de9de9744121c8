"""Suspects of requests that cost more in a new release, by the routes of changes and by stacks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pipeline.messages.inputs import encode_change
from pipeline.messages.scans import scan_messages
from pipeline.model import Change, CostlierRequests, MetricKind, RouteReach, Scan
from pipeline.settings.workloads import RELEASE_COSTS
from pipeline.storage.interface import Store
from tests.contract.rows import stacks
from tests.contract.stages.stores import every_store
from tests.contract.stages.test_releases import BEGUN, PERIOD_S, Releases, cpu, gcpu_scan, messages
from tests.support.builders import build_candidate

NEW = 70
NEAR = RouteReach("GET /b", share=0.5, nearness=1.0, rank=1, chance=0.002)
FAR = RouteReach("GET /b")
OTHERS = (RouteReach("GET /a", share=0.5, nearness=1.0, rank=1, chance=0.002), RouteReach("GET /c"))


@pytest.fixture
def subject(store: Store, service_name: str) -> Releases:
    return Releases(store, service_name)


def deploy(subject: Releases, name: str, *routes: RouteReach, subroutine: str = "") -> None:
    """Announce a commit of the new release."""
    change = Change(
        name,
        subject.service,
        BEGUN,
        f"Change {name}",
        files=(f"{name}.py",),
        subroutines=(subroutine or f"{name}.work",),
        routes=routes,
    )
    subject.flow.send("changes", [encode_change(change)])


def suspects(subject: Releases) -> list[str]:
    subject.run(messages(subject.service, NEW), cpu(subject.service, NEW, 0.3))
    (event,) = subject.events
    causes: list[dict[str, Any]] = event["data"]["root_causes"]
    assert all("routes" not in each["change"] for each in causes)
    return [each["change"]["id"] for each in causes]


@every_store
def test_the_commit_along_the_route_is_suspected(subject: Releases) -> None:
    for number in range(20):
        deploy(subject, f"other{number}", FAR, *OTHERS)
    deploy(subject, "cause", NEAR, *OTHERS)
    assert suspects(subject) == ["cause"]


def test_the_commit_under_the_endpoint_is_suspected(subject: Releases) -> None:
    for number in range(20):
        deploy(subject, f"other{number}")
    deploy(subject, "cause", subroutine="shop.price")
    paths: dict[tuple[str, ...], int] = {
        ("main", "endpoint=GET /b", "app", "shop.b", "shop.price"): 40,
        ("main", "endpoint=GET /a", "app", "shop.a"): 40,
        **{("main", f"other{number}.work"): 10 for number in range(200)},
    }
    times = [BEGUN + PERIOD_S * period for period in range(-60, NEW, 10)]
    counted = [(path, time, many) for time in times for path, many in paths.items()]
    subject.store.insert("stacks", stacks(subject.service, counted, width=PERIOD_S))
    assert suspects(subject) == ["cause"]


def test_without_routes_and_stacks_none_of_many_is_suspected(subject: Releases) -> None:
    for number in range(21):
        deploy(subject, f"other{number}")
    assert suspects(subject) == []


@pytest.mark.parametrize(
    ("chances", "first"),
    [
        pytest.param((0.8, 0.15), "cause", id="with probabilities"),
        pytest.param((), "nearer", id="as likely, of a former version"),
    ],
)
def test_types_that_may_cost_more_count_by_their_probabilities(
    subject: Releases, chances: tuple[float, ...], first: str
) -> None:
    near_a = RouteReach("GET /a", share=0.5, nearness=0.5, rank=2, chance=0.01)
    near_b = RouteReach("GET /b", share=0.5, nearness=1.0, rank=1, chance=0.005)
    deploy(subject, "cause", near_a, RouteReach("GET /b"))
    deploy(subject, "nearer", RouteReach("GET /a"), near_b)
    for number in range(20):
        deploy(subject, f"other{number}", RouteReach("GET /a"), RouteReach("GET /b"))
    found = CostlierRequests("GET /a", "v2", "v1", 0.1, 0.01, ("GET /b",), chances)
    risen = replace(
        build_candidate("cpu", before=1.0, after=1.1, change_time=BEGUN),
        metric_kind="service",
        change_time_interval=(BEGUN, BEGUN + PERIOD_S),
        passed=(found.decision(),),
    )
    end = BEGUN + 60 * PERIOD_S
    scan = Scan(
        service=subject.service,
        workload=RELEASE_COSTS.name,
        start=BEGUN - 60 * PERIOD_S,
        analysis_start=BEGUN,
        analysis_end=end,
        end=end,
        series=1,
        candidates=(risen,),
        resolution_s=300.0,
    )
    subject.flow.forward(scan_messages("filtered", scan))
    (event,) = subject.events
    assert event["data"]["root_causes"][0]["change"]["id"] == first
    likely = {"likely": dict(zip(found.types, chances, strict=True))} if chances else {}
    assert event["data"]["requests"] == [
        {
            **{"type": "GET /a", "release": "v2", "former_release": "v1", "share": 0.1, "share_error": 0.01},
            **{"or_types": ["GET /b"], **likely},
        }
    ]


@pytest.mark.parametrize("kind", ["subroutine", "endpoint"])
@every_store
def test_what_profiles_saw_of_the_endpoint_is_one_event(subject: Releases, kind: MetricKind) -> None:
    risen = replace(
        build_candidate("GET /<any(b):page>", before=0.1, after=0.15, change_time=BEGUN),
        metric_kind=kind,
        change_time_interval=(BEGUN - 60.0, BEGUN + 60.0),
    )
    end = BEGUN + 600.0
    found = replace(gcpu_scan(subject.service, end), candidates=(risen,))
    subject.flow.forward(scan_messages("filtered", found))
    subject.run(messages(subject.service, NEW), cpu(subject.service, NEW, 0.3))
    detected, updated = subject.events
    assert detected["data"]["metric_kind"] == kind
    assert updated["data"]["joined"][0]["metric"] == "cpu"
