"""``smidgen agent list``: a table or JSON, and exit codes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner

from agents.host.fleet import AgentStatus, encode_status
from agents.host.fleet.status import SILENT_S
from pipeline.cli import run, smidgen
from pipeline.settings.workloads import load_workloads
from tests.unit.agents.host.fleet.support import STATUS, fleet_of, served


def listed(
    folder: Path, agents: dict[str, tuple[float, dict[str, Any]]], *flags: str, later_s: float = 0.0
) -> tuple[int, str]:
    """List agents by host: how many seconds ago each was heard, and what of its status is special."""
    bench = fleet_of(folder, workloads=load_workloads(["frontfaas-small"]))
    bench.now += later_s
    for host, (age_s, changes) in agents.items():
        changed = {"rules": bench.fleet.rules.version, **changes, "host": host}
        status = AgentStatus.model_validate({**STATUS.model_dump(), **changed})
        bench.fleet.statuses.keep(host, encode_status(status), bench.now - age_s)
    with served(bench.app) as url:
        done = CliRunner().invoke(smidgen, ["agent", "list", "--gateway", url, *flags], standalone_mode=False)
    assert done.exception is None
    return done.return_value, done.output


@pytest.mark.parametrize(
    ("age_s", "changes", "code", "shown"),
    [
        pytest.param(30, {}, 0, ["30s ago", "2 sampled", "0.40 %", "0.0167 to 19", "current"], id="well"),
        pytest.param(240, {}, 1, ["silent, 4m ago"], id="silent"),
        pytest.param(30, {"dropped": 5}, 1, ["5"], id="dropped"),
        pytest.param(30, {"rules": "other"}, 0, ["out of date"], id="other rules"),
        pytest.param(30, {"processes": {}, "rates_hz": {}}, 0, ["none"], id="idle"),
    ],
)
def test_a_table(tmp_path: Path, age_s: float, changes: dict[str, Any], code: int, shown: list[str]) -> None:
    exit_code, output = listed(tmp_path, {"web-1": (age_s, changes), "web-0": (0, {})})
    assert exit_code == code
    (line,) = (line for line in output.splitlines() if "web-1" in line)
    assert [text for text in shown if text not in line] == []
    assert listed(tmp_path, {})[0] == 0, "no host is no failure"


def test_planned_rates_and_kernels(tmp_path: Path) -> None:
    demand = {"threshold": None, "cpus": 2.0, "rate_hz": 0.0}
    planned = {"planned": {"shop": demand}, "cost_share": 0.001}
    agents = dict.fromkeys(("web-1", "web-2"), (0.0, planned))
    _, output = listed(tmp_path, agents, later_s=SILENT_S)
    assert output.count("1 perf, 1 py-spy") == 2
    (line,) = (line for line in output.splitlines() if "the lowest that is enough" in line)
    assert [text for text in ("shop", "0.005 %", "2", "4", "48.4", "67") if text not in line] == []
    _, output = listed(tmp_path, agents, "--json", later_s=SILENT_S)
    plan = orjson.loads(output.splitlines()[-1])["plans"]["shop"]
    assert (plan["hosts"], plan["rate_hz"], plan["reason"]) == (2, 67, "enough")


def test_json(tmp_path: Path) -> None:
    code, output = listed(tmp_path, {"a": (0, {}), "b": (181, {"rules": "x"})}, "--json")
    found = [orjson.loads(line) for line in output.splitlines()]
    assert code == 1
    assert [(each["host"], each["age_s"], each["is_silent"], each["is_current"]) for each in found] == [
        ("a", 0, False, True),
        ("b", 181, True, False),
    ]


@pytest.mark.parametrize(
    ("url", "complaint"),
    [
        pytest.param("http://127.0.0.1:1", "Connection refused", id="nobody"),
        pytest.param("gateway:4040", "http://HOST:PORT", id="no address"),
    ],
)
def test_what_cannot_be_asked_is_one_line(
    url: str, complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["agent", "list", "--gateway", url]) == 2
    assert complaint in capsys.readouterr().err.splitlines()[-1]
