"""``smidgen agent host`` without a broker: what it lists, and what it refuses."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from agents.host.listing import list_processes
from agents.host.rules_file import load_host_config
from pipeline.cli import run, smidgen
from tests.unit.agents.host.proc_tree import ProcTree

RULES = r"""
processes: 1
rules:
  - {match: {command: secret}, ignore: true}
  - match: {command: 'python (?P<app>shop|cart)'}
    service: ${app}
    release: ${env:VERSION}
    labels: {zone: a}
    rate: 1/60
  - {match: {command: java}}
"""


def test_a_list_says_by_which_rule_and_why_not(tmp_path: Path) -> None:
    (tmp_path / "host.yaml").write_text(RULES)
    tree = ProcTree(tmp_path / "proc")
    tree.add(10, "python shop", environment={"VERSION": "v7"}, cpu_s=999.0)
    tree.add(11, "python cart")
    tree.add(12, "java mail")
    tree.add(13, "secret")
    tree.add(14, "sleep 60")
    tree.add(15, "")
    lines = list(list_processes(load_host_config(tmp_path / "host.yaml"), tree.reader()))
    assert lines == [
        "1 processes would be sampled",
        "  10 rule 2: shop release=v7 zone=a, auto at 0.0166667 Hz, 1.00 CPUs: python shop",
        "1 would wait: more than 1 match (processes)",
        "  11 rule 2: cart zone=a, auto at 0.0166667 Hz, 0.00 CPUs: python cart",
        "3 would not be sampled",
        "  12 rule 3: the rule finds no service for it: java mail",
        "  13 rule 1: a rule leaves it out: secret",
        "  14 no rule matches: sleep 60",
    ]


def test_the_command_lists_what_there_is_on_this_machine(tmp_path: Path) -> None:
    (tmp_path / "host.yaml").write_text("rules: [{match: {user: nobody-at-all}, service: x}]")
    found = CliRunner().invoke(smidgen, ["agent", "host", "--rules", str(tmp_path / "host.yaml"), "--list"])
    assert found.exit_code == 0
    assert found.output.startswith("0 processes would be sampled\n")
    assert f"  {os.getppid()} no rule matches: " in found.output


@pytest.mark.parametrize(
    ("text", "arguments", "complaint"),
    [
        pytest.param(None, (), "No such file", id="no file"),
        pytest.param("rules: 1", (), "rules: should be a list", id="wrong file"),
        pytest.param("rules: [{}]", ("--metrics", "x"), "HOST:PORT", id="no address"),
        pytest.param("rules: [{}]", ("--broker", "http://x"), "broker", id="no broker"),
    ],
)
def test_what_is_wrong_is_one_line(
    tmp_path: Path,
    text: str | None,
    arguments: tuple[str, ...],
    complaint: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if text is not None:
        (tmp_path / "host.yaml").write_text(text)
    assert run(["agent", "host", "--rules", str(tmp_path / "host.yaml"), *arguments]) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert complaint in error
