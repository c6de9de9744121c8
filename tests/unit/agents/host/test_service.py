"""The loop over an agent's steps: what is due, what signals do, what is left at the end."""

from __future__ import annotations

import logging
import os
import signal
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from agents.host.numbers import AgentState, HostNumbers
from agents.host.rules_file import HostConfig
from agents.host.rules_source import FileRules, RulesSource
from agents.host.service import _first_rules, _Loop, _signals

ONE_RULE = "{interval: 1s, scan: 500ms, rules: [{service: a}]}"


class Steps:
    """Stands for an agent, notes its steps, and acts after some of them."""

    def __init__(self, *acts: signal.Signals) -> None:
        self.steps: list[str] = []
        self.numbers = HostNumbers()
        self.configs: list[HostConfig] = []
        self.rates_hz: dict[str, float] = {}
        self._acts = list(acts)

    def scan(self) -> None:
        self.steps.append("scan")
        if self._acts:
            os.kill(os.getpid(), self._acts.pop(0))

    def publish(self) -> None:
        self.steps.append("publish")

    def keep_budget(self) -> None:
        self.steps.append("keep_budget")

    def stop(self) -> None:
        self.steps.append("stop")

    def follow_plan(self, rates_hz: Mapping[str, float]) -> None:
        self.rates_hz |= rates_hz

    def use(self, config: HostConfig) -> None:
        self.configs.append(config)


def run(agent: Steps, origin: Path | RulesSource) -> list[str]:
    source = FileRules(origin) if isinstance(origin, Path) else origin
    with _signals() as signals:
        source.start(signals.wake)
        config = _first_rules(source, signals)
        if config is not None:
            _Loop(agent, config, source, signals, lambda: AgentState({}), time.time).run()  # type: ignore[arg-type]
    return agent.steps


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_all_samplings_and_then_publishes(tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "host.yaml").write_text(ONE_RULE)
    before = signal.getsignal(number)
    assert run(Steps(number), tmp_path / "host.yaml") == ["scan", "stop", "publish"]
    assert signal.getsignal(number) is before


def test_rules_are_read_again_but_intervals_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    file = tmp_path / "host.yaml"
    file.write_text(ONE_RULE)
    agent = Steps(signal.SIGHUP, signal.SIGHUP, signal.SIGTERM)
    scan = agent.scan

    def changed() -> None:
        texts = ["{interval: 9s, scan: 500ms, processes: 7, rules: [{service: b}]}", "rules: [{servise: x}]"]
        if len(agent.steps) < len(texts):
            file.write_text(texts[len(agent.steps)])
        scan()

    monkeypatch.setattr(agent, "scan", changed)
    run(agent, file)
    (config,) = agent.configs
    assert (config.interval_s, config.processes, config.rules[0].service) == (1, 7, "b")
    assert caplog.text.count("the rules stay as they were") == 1
    assert agent.steps[-2:] == ["stop", "publish"]


def test_intervals_are_published_and_measured(tmp_path: Path) -> None:
    (tmp_path / "host.yaml").write_text(ONE_RULE)
    agent = Steps()
    agent.keep_budget = lambda: os.kill(os.getpid(), signal.SIGTERM)  # type: ignore[method-assign]
    began = time.monotonic()
    steps = run(agent, tmp_path / "host.yaml")
    assert steps.count("publish") == 2
    assert steps.count("scan") >= 1
    assert time.monotonic() - began < 60
