"""Where rules come from: a gateway that changes them, is away, sends wrong ones, and hears statuses."""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from agents.gateway.rate_plan import Need, plan_rate
from agents.host.fleet import FleetClient, ServiceDemand
from agents.host.fleet.rules import HostRules
from agents.host.fleet.status import SILENT_S
from agents.host.numbers import AgentState
from agents.host.rules_file import HostConfig, parse_fleet_config
from agents.host.rules_source import GatewayRules, status_of
from agents.host.service import message_queue
from agents.publishing.pending import Tally
from agents.publishing.publisher import Delivery
from pipeline.cli import run as run_command
from pipeline.cli import smidgen
from pipeline.settings.workloads import load_workloads
from tests.unit.agents.host.fleet.support import OTHER_RULE, fleet_of, served
from tests.unit.agents.host.test_service import Steps, run

STATE = AgentState(
    {"sampled": 1},
    {f"service-{i:03}": 19.0 for i in range(60)},
    0.004,
    0.01,
    Delivery(Tally(5, 50), Tally(2, 20), Tally(1, 10)),
    7,
)


@pytest.fixture(autouse=True)
def patient_client(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only who is not there does not answer, however busy the machine is."""
    monkeypatch.setattr("agents.host.fleet.client.TIMEOUT_S", 60.0)


def wait_for(is_so: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@contextmanager
def following(url: str, token: str | None = None) -> Iterator[tuple[GatewayRules, list[HostConfig]]]:
    """Follow a gateway's rules; its rules come in a list."""
    configs: list[HostConfig] = []
    source = GatewayRules(FleetClient(url, token), "web-1", ask_s=0.02, first_s=0.02)

    def take() -> None:
        if config := source.changed():
            configs.append(config)

    with closing(source):
        source.start(take)
        yield source, configs


def services(configs: list[HostConfig]) -> list[str]:
    return [config.rules[0].service for config in configs]


def test_other_rules_are_followed_and_statuses_sent(tmp_path: Path) -> None:
    bench = fleet_of(tmp_path)
    with served(bench.app) as url, following(url) as (source, configs):
        wait_for(lambda: services(configs) == ["a"])
        bench.serve_rules(OTHER_RULE)
        wait_for(lambda: services(configs) == ["a", "b"])
        source.report(STATE)
        wait_for(lambda: bench.fleet.statuses.heard(bench.now))
        (heard,) = FleetClient(url).view().agents
    assert heard.status == status_of("web-1", bench.fleet.rules.version, STATE)
    assert (heard.status.published, heard.status.dropped, heard.status.waiting) == (5, 2, 1)
    assert len(heard.status.rates_hz) == 50


def test_an_unforeseen_error_does_not_end_the_following(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench, errors, rules = fleet_of(tmp_path), [ValueError("a bug")], FleetClient.rules

    def fail_once(client: FleetClient, version: str) -> HostRules | None:
        if errors:
            raise errors.pop(0)
        return rules(client, version)

    monkeypatch.setattr(FleetClient, "rules", fail_once)
    with served(bench.app) as url, following(url) as (source, configs):
        wait_for(lambda: services(configs) == ["a"])
        assert source.tasks.problem() == "fleet rules: ValueError: a bug"


def test_planned_rates_come_with_the_answer_to_a_status(tmp_path: Path) -> None:
    bench = fleet_of(tmp_path, workloads=load_workloads(["frontfaas-small"]))
    with served(bench.app) as url, following(url) as (source, configs):
        wait_for(lambda: configs)
        assert source.planned() == {}
        bench.now += SILENT_S
        source.report(
            replace(STATE, planned={"shop": ServiceDemand(threshold=0.00005, cpus=1000.0, rate_hz=0.0)})
        )
        found: dict[str, float] = {}

        def came() -> bool:
            found.update(source.planned())
            return bool(found)

        wait_for(came)
        assert found == {"shop": plan_rate(None, Need(0.19), 0.0).rate_hz}
        assert source.planned() == {}


def test_wrong_rules_are_reported_once_and_not_followed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bench = fleet_of(tmp_path)
    with served(bench.app) as url, following(url) as (source, configs):
        wait_for(lambda: configs)
        right = bench.fleet.rules
        for text in (b"rules: [{servise: x}]", b"{spool: /etc, rules: [{}]}", b"\xff"):
            bench.fleet.rules = type(right)(text)
            count = len(caplog.records) + 1
            wait_for(lambda wanted=count: len(caplog.records) == wanted)  # type: ignore[misc]
            time.sleep(0.1)
        source.report(STATE)
        wait_for(lambda: bench.fleet.statuses.heard(bench.now))
        assert FleetClient(url).view().agents[0].status.rules == right.version
        bench.serve_rules(OTHER_RULE)
        wait_for(lambda: services(configs) == ["a", "b"])
    lines = [record.message for record in caplog.records if record.levelno == logging.ERROR]
    assert [line.count("the rules stay as they were: http://") for line in lines] == [1, 1, 1]
    assert ["servise" in lines[0], "spool" in lines[1], "UTF-8" in lines[2]] == [True] * 3


def test_rules_are_kept_while_the_gateway_is_away(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    bench = fleet_of(tmp_path)
    port = socket.socket()  # nobody listens there, and nobody else gets it meanwhile
    port.bind(("127.0.0.1", 0))
    number = port.getsockname()[1]
    url = f"http://127.0.0.1:{number}"
    with following(url) as (source, configs):
        wait_for(lambda: caplog.records)
        source.report(STATE)
        time.sleep(0.2)
        port.close()
        with served(bench.app, number):
            wait_for(lambda: bench.fleet.statuses.heard(bench.now))
            wait_for(lambda: len(caplog.records) == 2)
        wait_for(lambda: len(caplog.records) == 3)
        time.sleep(0.2)
        assert services(configs) == ["a"]
    first, back, again = (record.getMessage() for record in caplog.records)
    assert first.endswith("Connection refused; waiting for its rules")
    assert f"{url} answers again, after" in back
    assert again.endswith("; the rules stay as they were")


def test_a_wrong_token_is_one_line(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    bench = fleet_of(tmp_path, token="correct horse")
    with served(bench.app) as url, following(url, "wrong") as (_, configs):
        wait_for(lambda: caplog.records)
        time.sleep(0.1)
    assert configs == []
    (record,) = caplog.records
    assert "wrong or missing token" in record.message


def test_an_agent_follows_other_rules_while_it_runs(tmp_path: Path) -> None:
    bench = fleet_of(tmp_path)
    agent = Steps()
    scan = agent.scan

    def changing() -> None:
        scan()
        if len(agent.steps) == 1:
            bench.serve_rules(OTHER_RULE)
        if agent.configs:
            os.kill(os.getpid(), signal.SIGTERM)

    agent.scan = changing  # type: ignore[method-assign]
    with served(bench.app) as url, closing(GatewayRules(FleetClient(url), "web-1", ask_s=0.05)) as source:
        run(agent, source)
        wait_for(lambda: bench.fleet.statuses.heard(bench.now))
    (config,) = agent.configs
    assert (config.rules[0].service, config.interval_s) == ("b", 1)
    assert agent.steps[-2:] == ["stop", "publish"]


def test_a_signal_ends_an_agent_that_waits_for_its_rules() -> None:
    agent = Steps()
    with closing(GatewayRules(FleetClient("http://127.0.0.1:1"), "web-1", first_s=0.05)) as source:
        start = source.start

        def interrupted(wake: Callable[[], None]) -> None:  # signals are caught by now
            start(wake)
            threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()

        source.start = interrupted  # type: ignore[method-assign]
        assert run(agent, source) == []


def test_the_command_lists_by_a_gateways_rules(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bench = fleet_of(tmp_path, "rules: [{match: {user: nobody-at-all}, service: x}]")
    with served(bench.app) as url:
        found = CliRunner().invoke(smidgen, ["agent", "host", "--rules", url, "--list"])
        assert found.output.startswith("0 processes would be sampled\n")
    assert run_command(["agent", "host", "--rules", url, "--list"]) == 2
    assert "Connection refused" in capsys.readouterr().err
    assert run_command(["agent", "host", "--rules", "http://", "--list"]) == 2
    assert "should be http://HOST:PORT" in capsys.readouterr().err


def test_the_host_says_where_its_spool_is(tmp_path: Path) -> None:
    config = parse_fleet_config(b"{spool_size: 1MiB, rules: [{}]}", "here")
    message_queue(config, None)
    assert not list(tmp_path.iterdir())
    message_queue(config, tmp_path / "spool")
    assert (tmp_path / "spool").is_dir()
