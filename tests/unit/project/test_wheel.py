"""The wheel: what an environment has that holds nothing but it."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.support.paths import ROOT

PROGRAM = """
import smidgen, smidgen.inprocess, sys
assert smidgen.__version__
assert not {"numpy", "pydantic", "aiokafka"} & set(sys.modules)
smidgen.inprocess.start(service="shop", send_to="file:out.jsonl")
smidgen.inprocess.stop()
"""


def run(*command: str | Path, folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_the_sampler_runs_where_nothing_but_the_wheel_is_installed(tmp_path: Path) -> None:
    build = (sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation")
    run(
        "git", "clone", "--quiet", ROOT, tmp_path / "source", folder=tmp_path
    )  # building writes into the sources
    run(*build, "--wheel-dir", tmp_path, tmp_path / "source", folder=tmp_path)
    (wheel,) = tmp_path.glob("smidgen-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert len(names) == len(set(names))
    assert not [name for name in names if name.startswith(("pipeline/public", "tests"))]
    assert {"pipeline/settings/topics.yaml", "smidgen/py.typed", "pipeline/views/report/page.html"} <= set(
        names
    )
    uv = Path(sys.executable).with_name("uv")
    run(uv, "venv", "--quiet", "--python", sys.executable, "fresh", folder=tmp_path)
    run(uv, "pip", "install", "--quiet", "--no-deps", "--python", "fresh", wheel, folder=tmp_path)
    run(tmp_path / "fresh" / "bin" / "python", "-c", PROGRAM, folder=tmp_path)
