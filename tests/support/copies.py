"""Copy of the program with a few lines changed, to try out what an extension takes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.support.paths import ROOT

Edits = Mapping[str, Mapping[str, str]]
"""By the path of a file: each piece of text that stands in it once, and what it becomes.

A new file has its whole text for the piece ``""``.
"""


def run_with(edits: Edits, program: str, folder: Path) -> None:
    """Run a program against a copy of the packages with edits; its exit code reports success."""
    for package in {"pipeline", *(path.partition("/")[0] for path in edits)}:
        shutil.copytree(ROOT / package, folder / package)
    for path, pieces in edits.items():
        text = "" if "" in pieces else (folder / path).read_text()
        for before, after in pieces.items():
            assert text.count(before) == 1, f"{path}: {before}"
            text = text.replace(before, after)
        (folder / path).write_text(text)
    command = [sys.executable, "-c", program]
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
