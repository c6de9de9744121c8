"""Every mistake on the command line: one clear line on stderr, exit code 2, no traceback."""

from __future__ import annotations

import gc
import os
import shlex
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.cli import run
from pipeline.commands.lazy_group import load
from pipeline.settings.topics import DEFAULT_PATH
from tests.support.paths import ROOT

NOWHERE = "127.0.0.1:1"

_WORKLOAD = """
name: x
resolution: 1m
rerun_interval: 1h
historical: 1d
analysis: 1h
threshold: {absolute: 0.01}
treshold: {absolute: 0.01}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory, with a broken file of each kind in it."""
    monkeypatch.chdir(tmp_path)
    good = DEFAULT_PATH.read_text()
    (tmp_path / "partition.yaml").write_text(good.replace("partitions: 12", "partition: 12", 1))
    (tmp_path / "unequal.yaml").write_text(good.replace("partitions: 6", "partitions: 5", 1))
    (tmp_path / "broken.yaml").write_text("profiles: [")
    (tmp_path / "workload.yaml").write_text(_WORKLOAD)
    (tmp_path / "settings.yaml").write_text("brokr: here\n")
    return tmp_path


ERRORS = {
    "no such command": (["frobnicate"], "No such command 'frobnicate'"),
    "unknown flag": (["worker", "aggregate", "--brokre", "x"], "No such option: --brokre"),
    "flag without value": (["worker", "aggregate", "--broker"], "--broker' requires an argument"),
    "unknown stage": (["worker", "agregate"], "unknown stage 'agregate'; stages are aggregate, detect"),
    "no stage": (["worker"], "Missing argument 'STAGE...'"),
    "malformed broker": (["worker", "all", "--broker", "nonsense"], "broker: should be host:port"),
    "unreachable broker": (["worker", "all", "--broker", NOWHERE], f"broker {NOWHERE}: cannot be reached"),
    "unreachable broker, topics": (["topics", "apply", "--broker", NOWHERE], "cannot be reached"),
    "unreachable broker, check": (["topics", "check", "--broker", NOWHERE], "cannot be reached"),
    "unreachable broker, events": (["events", "tail", "--broker", NOWHERE], "cannot be reached"),
    "malformed store": (["store", "migrate", "--store", "here"], "should begin with http://"),
    "unreachable store": (["store", "migrate", "--store", f"http://{NOWHERE}"], "does not answer"),
    "missing topics file": (["topics", "check", "--topics", "gone.yaml"], "gone.yaml: No such file"),
    "topics file not YAML": (["topics", "check", "--topics", "broken.yaml"], "broken.yaml:"),
    "wrong key in topics": (
        ["topics", "check", "--topics", "partition.yaml"],
        "partition.yaml: profiles: partition: unknown key; known keys are cleanup",
    ),
    "unequal partitions": (
        ["topics", "check", "--topics", "unequal.yaml"],
        "change-points.partitions: should be 5, as many as windows has",
    ),
    "wrong key in a workload": (
        ["worker", "all", "--workloads", "workload.yaml"],
        "workload.yaml: x: treshold: unknown key",
    ),
    "no such workload": (["worker", "all", "--workloads", "fast"], "no workload file or preset 'fast'"),
    "missing settings file": (["topics", "check", "--config", "gone.yaml"], "gone.yaml: No such file"),
    "wrong key in settings": (
        ["topics", "check", "--config", "settings.yaml"],
        "settings.yaml: brokr: unknown",
    ),
    "duration without unit": (
        ["worker", "all", "--window", "often"],
        "command line: window: should be a duration",
    ),
    "window wider than a workload's": (
        ["worker", "all", "--workloads", "live", "--window", "1m"],
        "window: 1m does not divide the resolution of workload live, 1s",
    ),
    "stack window wider than what follows": (
        ["worker", "detect", "--workloads", "live", "--stack-window", "5m"],
        "stack_window: 5m is longer than what workload live may see after a change, 7s",
    ),
    "names that are no file": (["worker", "aggregate", "--names", "nowhere.yaml"], "nowhere.yaml"),
    "count of nothing": (["events", "tail", "--count", "0"], "Invalid value for '--count'"),
    "timeout in words": (["events", "tail", "--timeout", "soon"], "should be a duration"),
}


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(("arguments", "expected"), [pytest.param(*e, id=name) for name, e in ERRORS.items()])
def test_one_line_and_exit_code_2(
    arguments: list[str], expected: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert err.count("\n") == 1, err
    assert expected in err
    assert "Traceback" not in err


@pytest.fixture
def mute_server() -> Iterator[str]:
    """Something that accepts connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.timeout(40)
def test_a_broker_that_says_nothing_is_given_up(mute_server: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["topics", "check", "--broker", mute_server]) == 2
    assert capfd.readouterr().err == f"smidgen: broker {mute_server}: no answer in time\n"


def test_a_password_in_a_dsn_is_not_printed(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["store", "migrate", "--store", f"http://me:hunter2@{NOWHERE}"]) == 2
    assert "hunter2" not in capfd.readouterr().err


@pytest.mark.parametrize(
    "arguments", [["--help"], ["--version"], ["worker", "--help"], ["events", "tail", "-h"]]
)
def test_help_and_version_succeed(arguments: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    assert run(arguments) == 0
    out, err = capfd.readouterr()
    assert out
    assert err == ""


READERS = {
    "why": ["why", "--service", "shop"],
    "report": ["report", "id", "-o", "page.html"],
    "detectable": ["detectable", "--service", "shop"],
    "release compare": ["release", "compare", "v1", "v2", "--service", "shop"],
}


@pytest.mark.parametrize("arguments", READERS.values(), ids=READERS.keys())
def test_what_only_reads_a_store_makes_none(
    arguments: list[str], folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run([*arguments, "--store", f"chdb://{folder}/none"]) == 2
    err = capfd.readouterr().err
    assert "no such folder; smidgen store migrate makes it" in err
    assert err.count("\n") == 1
    assert not (folder / "none").exists()


FULL = {
    "help": ["--help"],
    "help of a command": ["topics", "check", "--help"],
    "a table": ["detect", "s.csv"],
    "JSON": ["detect", "s.csv", "--json"],
}


@pytest.mark.slow
@pytest.mark.parametrize("arguments", FULL.values(), ids=FULL.keys())
@pytest.mark.parametrize(
    ("where", "code", "said"),
    [
        pytest.param("> /dev/full", 2, "smidgen: standard output: No space left on device\n", id="full"),
        pytest.param(">&-", 0, "", id="closed"),
        pytest.param("| true", 0, "", id="nobody reads"),
    ],
)
def test_standard_output_that_takes_nothing(
    arguments: list[str], where: str, code: int, said: str, folder: Path
) -> None:
    (folder / "s.csv").write_text("value\n" + "1\n2\n" * 30)
    command = shlex.join([sys.executable, "-m", "pipeline", *arguments])
    paths = {"PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"]}
    found = subprocess.run(f"{command} {where}", shell=True, env=paths, stderr=subprocess.PIPE, text=True)
    lines = [line for line in found.stderr.splitlines(keepends=True) if not line.startswith("detect: ")]
    assert (found.returncode, "".join(lines)) == (code, said)  # without the progress of a slow machine


def test_nothing_looks_for_garbage_while_a_command_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "probed.py").write_text("import gc\nlooked = gc.isenabled()\n")
    assert (load("probed").looked, gc.isenabled()) == (False, True)
    with pytest.raises(ModuleNotFoundError):
        load("no_such_module")
    assert gc.isenabled()
