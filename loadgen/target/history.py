"""History of the shop after its first commit: small edits, as people make them, and their effects."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pipeline.files.validation import StrictModel, read_yaml, validate

CommitKind = Literal["initial", "harmless", "slow", "refactor"]
"""What a commit does to the service's speed; only ``slow`` ones are to be reported."""

SLOW_SUBROUTINE = "shop.search.Index.rank"
"""The subroutine that the slow commit makes do more work."""


class Edit(StrictModel):
    """Replacement of the only occurrence of ``old`` in a file; an empty ``old`` creates the file."""

    path: str
    old: str = ""
    new: str


class ShopCommit(StrictModel):
    """One commit. ``age_h`` is its age in hours before the demo."""

    kind: CommitKind
    title: str
    body: str = ""
    author: str
    age_h: float
    edits: tuple[Edit, ...] = ()


class _History(StrictModel):
    commits: tuple[ShopCommit, ...]


def read_history() -> tuple[ShopCommit, ...]:
    """Return the commits of history.yaml, the oldest first."""
    path = Path(__file__).with_name("history.yaml")
    return validate(_History, {"commits": read_yaml(path)}, str(path)).commits
