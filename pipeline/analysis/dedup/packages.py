"""Packages that changes name in words: what those modify that name no subroutine.

The upgrade of a library modifies code of another repository, so that no subroutine of it is known; but its
title says of which package it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from pipeline.analysis.stacks import StackIndex
from pipeline.counting.names import owner_of
from pipeline.model import Change

_NAME = re.compile(r"[\w@][\w@.:/\\#-]*\w")

MOST_OF_ALL = 0.5
"""Share of all samples from which on a package is too much of the service to say anything of a rise in it."""


def modified_by(
    changes: Iterable[Change], index: StackIndex, *, words: bool = True
) -> dict[str, Sequence[str]]:
    """Return the subroutines that each change modified, by its id.

    Of a change that names none, those are all of the packages that its title or summary names in full, as
    stacks spell them.

    Args:
        changes: Deployed ones.
        index: Of the stacks around them.
        words: Whether to look at titles and summaries.
    """
    every = {change.id: change for change in changes}
    found: dict[str, Sequence[str]] = {change.id: change.subroutines for change in every.values()}
    silent = [change for change in every.values() if not change.subroutines] if words else []
    if not silent:
        return found
    named = {change.id: set(_NAME.findall(f"{change.title}\n{change.summary}")) for change in silent}
    members = _members(index, set().union(*named.values()))
    for change, names in named.items():
        found[change] = sorted(set().union(*(members.get(name, ()) for name in names)))
    return found


def _members(index: StackIndex, names: set[str]) -> dict[str, list[str]]:
    """Return the subroutines of those names that are packages, but not of what most of the service is."""
    members: dict[str, list[str]] = {}
    for label, is_subroutine in zip(index.names, index.subroutine.tolist(), strict=True):
        owner = label if is_subroutine else ""
        while owner:
            if owner in names:
                members.setdefault(owner, []).append(label)
            owner = owner_of(owner)
    matrix = index.matrix
    total = max(matrix.total_before + matrix.total_after, 1.0)
    counts = matrix.before + matrix.after
    return {
        name: labels
        for name, labels in members.items()
        if float(counts[index.holding(labels)].sum()) < MOST_OF_ALL * total
    }
