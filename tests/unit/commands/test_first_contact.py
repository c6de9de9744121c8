"""What an impatient new user types, and what is said to it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pipeline.cli import run
from pipeline.config import local_state_file
from pipeline.local import forget, remember
from tests.unit.test_local import running

NOWHERE = ("--broker", "127.0.0.1:1")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_program_without_python_is_said(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["agent", "run", "--service", "s", *NOWHERE, "--", "/bin/sleep", "1"]) == 0
    err = capfd.readouterr().err
    assert (
        "nothing was sampled: the command ended first (Failed to find python version: it is no Python program"
        in err
    )


def test_samples_that_the_broker_did_not_take_are_no_success(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agents.agent.FLUSH_S", 0.5)
    spin = "import time\nend = time.time() + 2\nwhile time.time() < end: pass"
    assert run(["agent", "run", "--service", "s", *NOWHERE, "--", "python3", "-c", spin]) == 1
    err = capfd.readouterr().err
    assert "sampling goes on and messages wait in the buffer" in err
    assert "what waits is tried to be published for 0 s more" in err
    assert "not confirmed by the broker when the agent ended" in err


def test_an_import_of_the_future_is_refused(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (folder / "stacks.txt").write_text("main;work 5\n")
    assert run(["agent", "import", "stacks.txt", "--service", "s", "--start", "2090-01-01", *NOWHERE]) == 2
    assert "--start: would end at 2090-01-01T00:01:00.000Z, which is still to come" in capfd.readouterr().err
    os.utime("stacks.txt", (4e9, 4e9))
    assert run(["agent", "import", "stacks.txt", "--service", "s", *NOWHERE]) == 2
    assert "stacks.txt: would end at 2096-" in capfd.readouterr().err


def test_a_misspelt_key_is_named(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (folder / "mine.yaml").write_text("name: mine\nresolutoin: 1m\nrerun_interval: 1h\nhistorical: 10h\n")
    assert run(["detectable", "--service", "s", "--workloads", "mine.yaml"]) == 2
    err = capfd.readouterr().err
    assert "mine: resolutoin: unknown key; known keys are" in err
    assert err.endswith("(did you mean resolution?)\n")


def test_a_misspelt_variable_is_named(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SMIDGEN_BROKEN", "1")
    monkeypatch.setenv("SMIDGEN_GATEWAY_SERVICE_PORT", "80")  # as Kubernetes names a service's
    run(["topics", "check", *NOWHERE])
    assert capfd.readouterr().err.splitlines()[0] == (
        "smidgen: SMIDGEN_BROKEN is no setting: did you mean SMIDGEN_BROKER?"
    )


def test_a_value_is_refused_in_plain_words(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (folder / "smidgen.yaml").write_text("batch_size: many\n")
    assert run(["worker", "all"]) == 2
    assert capfd.readouterr().err == "smidgen: smidgen.yaml: batch_size: should be a whole number\n"


def test_what_does_not_exist_of_a_repository_is_not_the_repository(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    os.system("git init -q . && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m first")
    assert run(["changes", "--repo", ".", "--service", "s", "--rev", "gone", *NOWHERE]) == 2
    err = capfd.readouterr().err
    assert "no commit 'gone'" in err
    assert "--repo" not in err


def test_a_second_one_is_refused(capfd: pytest.CaptureFixture[str]) -> None:
    path = local_state_file()
    remember(path, running(os.getpid()))
    try:
        assert run(["up"]) == 2
    finally:
        forget(path, os.getpid())
    assert "smidgen up runs already" in capfd.readouterr().err


def test_a_command_that_uses_what_runs_here_says_so_once(capfd: pytest.CaptureFixture[str]) -> None:
    path = local_state_file()
    remember(path, running(os.getpid()))
    try:
        assert run(["topics", "check"]) == 2
        assert run(["topics", "check", *NOWHERE]) == 2
    finally:
        forget(path, os.getpid())
    assert capfd.readouterr().err.splitlines() == [
        "smidgen: on what smidgen up runs here (--broker for another)",
        "smidgen: broker 127.0.0.1:7001: cannot be reached",
        "smidgen: broker 127.0.0.1:1: cannot be reached",
    ]
