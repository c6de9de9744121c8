"""The agent's steps over a made-up /proc: from processes to messages, budget and rates."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from agents.host.adaptive import FASTEST_HZ, AdaptiveRates
from agents.host.agent import Edges, HostAgent
from agents.host.numbers import summary
from agents.host.rules import Condition, How, Rule
from agents.host.rules_file import HostConfig
from agents.publishing.pending import Tally
from agents.publishing.publisher import Delivery
from pipeline.messages.measurements import decode_profile
from pipeline.model import Outgoing
from tests.unit.agents.host.fake_kernel import FakeKernels
from tests.unit.agents.host.proc_tree import ProcTree

OWN = 2**22 + 5  # of nobody
NOTHING = Delivery(Tally(), Tally(), Tally())
RULES = (Rule(Condition(command=re.compile("shop")), service="shop", how=How(kernel="fake")),)


class Host:
    """An agent, the tree that it reads, and what it offers."""

    def __init__(self, folder: Path, config: HostConfig) -> None:
        self.tree = ProcTree(folder / "proc")
        self.offered: list[Outgoing] = []
        (folder / "runs").mkdir()
        edges = Edges("h1", self.tree.reader(), folder / "runs", time.time, lambda: None, 10_000)
        self.agent = HostAgent(config, edges, lambda message, _: self.offered.append(message))

    def wait(self, done: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 60
        while not done():
            assert time.monotonic() < deadline
            self.agent.publish()
            time.sleep(0.02)


@pytest.fixture
def host(tmp_path: Path, kernels: FakeKernels) -> Host:
    kernels.streams = True
    return Host(tmp_path, HostConfig(RULES, interval_s=0.2, processes=1))


def test_processes_become_messages_until_they_end(
    host: Host, pid: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    host.tree.add(pid, "python shop")
    host.agent.scan()
    host.wait(lambda: len(host.offered) > 1)
    profile = decode_profile(host.offered[0].value)
    assert (profile.service, profile.host, profile.rate_hz) == ("shop", "h1", 19)
    assert profile.frames == ("main", "run0")
    state = host.agent.state(NOTHING, 7)
    assert state.processes == {"sampled": 1, "waiting": 0, "failing": 0, "covered": 0, "passed": 0}
    assert (state.rates_hz, state.spooled_bytes) == ({"shop": 19}, 7)
    host.agent.numbers.show(state)
    samples = host.agent.numbers.samples()
    counted = {name: value for name, labels, value in samples if labels == {"service": "shop"}}
    assert counted["agent_samples_total"] >= 1
    assert counted["agent_rate_hz"] == 19
    host.tree.end(pid)
    host.agent.scan()
    assert host.agent.state(NOTHING, 0).processes["sampled"] == 0
    host.agent.stop()


def test_what_was_taken_last_is_published_after_the_end(host: Host, pid: int, kernels: FakeKernels) -> None:
    host.tree.add(pid, "python shop")
    host.agent.scan()
    while not kernels.runs:
        time.sleep(0.01)
    host.agent.stop()
    host.agent.publish()
    assert sum(int(decode_profile(each.value).counts.sum()) for each in host.offered) == kernels.runs[0].takes


def test_processes_beyond_the_bound_are_reported_once(
    host: Host, pid: int, caplog: pytest.LogCaptureFixture
) -> None:
    host.tree.add(pid, "python shop", cpu_s=9.0)
    host.tree.add(OWN + 1, "python shop")
    for _ in range(3):
        host.agent.scan()
    assert host.agent.state(NOTHING, 0).processes["waiting"] == 1
    assert [record.message for record in caplog.records] == [
        "1 processes are not sampled: more than 1 match (processes)"
    ]
    host.agent.stop()


def test_other_rules_end_what_they_do_not_take(host: Host, pid: int) -> None:
    host.tree.add(pid, "python shop")
    host.agent.scan()
    host.agent.use(HostConfig((Rule(ignore=True),), interval_s=0.2))
    host.agent.scan()
    assert host.agent.state(NOTHING, 0).processes["sampled"] == 0
    assert host.agent.state(NOTHING, 0).processes["passed"] == 1
    host.agent.stop()


def test_a_planned_rate_is_followed_while_it_runs(tmp_path: Path, kernels: FakeKernels, pid: int) -> None:
    kernels.streams = True
    hows = [How(kernel="fake", planned=True, threshold=share) for share in (None, 0.001, 0.0005)]
    conditions = [Condition(command=re.compile(f"shop {number}")) for number in range(3)]
    rules = [Rule(each, service="shop", how=how) for each, how in zip(conditions, hows, strict=True)]
    host = Host(tmp_path, HostConfig(tuple(rules), interval_s=0.2))
    host.tree.add(pid, "python shop 0", cpu_s=9.0)
    host.agent.scan()
    host.wait(lambda: bool(host.offered) and decode_profile(host.offered[-1].value).rate_hz == 19)
    assert host.agent.state(NOTHING, 0).planned["shop"].threshold is None
    host.tree.add(OWN + 1, "python shop 1", cpu_s=9.0)
    host.tree.add(OWN + 2, "python shop 2", cpu_s=9.0)
    host.agent.scan()
    host.agent.follow_plan({"shop": 8.0, "other": 1.0})
    state = host.agent.state(NOTHING, 0)
    host.wait(lambda: decode_profile(host.offered[-1].value).rate_hz == 9)  # the nearest step
    host.agent.stop()
    assert state.kernels["fake"] >= 1
    (demand,) = state.planned.values()
    assert (demand.threshold, demand.rate_hz) == (0.0005, 9)
    assert demand.cpus > 0


def test_a_rule_with_a_rate_follows_no_plan(host: Host, pid: int) -> None:
    host.tree.add(pid, "python shop")
    host.agent.scan()
    host.agent.follow_plan({"shop": 1.0})
    host.wait(lambda: bool(host.offered))
    state = host.agent.state(NOTHING, 0)
    host.agent.stop()
    assert (state.rates_hz, dict(state.planned)) == ({"shop": 19}, {})


def test_an_adaptive_rate_follows_the_samples(
    tmp_path: Path, kernels: FakeKernels, pid: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slowed(rates: AdaptiveRates) -> None:
        if "shop" in rates._profiles and rates._profiles["shop"].counts:
            rates.rates_hz["shop"] = 9.0

    monkeypatch.setattr("agents.host.agent.WINDOW_S", 0.5)
    monkeypatch.setattr(AdaptiveRates, "end_window", slowed)
    kernels.streams = True
    how = How(rate_hz=FASTEST_HZ, adaptive=True, kernel="fake")
    host = Host(tmp_path, HostConfig((Rule(service="shop", how=how),), interval_s=0.2))
    host.tree.add(pid, "python shop")
    host.agent.scan()
    host.wait(lambda: bool(host.offered) and decode_profile(host.offered[-1].value).rate_hz == 9)
    assert decode_profile(host.offered[0].value).rate_hz == FASTEST_HZ
    host.agent.stop()


def test_a_cost_beyond_the_budget_lowers_all_rates(
    host: Host, pid: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("agents.host.agent.CostMeter.share", lambda *_: 0.05)
    host.tree.add(pid, "python shop")
    host.agent.scan()
    for _ in range(2):
        host.agent.keep_budget()
    assert host.agent.state(NOTHING, 0).cost_share == 0.05
    assert (
        "takes 5.00 % of the host's CPU, its budget is 1.00 %: from now on all rates are 1/4" in caplog.text
    )
    host.wait(lambda: bool(host.offered) and decode_profile(host.offered[-1].value).rate_hz == 5)
    host.agent.stop()


def test_a_summary_is_one_line(host: Host) -> None:
    host.tree.add(OWN, "sleep")
    host.agent.scan()
    assert summary(host.agent.state(NOTHING, 0)) == (
        "processes: 1 passed; cost 0.00 % of the host's CPU, budget 1 %; waiting: 0 messages (0 samples)"
    )
