"""Commits that a lab judges, with the expected verdicts."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Literal

from loadgen.target.history import Edit
from loadgen.target.repository import PACKAGE, apply_edit
from pipeline.files.validation import StrictModel, read_yaml, validate

FRONT = Path(__file__).with_name("front")


class LabCommit(StrictModel):
    """One commit on the base."""

    name: str
    title: str
    endpoint: str
    """Endpoint that is replayed."""
    metric: Literal["cpu_timing_ms", "downstream"]
    """Metric of this endpoint that the commit is about."""
    expected: Literal["fail", "pass"]
    """Verdict on the metric; no other metric may fail."""
    trials: int | None = None
    """Trials of an experiment, if fewer are needed than for CPU time."""
    edits: tuple[Edit, ...]

    @property
    def judged(self) -> str:
        """The metric's name in trials."""
        return f"{self.metric} {self.endpoint}"


class _Commits(StrictModel):
    commits: tuple[LabCommit, ...]


def read_commits() -> tuple[LabCommit, ...]:
    """Return the commits of commits.yaml."""
    path = Path(__file__).with_name("commits.yaml")
    return validate(_Commits, {"commits": read_yaml(path)}, str(path)).commits


def write_code(folder: Path, commit: LabCommit | None = None) -> Path:
    """Write the shop and its front into a new folder: the base, or a commit on it.

    Raises:
        ValueError: an edit does not fit.
    """
    folder.mkdir(parents=True)
    for package in (PACKAGE, FRONT):
        shutil.copytree(package, folder / package.name, ignore=shutil.ignore_patterns("__pycache__"))
    for edit in commit.edits if commit else ():
        apply_edit(folder, edit)
    return folder
