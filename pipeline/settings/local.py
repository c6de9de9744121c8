"""The pipeline that runs on this machine: where ``smidgen up`` says it is, for every other command.

The state file stands in the user's runtime folder, or in the state folder where there is none
(XDG Base Directory Specification). It names the process that wrote it by its id and the moment at which it
started, so that a file that was left behind is recognised even if the id is another's by now.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from pipeline.files.validation import StrictModel
from pipeline.model.errors import file_errors


class LocalPipeline(StrictModel):
    """What runs here, as other commands need it."""

    pid: int = Field(gt=0)
    """Of the ``smidgen up`` that keeps it running."""
    started: str
    """When that process started, in the kernel's ticks: a later one with its id has another."""
    broker: str
    store: str
    workloads: tuple[str, ...]
    window_s: float
    stack_window_s: float
    dashboard: str = ""

    def settings(self) -> dict[str, Any]:
        """Return the settings that it stands for, by their spelling in a file."""
        return {
            "broker": self.broker,
            "store": self.store,
            "workloads": list(self.workloads),
            "window": self.window_s,
            "stack_window": self.stack_window_s,
        }


def state_file(environ: Mapping[str, str]) -> Path:
    """Return the path of the state file of this user on this machine."""
    if runtime := environ.get("XDG_RUNTIME_DIR"):
        return Path(runtime) / "smidgen" / "up.json"
    home = Path(environ.get("HOME") or "/")
    return Path(environ.get("XDG_STATE_HOME") or home / ".local" / "state") / "smidgen" / "up.json"


def find_local(path: Path) -> LocalPipeline | None:
    """Return what runs here; None if nothing does, or if the file was left behind by what has ended."""
    try:
        if path.stat().st_uid != os.geteuid():  # what others write is not believed
            return None
        found = LocalPipeline.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None
    return found if found.started == started_at(found.pid) else None


def remember(path: Path, running: LocalPipeline) -> None:
    """Write the state file at once or not at all, for this user's eyes only.

    Raises:
        ConfigError: the folder cannot be written.
    """
    with file_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        partial = path.with_suffix(f".{running.pid}")
        partial.unlink(missing_ok=True)
        with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            json.dump(running.model_dump(mode="json"), file)
        partial.replace(path)


def forget(path: Path, pid: int) -> None:
    """Remove the state file if it is this process's."""
    found = find_local(path)
    if found is not None and found.pid == pid:
        path.unlink(missing_ok=True)


def started_at(pid: int) -> str:
    """Return when a process started, as the kernel counts; empty if there is none or it has ended."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    fields = status.rpartition(")")[2].split()
    return "" if fields[0] in "ZX" else fields[19]
