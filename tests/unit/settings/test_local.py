"""What runs on this machine: found by its state file, and not by one that was left behind."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from pipeline.model.errors import ConfigError
from pipeline.settings.config import load_settings
from pipeline.settings.local import LocalPipeline, find_local, forget, remember, started_at, state_file


def running(pid: int, started: str | None = None) -> LocalPipeline:
    return LocalPipeline(
        pid=pid,
        started=started_at(pid) if started is None else started,
        broker="127.0.0.1:7001",
        store="http://127.0.0.1:7002",
        workloads=("live",),
        window_s=1.0,
        stack_window_s=5.0,
    )


@pytest.fixture
def environ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """An environment with a pipeline that runs for as long as this process."""
    monkeypatch.chdir(tmp_path)
    found = {"XDG_RUNTIME_DIR": str(tmp_path / "runtime")}
    remember(state_file(found), running(os.getpid()))
    return found


def test_where_it_stands() -> None:
    assert state_file({"XDG_RUNTIME_DIR": "/run/user/1", "HOME": "/h"}) == Path("/run/user/1/smidgen/up.json")
    assert state_file({"XDG_STATE_HOME": "/s", "HOME": "/h"}) == Path("/s/smidgen/up.json")
    assert state_file({"HOME": "/h"}) == Path("/h/.local/state/smidgen/up.json")


def test_what_was_written_is_found_for_this_user_alone(environ: dict[str, str]) -> None:
    path = state_file(environ)
    assert find_local(path) == running(os.getpid())
    assert path.stat().st_mode & 0o777 == 0o600


def test_it_is_forgotten_by_who_wrote_it(environ: dict[str, str]) -> None:
    path = state_file(environ)
    forget(path, os.getpid() + 1)
    assert path.exists()
    forget(path, os.getpid())
    assert not path.exists()


def test_what_has_ended_is_not_found(tmp_path: Path) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    left = {
        "ended": running(ended.pid, "1"),
        "its id is another's": running(os.getpid(), "1"),
    }
    for name, one in left.items():
        remember(tmp_path / name / "up.json", one)
        assert find_local(tmp_path / name / "up.json") is None, name


@pytest.mark.parametrize("content", [b"", b"{", b'{"pid": 1}', b"\xff"])
def test_a_file_that_is_none_is_not_found(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "up.json").write_bytes(content)
    assert find_local(tmp_path / "up.json") is None


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "runtime").write_text("")
    with pytest.raises(ConfigError, match=r"up\.json: (Not a directory|File exists)"):
        remember(tmp_path / "runtime" / "smidgen" / "up.json", running(os.getpid()))


def test_settings_come_from_it(environ: dict[str, str]) -> None:
    settings = load_settings({}, environ=environ, local=True)
    assert settings.local == running(os.getpid())
    assert (settings.broker, settings.store) == ("127.0.0.1:7001", "http://127.0.0.1:7002")
    assert (settings.workloads, settings.window_s, settings.stack_window_s) == (("live",), 1.0, 5.0)
    assert load_settings({}, environ=environ).local is None


def test_whatever_says_where_they_are_wins(environ: dict[str, str]) -> None:
    """It is used as a whole or not at all: not one's own store with another's broker."""
    Path("smidgen.yaml").write_text("log_level: debug\n")
    assert load_settings({}, environ=environ, local=True).local is not None
    assert load_settings({"workloads": ("ct-demand",)}, environ=environ, local=True).workloads == (
        "ct-demand",
    )
    others = [
        load_settings({"broker": "kafka:9092"}, environ=environ, local=True),
        load_settings({}, environ=environ | {"SMIDGEN_BROKER": "kafka:9092"}, local=True),
    ]
    Path("smidgen.yaml").write_text("broker: kafka:9092\n")
    others.append(load_settings({}, environ=environ, local=True))
    for settings in others:
        assert (settings.local, settings.broker) == (None, "kafka:9092")
        assert settings.store == "http://localhost:8123"
