"""Settings files: what they say, and the line on what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from agents.host.adaptive import FASTEST_HZ
from agents.host.rules import How, Rule
from agents.host.rules_file import HostConfig, load_host_config, parse_fleet_config
from pipeline.model.errors import ConfigError


def load(folder: Path, text: str) -> HostConfig:
    path = folder / "host.yaml"
    path.write_text(text)
    return load_host_config(path)


def test_defaults(tmp_path: Path) -> None:
    config = load(tmp_path, "rules: [{}]")
    assert config.rules == (Rule(),)
    assert (config.interval_s, config.scan_s, config.processes, config.budget) == (10, 5, 64, 0.01)
    assert config.spool is None


def test_all_keys(tmp_path: Path) -> None:
    config = load(
        tmp_path,
        r"""
interval: 30s
scan: 2s
processes: 8
budget: 0.5%
buffer: 1MiB
spool: waiting
spool_size: 2MiB
prune: 0.58%
rules:
  - match: {user: 33, command: 'web (?P<app>\w+)', environment: {A: , B: 'x'}}
    service: ${app}
    endpoint: /all
    labels: {zone: '${env:ZONE}'}
    rate: 1/60
    kernel: py-spy
    native: true
  - {match: {container: ab}, ignore: true}
""",
    )
    rule, other = config.rules
    assert rule.how == How(rate_hz=1 / 60, kernel="py-spy", native=True)
    assert rule.service == "${app}"
    assert (rule.condition.user, set(rule.condition.environment)) == ("33", {"A", "B"})
    assert other.ignore
    assert (config.interval_s, config.scan_s, config.processes, config.budget) == (30, 2, 8, 0.005)
    assert config.spool == tmp_path / "waiting"
    assert (config.spool_bytes, config.buffer_bytes) == (2 * 1024**2, 1024**2)
    assert config.prune == pytest.approx(0.0058)


def test_call_graphs_and_adaptive_rates_of_a_host_and_of_a_fleet(tmp_path: Path) -> None:
    text = "rules: [{call_graph: dwarf, kernel: perf, rate: 19}, {rate: 19}, {rate: adaptive}]"
    for config in (load(tmp_path, text), parse_fleet_config(text.encode(), "here")):
        assert [rule.how.call_graph for rule in config.rules] == ["dwarf", "fp", "fp"]
        assert config.rules[2].how == How(rate_hz=FASTEST_HZ, adaptive=True)


@pytest.mark.parametrize(
    ("rule", "how"),
    [
        pytest.param("{}", How(planned=True), id="neither"),
        pytest.param("{threshold: 0.005 %}", How(planned=True, threshold=0.00005), id="percent"),
        pytest.param("{threshold: 0.00005}", How(planned=True, threshold=0.00005), id="ratio"),
        pytest.param("{rate: 19}", How(), id="rate"),
        pytest.param("{rate: adaptive}", How(rate_hz=FASTEST_HZ, adaptive=True), id="adaptive"),
    ],
)
def test_a_fleets_rule_without_a_rate_is_planned(rule: str, how: How) -> None:
    (found,) = parse_fleet_config(f"rules: [{rule}]".encode(), "here").rules
    assert found == Rule(how=how)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        pytest.param("rules: [{}, {threshold: 1%}]", r"rules.1.threshold: a host does not know", id="host"),
        pytest.param("rules: [{threshold: 1%, rate: 19}]", r"rules.0: .*leave out rate", id="both"),
        pytest.param("rules: [{threshold: 0}]", r"rules.0.threshold: should be a share", id="threshold 0"),
        pytest.param("rules: [{threshold: [1]}]", r"rules.0.threshold: should be a share", id="a list"),
        pytest.param("{}", "rules: is missing", id="no rules"),
        pytest.param("rules: []", "rules: should hold at least 1", id="no rule"),
        pytest.param(
            "rules: [{servise: x}]", r"rules.0.servise: unknown key.*did you mean service", id="key"
        ),
        pytest.param(
            "rules: [{match: {command: '('}}]", r"rules.0.match.command: not a pattern", id="pattern"
        ),
        pytest.param("rules: [{match: {command: 7}}]", r"match.command: should be a pattern", id="no text"),
        pytest.param("rules: [{rate: 0}]", r"rules.0.rate: should be samples a second", id="rate 0"),
        pytest.param("rules: [{rate: 2.5}]", r"above 1 a whole number", id="rate 2.5"),
        pytest.param("rules: [{rate: 1/0}]", r"rules.0.rate", id="rate 1/0"),
        pytest.param("rules: [{rate: 1/61}]", r"rules.0.rate", id="rate 1/61"),
        pytest.param("rules: [{rate: true}]", r"rules.0.rate", id="rate true"),
        pytest.param("rules: [{rate: 1001}]", r"rules.0.rate", id="rate 1001"),
        pytest.param("rules: [{kernel: gdb}]", r"rules.0.kernel: should be one of auto", id="kernel"),
        pytest.param("rules: [{service: '${app}'}]", r"rules.0: \${app} is no group", id="group"),
        pytest.param("rules: [{native: true, nonblocking: true}]", r"leave out nonblocking", id="native"),
        pytest.param(
            "rules: [{call_graph: lbr}]", r"rules.0.call_graph: should be 'fp' or 'dwarf'", id="call graph"
        ),
        pytest.param("rules: [{call_graph: }]", r"rules.0.call_graph: should be 'fp'", id="no call graph"),
        pytest.param("{rules: [{}], budget: 1}", r"budget: should be a share", id="budget"),
        pytest.param("{rules: [{}], prune: 0.5}", r"prune: should be an error such as 0.5%", id="prune"),
        pytest.param("{rules: [{}], budget: 0%}", r"budget: should be a share", id="budget 0"),
        pytest.param("{rules: [{}], interval: 100ms}", r"interval: ", id="interval"),
        pytest.param("rules: [", r"host.yaml:1: ", id="no YAML"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint) as caught:
        load(tmp_path, text)
    assert str(tmp_path / "host.yaml") in str(caught.value)
    assert "\n" not in str(caught.value)
