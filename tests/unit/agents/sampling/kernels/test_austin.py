"""Austin: what it is asked for, how it fails, and the installed one on a Python program."""

from __future__ import annotations

import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from agents.profiles.formats.collapsed import parse_collapsed
from agents.profiles.naming import name_stack
from agents.sampling.kernels import SamplerError, Sampling
from agents.sampling.kernels.austin import Austin, explain, find_austin, shortened
from agents.sampling.process import ExistingProcess, StartedCommand
from agents.sampling.sampler import Sampler

BUSY = """
class Shop:
    def total(self):
        for _ in range(20000): pass
    def taxes(self):
        for _ in range(60000): pass
while True:
    Shop().total()
    Shop().taxes()
"""

STAND_IN = """#!{python} -S
import signal, sys
open({folder!r} + "/asked", "w").write(" ".join(sys.argv[1:]))
if {said!r}:
    sys.exit({said!r})
signal.signal(signal.SIGINT, lambda *_: sys.exit())
print("# austin: 3.7.0\\n# interval: 90909\\n# mode: cpu\\n")
print("P7;T0:7;/srv/shop.py:<module>:9;/srv/shop.py:Shop.total:3 181818")
print("P7;T0:7;/srv/shop.py:<module>:9 90909", flush=True)
signal.pause()
"""


def make_stand_in(folder: Path, said: str = "") -> str:
    program = folder / "austin"
    program.write_text(STAND_IN.format(python=sys.executable, folder=str(folder), said=said))
    program.chmod(0o755)
    return str(program)


def make_sampling(folder: Path, rate_hz: int = 11, **how: Any) -> Sampling:
    return Sampling(folder, time.time, rate_hz=rate_hz, longest_s=60, **how)


@pytest.mark.parametrize(
    ("how", "options"),
    [({}, "-P -s"), ({"idle": True}, "-P"), ({"subprocesses": True}, "-P -s -C")],
    ids=["usual", "idle", "subprocesses"],
)
def test_what_it_is_asked_for(
    tmp_path: Path, target: ExistingProcess, how: dict[str, bool], options: str
) -> None:
    kernel = Austin(make_sampling(tmp_path, **how), make_stand_in(tmp_path))
    sampler = Sampler(kernel, target, interval_s=0.5, clock=time.time)
    running = sampler.intervals()
    first = next(running)
    sampler.stop()
    assert [interval.data for interval in running] == [b""]
    assert parse_collapsed(first.data).stacks == {
        ("<module> (shop.py)", "Shop.total (shop.py)"): 2,
        ("<module> (shop.py)",): 1,
    }
    assert (tmp_path / "asked").read_text() == f"{options} -i 90909 -p {target.pid}"


def test_a_run_that_fails_says_why(tmp_path: Path, target: ExistingProcess) -> None:
    kernel = Austin(make_sampling(tmp_path), make_stand_in(tmp_path, "Insufficient permissions."))
    sampler = Sampler(kernel, target, interval_s=0.5, clock=time.time)
    with pytest.raises(SamplerError, match="process .*: not permitted: austin needs root"):
        list(sampler.intervals())


def test_files_begin_at_the_outermost_package(tmp_path: Path) -> None:
    folder = tmp_path / "srv" / "shop" / "cart"
    folder.mkdir(parents=True)
    for package in (folder, folder.parent):
        (package / "__init__.py").touch()
    frames = {
        "Cart.total (/srv/shop/cart/price.py:7)": "Cart.total (shop/cart/price.py)",
        "main (/srv/main.py:7)": "main (main.py)",
        "load (<frozen importlib._bootstrap>:7)": "load (<frozen importlib._bootstrap>)",
        "read_[k]": "read_[k]",
    }
    assert {frame: shortened(frame, tmp_path) for frame in frames} == frames


def test_complaints() -> None:
    assert "no Python in it" in explain("Cannot attach to process 7")
    assert explain("first\nlast\n") == "austin: last"
    assert explain("") == "austin ended"


def test_what_it_cannot_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SamplerError, match="leave out --native"):
        Austin(make_sampling(tmp_path, native=True), "austin")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    with pytest.raises(SamplerError, match="austin is not installed: pip install austin-dist"):
        Austin(make_sampling(tmp_path))


def test_shares_of_a_python_program_are_right(tmp_path: Path) -> None:
    try:
        kernel = Austin(make_sampling(tmp_path, rate_hz=499), find_austin())
    except SamplerError as error:
        pytest.skip(str(error))
    (tmp_path / "busy.py").write_text(BUSY)
    command = StartedCommand([sys.executable, str(tmp_path / "busy.py")])
    leaves = Counter[str]()
    try:
        sampler = Sampler(kernel, command, interval_s=0.5, clock=time.time)
        for interval in sampler.intervals():
            for stack, count in parse_collapsed(interval.data).stacks.items():
                leaves[name_stack(stack)[-1].name] += count
            if leaves.total() > 500:
                sampler.stop()
    except SamplerError as error:
        pytest.skip(str(error))
    finally:
        command.stop()
    inside = leaves["busy.Shop.total"] + leaves["busy.Shop.taxes"]
    assert inside > 0.9 * leaves.total()
    assert leaves["busy.Shop.total"] / inside == pytest.approx(0.25, abs=0.1)
