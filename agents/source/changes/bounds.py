"""Bounds of a change in a message of the ``changes`` topic, and the parts that are cut to meet them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

import orjson

from pipeline.model import Change

MAX_TEXT = 4000
MAX_SUMMARY = 20_000
"""Longest title, name or path, and longest summary, in characters."""

FILES_BYTES = 300_000
SUBROUTINES_BYTES = 500_000
"""Most bytes of the lists of a change in its message."""


def fit(change: Change) -> tuple[Change, list[str]]:
    """Return the change cut to its bounds, and the number of entries left out of each list."""
    files = _within(change.files, FILES_BYTES)
    subroutines = _within(change.subroutines, SUBROUTINES_BYTES)
    left_out = []
    if len(files) < len(change.files):
        left_out.append(f"{len(change.files) - len(files)} of {len(change.files)} files")
    if len(subroutines) < len(change.subroutines):
        lost = len(change.subroutines) - len(subroutines)
        left_out.append(f"{lost} of {len(change.subroutines)} subroutines")
    if len(change.summary) > MAX_SUMMARY:
        left_out.append(f"the summary after {MAX_SUMMARY} characters")
    fitted = replace(
        change,
        title=change.title[:MAX_TEXT],
        author=change.author[:MAX_TEXT],
        summary=change.summary[:MAX_SUMMARY],
        files=files,
        subroutines=subroutines,
    )
    return fitted, left_out


def _within(texts: Sequence[str], max_bytes: int) -> tuple[str, ...]:
    """Return as many of the first texts as fit, each cut to MAX_TEXT; their size is as JSON writes them."""
    cut = [text[:MAX_TEXT] for text in texts]
    sizes = itertools.accumulate(len(orjson.dumps(text)) + 1 for text in cut)
    return tuple(text for text, size in zip(cut, sizes, strict=True) if size <= max_bytes)
