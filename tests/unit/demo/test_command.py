"""How the demo ends when it does not get to its end: nothing is left behind, and the reason is said."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pipeline.cli import run

ENDS_S = 240.0
STARTS_S = 240.0


@contextmanager
def demo(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Run the demo with all that it writes, temporary folders included, below ``folder``."""
    (folder / "tmp").mkdir()
    command = "import sys; from pipeline.cli import run; sys.exit(run(['demo', '--plain', '--out', 'out']))"
    with (folder / "output").open("w") as output:
        process = subprocess.Popen(
            [sys.executable, "-c", command],
            cwd=folder,
            stdout=output,
            stderr=output,
            text=True,
            env={**os.environ, "TMPDIR": str(folder / "tmp"), "PYTHONUNBUFFERED": "1"},
            start_new_session=True,
        )
        try:
            yield process
        finally:
            process.kill()
            process.wait()


def output_of(folder: Path) -> str:
    return (folder / "output").read_text(encoding="utf-8")


def processes_under(folder: Path) -> dict[int, str]:
    """Return the command lines of processes that work in ``folder``, by pid."""
    found = {}
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and (entry / "cwd").readlink().is_relative_to(folder):
                found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:  # it has just ended
            continue
    return found


def wait_for(condition: Callable[[], bool], seconds: float, what: Callable[[], str]) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, what()
        time.sleep(0.05)


@pytest.mark.e2e
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_demo_leaves_nothing_behind(tmp_path: Path, number: signal.Signals) -> None:
    with demo(tmp_path) as process:
        wait_for(lambda: "starting the stages" in output_of(tmp_path), STARTS_S, lambda: output_of(tmp_path))
        wait_for(lambda: len(processes_under(tmp_path)) > 3, STARTS_S, lambda: output_of(tmp_path))
        process.send_signal(number)
        process.send_signal(number)  # a person who presses twice changes nothing

        assert process.wait(ENDS_S) == 130

    assert "Interrupted" in output_of(tmp_path)
    assert processes_under(tmp_path) == {}
    assert list((tmp_path / "tmp").iterdir()) == []


@pytest.mark.e2e
def test_a_stage_that_dies_ends_the_demo_and_is_named(tmp_path: Path) -> None:
    def worker() -> int:
        running = processes_under(tmp_path).items()
        return next((pid for pid, line in running if "worker filter" in line and "tether" not in line), 0)

    with demo(tmp_path) as process:
        wait_for(lambda: bool(worker()), STARTS_S, lambda: output_of(tmp_path))
        os.kill(worker(), signal.SIGKILL)

        assert process.wait(ENDS_S) == 1

    text = output_of(tmp_path)
    assert "filter was killed by signal 9" in text
    logs = Path(text.split("Logs: ")[1].strip())
    assert (logs / "filter.log").exists()
    assert processes_under(tmp_path) == {}


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")

    assert run(["demo", "--out", str(tmp_path / "file" / "out")]) == 2

    assert len(capsys.readouterr().err.splitlines()) == 1
