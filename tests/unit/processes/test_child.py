"""Children end with the thread that started them, in order or by force, and are read without end."""

from __future__ import annotations

import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.processes import Child, Output, end, run_bounded

SLEEP = "import time; print('up', flush=True); time.sleep(60)"
STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN);" + SLEEP
PARENT = (
    "import subprocess, sys; child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']);"
    "print(child.pid, flush=True);"
)

linux_only = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks /proc")


def python(source: str) -> list[str]:
    return [sys.executable, "-c", source]


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_the_first_line_and_the_last_words() -> None:
    child = Child(python("import sys; print('ready'); print('out'); print('broken', file=sys.stderr)"))
    assert child.first_line() == "ready"
    wait_until(lambda: not child.running)
    assert set(child.output().splitlines()) == {"out", "broken"}
    assert child.last_words() in ("out", "broken")
    assert child.stop() == 0


def test_what_is_kept_of_a_talkative_child_is_bounded() -> None:
    child = Child(python("print('x' * 10_000_000); [print(number) for number in range(100_000)]"))
    child.drain()
    wait_until(lambda: not child.running)
    assert child.output().splitlines()[-1] == "99999"
    assert len(child.output()) < 1_000_000
    child.stop()


def test_a_log_takes_all_output_and_is_appended_to(tmp_path: Path) -> None:
    log = tmp_path / "child.log"
    log.write_text("before\n")
    child = Child(python("import sys; print(sys.stdin.read(), 'out'); sys.exit(3)"), log=log)
    assert child.wait(60) == 3
    assert log.read_text() == "before\n out\n"
    assert child.stop() == 3


@linux_only
def test_a_child_ends_with_its_thread() -> None:
    children: list[Child] = []

    def start() -> None:
        children.append(Child(python(SLEEP)))
        assert children[0].first_line() == "up"

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    (child,) = children
    assert child.wait(60) is not None
    child.stop()


@pytest.mark.parametrize(
    ("source", "code"), [(SLEEP, -signal.SIGTERM), (STUBBORN, -signal.SIGKILL)], ids=["asked", "killed"]
)
def test_stopping(source: str, code: int) -> None:
    child = Child(python(source))
    assert child.first_line() == "up"
    assert child.running
    assert child.stop(0.2 if source == STUBBORN else 60) == code
    child.send(signal.SIGKILL)  # nothing: it is gone


@linux_only
@pytest.mark.parametrize("last", ["child.wait()", "sys.exit(0)"], ids=["stopped", "ended by itself"])
def test_what_a_child_started_ends_with_it(last: str) -> None:
    child = Child(python(PARENT + last))
    grandchild = int(child.first_line())
    if "exit" in last:
        wait_until(lambda: not child.running)
    child.stop()
    wait_until(lambda: not is_running(grandchild))


def test_a_child_that_is_suspended_is_killed() -> None:
    child = Child(python(STUBBORN))
    child.first_line()
    child.send(signal.SIGSTOP)
    assert child.stop(0.2) == -signal.SIGKILL


def test_waiting_until_it_is_ready() -> None:
    child = Child(python(SLEEP))
    child.drain()
    assert child.wait_ready(lambda: "up" in child.output(), 60)
    assert not child.wait_ready(lambda: False, 0.1)
    child.stop()
    assert not child.wait_ready(lambda: True, 60), "it has ended"


def test_a_watcher_sees_every_line_and_then_the_end() -> None:
    seen: list[str] = []
    over = threading.Event()

    class Watcher:
        def line(self, text: str) -> None:
            seen.append(text)

        def ended(self) -> None:
            over.set()

    child = Child(python("print('one'); print('two'); exit(4)"), tethered=False, watcher=Watcher())
    assert over.wait(60)
    assert seen == ["one", "two"]
    assert child.returncode == 4


def test_ending_a_process_that_ignores_sigterm() -> None:
    process = subprocess.Popen(["sh", "-c", "trap '' TERM; echo up; sleep 60"], stdout=subprocess.PIPE)
    assert process.stdout is not None
    with process.stdout as stream:
        stream.readline()
    assert end(process, 0.1) == -signal.SIGKILL
    assert end(process, 0.1) == -signal.SIGKILL, "it is gone"


@pytest.mark.parametrize(
    ("source", "data", "cut"),
    [
        pytest.param("print(input())", b"given\n", "", id="whole"),
        pytest.param("print('x' * 10_000_000)", b"x" * 1000, "is larger than", id="too much"),
        pytest.param(SLEEP, b"up\n", "took longer than", id="too long"),
    ],
)
def test_a_program_is_run_within_bounds(source: str, data: bytes, cut: str) -> None:
    timeout_s = 1.5 if cut.startswith("took") else 20.0
    output = run_bounded(python(source), stdin=b"given", max_bytes=1000, timeout_s=timeout_s)
    assert output.data == data
    assert output.cut.startswith(cut)
    assert bool(output.cut) == bool(cut)
    assert (output.code == 0) == (not cut)


@pytest.mark.parametrize(
    ("limit", "most", "source", "code", "errors"),
    [
        pytest.param(resource.RLIMIT_AS, 1024**3, "bytearray(2 * 1024**3)", 1, "MemoryError", id="memory"),
        pytest.param(resource.RLIMIT_CPU, 1, "while True: pass", -signal.SIGKILL, "", id="processor"),
        pytest.param(
            resource.RLIMIT_FSIZE, 1000, "open('large', 'wb').write(bytes(10**6))", 1, "too large", id="file"
        ),
    ],
)
def test_a_program_gets_no_more_than_its_limits(
    limit: int, most: int, source: str, code: int, errors: str, tmp_path: Path
) -> None:
    def bounded(text: str) -> Output:
        bound = f"resource.getrlimit({limit})[0] == {most}"  # it is set while the program starts
        command = python(f"import resource, time\nwhile not {bound}: time.sleep(0.01)\n{text}")
        return run_bounded(command, max_bytes=1000, timeout_s=60, folder=tmp_path, limits={limit: most})

    assert bounded("print('well')").data == b"well\n"
    output = bounded(source)
    assert output.code == code
    assert errors in output.errors
    assert output.cut == ""


def test_a_program_that_fails_or_is_not_there() -> None:
    output = run_bounded(python("import sys; sys.exit('why')"), max_bytes=1000, timeout_s=20)
    assert (output.code, output.errors, output.cut) == (1, "why", "")
    with pytest.raises(FileNotFoundError):
        run_bounded(["/no/such/program"], max_bytes=1, timeout_s=1)
