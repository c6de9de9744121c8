"""Command line and environment of a Smidgen process that another one starts."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pipeline.model.threads import SINGLE_THREADED


def smidgen_command(*arguments: str) -> list[str]:
    """Return the command line of a ``smidgen`` command of this installation."""
    script = Path(sys.executable).with_name("smidgen")
    if script.exists():
        return [sys.executable, str(script), *arguments]
    return [sys.executable, "-c", "from pipeline.cli import main; main()", *arguments]


def smidgen_environment(*dropped: str) -> dict[str, str]:
    """Return this process's environment without settings of Smidgen: whoever starts it gives all by flags.

    Variables that begin with one of ``dropped`` are left out too.
    """
    prefixes = ("SMIDGEN_", *dropped)
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(prefixes)}
    return inherited | SINGLE_THREADED | {"PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1"}
