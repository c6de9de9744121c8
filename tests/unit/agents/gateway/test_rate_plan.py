"""Planned rates: the lowest that is enough, within bounds, changed seldom; and those of a fleet."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from agents.gateway.intake import Rules
from agents.gateway.rate_plan import FALL_S, RATES_HZ, RISE_S, Need, RatePlan, plan_rate, target_of
from agents.host.fleet import AgentStatus, ServicePlan, encode_status
from agents.host.fleet.status import SILENT_S, decode_rates, decode_view
from agents.sampling.rates.policy import samples_needed
from pipeline.model.errors import ConfigError
from pipeline.settings.workloads import load_workloads
from tests.unit.agents.host.fleet.support import STATUS, FleetBench

SMALL = load_workloads(["frontfaas-large", "frontfaas-small"])
NEEDED = samples_needed(0.00005, SMALL)


@pytest.mark.parametrize(
    ("need", "rate_hz", "reason"),
    [
        pytest.param(Need(3.0), 3.0, "enough", id="a step"),
        pytest.param(Need(3.1), 5.0, "enough", id="the next step"),
        pytest.param(Need(1e-9), 1 / 60, "slowest", id="a large fleet"),
        pytest.param(Need(68.0), 67.0, "fastest", id="a small service"),
        pytest.param(Need(math.inf), 67.0, "fastest", id="an idle service"),
        pytest.param(Need(60.0, 20.0), 17.0, "budget", id="a small budget"),
        pytest.param(Need(60.0, 1e-9), 1 / 60, "budget", id="no budget"),
        pytest.param(Need(3.0, 4.9), 3.0, "enough", id="a budget that is enough"),
    ],
)
def test_the_lowest_rate_that_is_enough(need: Need, rate_hz: float, reason: str) -> None:
    found_hz, found_reason = target_of(need)
    assert found_hz == pytest.approx(rate_hz)
    assert found_reason == reason


@pytest.mark.parametrize(
    ("needs", "rates"),
    [
        pytest.param([(0, 3.0), (60, 9.0), (59 + RISE_S, 9.0)], [3, 3, 3], id="not yet more"),
        pytest.param([(0, 3.0), (60, 9.0), (60 + RISE_S, 9.0)], [3, 3, 9], id="more"),
        pytest.param([(0, 3.0), (60, 9.0), (99, 3.0), (60 + RISE_S, 9.0)], [3, 3, 3, 3], id="a restart"),
        pytest.param([(0, 9.0), (60, 3.0), (59 + FALL_S, 3.0)], [9, 9, 9], id="not yet less"),
        pytest.param([(0, 9.0), (60, 3.0), (60 + FALL_S, 1.0)], [9, 9, 1], id="less and less"),
        pytest.param(
            [(h * 3600.0, 3.0 if 8 <= h % 24 < 20 else 9.0) for h in range(72)], [9] * 72, id="hours of a day"
        ),
        pytest.param([(0, 5.0), (60, 9.0), (600, 3.0), (700, 9.0)], [5, 5, 5, 5], id="less between"),
    ],
)
def test_rates_change_seldom(needs: list[tuple[float, float]], rates: list[float]) -> None:
    plan: RatePlan | None = None
    found = []
    for now, enough_hz in needs:
        plan = plan_rate(plan, Need(enough_hz), now)
        found.append(plan.rate_hz)
    assert found == rates


class Controller:
    """A gateway with rules, and hosts that report to it."""

    def __init__(self, folder: Path, rule: str = "{service: shop}") -> None:
        path = folder / "fleet.yaml"
        path.write_text(f"rules: [{rule}]")
        self.bench = FleetBench(path, Rules(), workloads=SMALL)

    def hear(self, hosts: int, cpus: float = 1.0, **changes: Any) -> dict[str, float]:
        """Have so many hosts report; return what the last is answered."""
        demand = {"threshold": None, "cpus": cpus, "rate_hz": 0.0, **changes.pop("demand", {})}
        answer = b""
        for host in range(hosts):
            status = {**STATUS.model_dump(), "host": str(host), "planned": {"shop": demand}, **changes}
            answer = self.bench.fleet.take(encode_status(AgentStatus.model_validate(status)))
        return decode_rates(answer).rates_hz

    def after(self, seconds: float, hosts: int, **changes: Any) -> dict[str, float]:
        """Have hosts report once a minute for a while; return the last answer."""
        found: dict[str, float] = {}
        for _ in range(round(seconds / 60)):
            self.bench.now += 60
            found = self.hear(hosts, **changes)
        return found

    @property
    def plan(self) -> ServicePlan:
        """The plan for the service."""
        return decode_view(self.bench.fleet.view()).plans["shop"]


@pytest.fixture
def fleet(tmp_path: Path) -> Controller:
    return Controller(tmp_path)


def test_rates_follow_from_the_hosts_that_are_seen(fleet: Controller) -> None:
    assert fleet.after(120, 40, cpus=2.0) == {}  # not all have been heard yet
    rates = fleet.after(120, 40, cpus=2.0)
    assert rates == {"shop": min(rate for rate in RATES_HZ if rate >= NEEDED / 80)}
    plan = fleet.plan
    assert (plan.hosts, plan.cpus, plan.threshold, plan.reason) == (40, 80, 0.00005, "enough")
    assert plan.enough_hz == pytest.approx(NEEDED / 80)
    fleet.after(SILENT_S + 120, 10, cpus=2.0)  # the others end
    assert (fleet.plan.hosts, fleet.plan.rate_hz) == (10, rates["shop"])
    changes = fleet.plan.changes
    assert changes is not None
    assert changes - fleet.bench.now <= RISE_S
    later = fleet.after(RISE_S, 10, cpus=2.0)
    assert later == {"shop": min(rate for rate in RATES_HZ if rate >= NEEDED / 20)}


def test_busy_processors_are_averaged(fleet: Controller) -> None:
    fleet.after(3600, 4, cpus=1.0)
    fleet.after(3600, 4, cpus=3.0)
    assert fleet.plan.cpus == pytest.approx(8.0, rel=0.1)


@pytest.mark.parametrize(
    ("said", "threshold"),
    [
        pytest.param(0.001, 0.001, id="of the rule"),
        pytest.param(None, 0.00005, id="the default"),
        pytest.param(0.5, 0.00005, id="of other rules"),
    ],
)
def test_thresholds(tmp_path: Path, said: float | None, threshold: float) -> None:
    fleet = Controller(tmp_path, "{threshold: 0.1 %}")
    fleet.after(240, 2, demand={"threshold": said})
    assert fleet.plan.threshold == threshold


@pytest.mark.parametrize(
    ("hosts", "changes", "reason"),
    [
        pytest.param(300, {"demand": {"rate_hz": 9.0}}, None, id="what hosts follow after a restart"),
        pytest.param(
            3, {"rates_hz": {"shop": 19.0}, "cost_share": 0.02, "budget": 0.01}, "budget", id="the budget"
        ),
    ],
)
def test_what_else_bounds_a_rate(
    fleet: Controller, hosts: int, changes: dict[str, Any], reason: str | None
) -> None:
    assert fleet.after(240, hosts, **changes) == {"shop": 9.0}
    assert fleet.plan.reason == reason if reason else fleet.plan.target_hz < 9


def test_a_threshold_that_nothing_reports_is_refused(fleet: Controller, tmp_path: Path) -> None:
    before = fleet.bench.fleet.rules
    fleet.bench.serve_rules("rules: [{threshold: 0.001 %}]")
    assert fleet.bench.fleet.rules is before
    with pytest.raises(ConfigError, match=r"fleet.yaml: rules.0.threshold: no workload reports so small"):
        Controller(tmp_path, "{threshold: 0.001 %}")


def test_hosts_of_an_earlier_version_plan_nothing(fleet: Controller) -> None:
    fleet.bench.now += SILENT_S
    earlier = AgentStatus.model_validate(STATUS.model_dump(exclude={"planned", "kernels"}))
    assert fleet.bench.fleet.take(encode_status(earlier)) == b""
