"""What py-spy is asked for, and that the installed one does it."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import pytest

from agents.profiles.formats.collapsed import parse_collapsed
from agents.profiles.naming import name_stack
from agents.sampling.kernels import Sampling
from agents.sampling.kernels.pyspy import PySpy
from agents.sampling.process import StartedCommand
from agents.sampling.sampler import ProcessSampler

BURNER = """
def leaf():
    return sum(i * i for i in range(1000))
def branch():
    return leaf()
while True:
    branch()
"""


COMPRESSES = """
import os, zlib
DATA = os.urandom(1 << 16)
def packed():
    return zlib.compress(DATA, 9)
def plain():
    return [i * i for i in range(20000)]
while True:
    packed()
    plain()
"""


def asked(folder: Path, **how: Any) -> list[str]:
    """Return the command line of a run, from a stand-in that writes it down."""
    program = folder / "py-spy"
    written = folder / "command"
    program.write_text(
        f"#!{sys.executable}\nimport pathlib, sys\n"
        f"pathlib.Path({str(written)!r}).write_text('\\n'.join(sys.argv[1:]))\n"
    )
    program.chmod(0o755)
    sampling = Sampling(folder, time.time, rate_hz=101, longest_s=60, **how)
    run = PySpy(sampling, str(program)).start(4711, lambda: None)
    deadline = time.monotonic() + 60
    while run.exited is None and time.monotonic() < deadline:
        time.sleep(0.01)
    return written.read_text().split("\n")


@pytest.mark.parametrize("option", ["native", "idle", "subprocesses", "nonblocking"])
def test_an_option_is_passed_on_only_if_it_is_asked_for(tmp_path: Path, option: str) -> None:
    assert f"--{option}" not in asked(tmp_path)
    assert f"--{option}" in asked(tmp_path, **{option: True})


def test_a_process_is_sampled_without_a_pause(tmp_path: Path) -> None:
    (tmp_path / "burner.py").write_text(BURNER)
    command = StartedCommand([sys.executable, str(tmp_path / "burner.py")])
    kernel = PySpy(Sampling(tmp_path, time.time, rate_hz=101, longest_s=60, nonblocking=True))
    try:
        sampler = ProcessSampler(kernel, command, interval_s=1.0, clock=time.time)
        text = ""
        for taken, interval in enumerate(sampler.intervals(), 1):
            text += interval.data.decode()
            if (taken >= 2 and "leaf" in text) or taken > 60:
                sampler.stop()
    finally:
        command.stop()
    assert "branch" in text
    assert "leaf" in text


def test_native_frames_follow_the_python_that_called_them(tmp_path: Path) -> None:
    (tmp_path / "compresses.py").write_text(COMPRESSES)
    command = StartedCommand([sys.executable, str(tmp_path / "compresses.py")])
    kernel = PySpy(Sampling(tmp_path, time.time, rate_hz=101, longest_s=60, native=True))
    stacks: list[list[str]] = []
    try:
        sampler = ProcessSampler(kernel, command, interval_s=1.0, clock=time.time)
        for interval in sampler.intervals():
            found = parse_collapsed(interval.data).stacks
            stacks += [[frame.name for frame in name_stack(stack)] for stack in found]
            if any("deflate" in stack for stack in stacks) or len(stacks) > 10_000:
                sampler.stop()
    finally:
        command.stop()
    native = [stack for stack in stacks if "deflate" in stack]
    if not native:
        pytest.skip("zlib has no symbols here")
    for stack in native:
        order = [stack.index(name) for name in ("compresses.<module>", "compresses.packed", "deflate")]
        assert order == sorted(order)
        assert "compresses.plain" not in stack
