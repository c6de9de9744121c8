"""The wheel: what an environment runs that holds nothing but it, or its base install."""

from __future__ import annotations

import os
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

CLIENT = """
import importlib.util
from smidgen import client, inprocess, replay
from agents.host import service
from agents.profiles.message import ProfileOrigin, build_profile, encode_within

assert client.subscribe and inprocess.start and replay.Recorder
for heavy in ("numpy", "scipy", "statsmodels", "pyarrow", "plotly", "pandas", "clickhouse_connect", "faust"):
    assert importlib.util.find_spec(heavy) is None, heavy
profile = build_profile({("main", "work"): 3}, source=ProfileOrigin("shop", "h"), start=1e9, end=1e9 + 1)
assert encode_within(profile, 10_000)[0][0].samples == 3
"""

LOG = '10.0.0.1 - - [01/Mar/2026:12:0{}:05 +0000] "GET /cart HTTP/1.1" 200 5\n'

pytestmark = pytest.mark.slow


def run(*command: str | Path, folder: Path, code: int = 0) -> str:
    # Without what leads to this repository's own modules.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=400, check=False
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = (sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation")
    run("git", "clone", "--quiet", ROOT, folder / "source", folder=folder)  # building writes into the sources
    run(*build, "--wheel-dir", folder, folder / "source", folder=folder)
    (path,) = folder.glob("smidgen-*.whl")
    return path


def environment(folder: Path) -> Path:
    """Make a virtual environment and return its folder of programs."""
    uv = Path(sys.executable).with_name("uv")
    run(uv, "venv", "--quiet", "--python", sys.executable, "fresh", folder=folder)
    return folder / "fresh" / "bin"


def install(wheel: Path, bin_folder: Path, *options: str | Path) -> None:
    """Install the wheel from uv's cache, and where that lacks a package by pip's settings."""
    python, uv = bin_folder / "python", Path(sys.executable).with_name("uv")
    cached = (uv, "pip", "install", "--quiet", "--offline", "--python", python, *options, wheel)
    if subprocess.run(cached, capture_output=True, check=False).returncode:
        pip = (sys.executable, "-m", "pip", "--python", python)
        run(*pip, "install", "--quiet", *options, wheel, folder=bin_folder)


def test_the_wheel_holds_each_file_once_and_no_test(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert len(names) == len(set(names))
    assert not [name for name in names if name.startswith(("pipeline/public", "tests"))]
    data = {"pipeline/settings/topics.yaml", "smidgen/py.typed", "pipeline/views/report/page.html"}
    assert data <= set(names)


def test_the_sampler_runs_where_nothing_but_the_wheel_is_installed(wheel: Path, tmp_path: Path) -> None:
    programs = environment(tmp_path)
    install(wheel, programs, "--no-deps")
    run(programs / "python", "-c", PROGRAM, folder=tmp_path)


def test_the_base_install_runs_agents_and_names_the_extra_of_the_rest(wheel: Path, tmp_path: Path) -> None:
    programs = environment(tmp_path)
    install(wheel, programs, "--constraint", ROOT / "requirements.lock")
    smidgen = programs / "smidgen"
    run(programs / "python", "-c", CLIENT, folder=tmp_path)
    assert "worker" in run(smidgen, "--help", folder=tmp_path)
    assert "webhooks" in run(smidgen, "agent", "--help", folder=tmp_path)
    (tmp_path / "access.log").write_text("".join(LOG.format(minute) for minute in range(5)))
    log = ("agent", "logs", "access.log", "--service", "shop", "--table", "counts.csv")
    run(smidgen, *log, folder=tmp_path)
    assert (tmp_path / "counts.csv").stat().st_size
    for command, extra in {"alerts": "server", "demo": "embedded", "bench detect": "all"}.items():
        said = run(smidgen, *command.split(), folder=tmp_path, code=2)
        assert said == f"smidgen: numpy is not installed: pip install 'smidgen[{extra}]'\n"
    site = next((tmp_path / "fresh" / "lib").glob("python*/site-packages"))
    (site / "loadgen").rename(site / "elsewhere")
    said = run(smidgen, "demo", folder=tmp_path, code=2)
    assert said == "smidgen: loadgen is not installed: pip install 'smidgen[all]'\n"
