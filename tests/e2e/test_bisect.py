"""A bisection that is ended from outside leaves nothing behind, and its state file goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.repositories import Work


@pytest.mark.parametrize("number", [signal.SIGTERM])
def test_a_signal_ends_the_run_and_removes_work_trees(number: signal.Signals, tmp_path: Path) -> None:
    work = Work(tmp_path / "repository")
    for commit in range(3):
        work.commit(f"Commit {commit}", {"n": str(commit)})
    scratch, started = tmp_path / "scratch", tmp_path / "started"
    scratch.mkdir()
    command = [
        "trial",
        "bisect",
        "HEAD~2..HEAD",
        "--repo",
        str(work.path),
        "--state",
        str(tmp_path / "state"),
    ]
    process = subprocess.Popen(
        [sys.executable, "-m", "pipeline", *command, "--run", f"echo $$ > {started}; sleep 1000"],
        env={**os.environ, "TMPDIR": str(scratch)},
        stderr=subprocess.PIPE,
    )
    deadline = time.monotonic() + 120
    while not (started.exists() and started.read_text().strip()):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(number)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 130
    assert b"Traceback" not in errors
    assert list(scratch.iterdir()) == []
    assert len(work.git("worktree", "list").split("\n")) == 1
    state = Path("/proc", started.read_text().strip(), "stat")
    assert not state.exists() or ") Z" in state.read_text()
    assert (tmp_path / "state").read_bytes().count(b"\n") == 2  # the task, and the build
