"""Kernels are chosen by what is seen of a process: a table over made-up /proc trees."""

from __future__ import annotations

from pathlib import Path

import pytest

from agents.sampling.kernels import Runtime
from agents.sampling.kernels.choice import SeenProcess, runtimes, see_process, suitable

LIBC = "/usr/lib/x86_64-linux-gnu/libc.so.6"
PID = 4711


def make_process(proc: Path, program: str, *mapped: str, own_pid: int = PID) -> Path:
    """Make what /proc shows of a process; return its folder."""
    folder = proc / str(PID)
    (folder / "root" / "tmp").mkdir(parents=True)
    (folder / "exe").symlink_to(program)
    lines = [f"7f00-7f01 r-xp 00000000 fe:00 {i}    {path}\n" for i, path in enumerate((program, *mapped))]
    anonymous = "7f02-7f03 rw-p 00000000 00:00 0 \n7ffc-7ffd rw-p 00000000 00:00 0    [stack]\n"
    (folder / "maps").write_text("".join(lines) + anonymous)
    (folder / "status").write_text(f"Name:\tx\nNSpid:\t{PID}\t{own_pid}\n")
    return folder


@pytest.mark.parametrize(
    ("program", "mapped", "expected"),
    [
        pytest.param("/usr/bin/python3.11", [LIBC], [Runtime.PYTHON], id="python"),
        pytest.param("/app/.venv/bin/python", [LIBC], [Runtime.PYTHON], id="of a virtual environment"),
        pytest.param("/opt/py/bin/python3.13t", [], [Runtime.PYTHON], id="free-threaded"),
        pytest.param("/usr/bin/python3.11 (deleted)", [], [Runtime.PYTHON], id="upgraded while it runs"),
        pytest.param("/usr/bin/uwsgi-core", ["/usr/lib/libpython3.11.so.1.0"], [Runtime.PYTHON], id="uwsgi"),
        pytest.param(
            "/srv/app",
            ["/srv/_json.cpython-312-x86_64-linux-gnu.so"],
            [Runtime.PYTHON],
            id="static libpython",
        ),
        pytest.param(
            "/usr/lib/jvm/bin/java", ["/usr/lib/jvm/lib/server/libjvm.so"], [Runtime.JAVA], id="java"
        ),
        pytest.param("/opt/tool", ["/opt/lib/server/libjvm.so"], [Runtime.JAVA], id="embeds a JVM"),
        pytest.param(
            "/usr/bin/python3",
            ["/jvm/libjvm.so"],
            [Runtime.PYTHON, Runtime.JAVA],
            id="python that embeds a JVM",
        ),
        pytest.param(
            "/usr/bin/java",
            ["/usr/lib/libpython3.11.so.1.0"],
            [Runtime.JAVA, Runtime.PYTHON],
            id="and reversed",
        ),
        pytest.param("/usr/bin/node", [LIBC], [Runtime.NODE], id="node"),
        pytest.param("/usr/bin/ruby3.1", ["/usr/lib/libruby-3.1.so.3.1"], [Runtime.RUBY], id="ruby"),
        pytest.param("/usr/sbin/nginx", [LIBC], [Runtime.COMPILED], id="compiled"),
        pytest.param("/app/server", [], [Runtime.COMPILED], id="static, as of Go"),
        pytest.param("/usr/bin/nodeshop", [LIBC], [Runtime.COMPILED], id="only begins like one"),
    ],
)
def test_what_runs(tmp_path: Path, program: str, mapped: list[str], expected: list[Runtime]) -> None:
    make_process(tmp_path, program, *mapped)
    assert runtimes(see_process(PID, tmp_path)) == tuple(expected)


@pytest.mark.parametrize("own_pid", [PID, 7], ids=["of the host", "of a container"])
def test_a_map_for_perf_makes_it_compiled_code_too(tmp_path: Path, own_pid: int) -> None:
    folder = make_process(tmp_path, "/usr/bin/node", own_pid=own_pid)
    (folder / "root" / "tmp" / f"perf-{own_pid}.map").touch()
    assert runtimes(see_process(PID, tmp_path)) == (Runtime.NODE, Runtime.COMPILED)


def test_what_has_ended_or_may_not_be_read_runs_nothing(tmp_path: Path) -> None:
    assert see_process(PID, tmp_path) == SeenProcess("")
    assert runtimes(SeenProcess("")) == ()


def test_kernels_come_in_the_order_of_runtimes_then_of_registration() -> None:
    kernels = {
        "first": (Runtime.PYTHON,),
        "second": (Runtime.COMPILED, Runtime.JAVA),
        "third": (Runtime.PYTHON,),
        "any": (),
    }
    assert suitable(kernels, [Runtime.JAVA, Runtime.PYTHON]) == ("second", "any", "first", "third")
    assert suitable(kernels, [Runtime.RUBY]) == ("any",)
    assert suitable(kernels, []) == ()
