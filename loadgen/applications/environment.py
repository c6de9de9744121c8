"""Environment with the applications' packages, in the versions and with the hashes of requirements.lock."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from pipeline.model.errors import SmidgenError

LOCK = Path(__file__).with_name("requirements.lock")


class NotInstalled(SmidgenError):
    """The applications' packages cannot be installed."""


def install(folder: Path) -> Path:
    """Create the environment in a folder unless it exists; return its Python.

    Raises:
        NotInstalled: pip fails; the text holds the end of pip's output.
    """
    python = folder / "bin" / "python"
    done = folder / LOCK.name
    if done.exists() and done.read_bytes() == LOCK.read_bytes():
        return python
    _run([sys.executable, "-m", "venv", "--clear", str(folder)])
    _run([str(python), "-m", "pip", "install", "--quiet", "--require-hashes", "-r", str(LOCK)])
    done.write_bytes(LOCK.read_bytes())
    return python


def _run(command: list[str]) -> None:
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        last = (result.stderr.strip().splitlines() or ["nothing was said"])[-1]
        raise NotInstalled(f"{' '.join(command[1:4])}: {last}")
