"""The code behind a gate (FBDetect §5.4.9): its subroutines, and the changes that brought it.

A gate hides new code until a change of configuration opens it. That change modifies no code, so its
subroutines come from elsewhere: from a mapping, and from earlier changes of code that carry the same gate or
whose diff names it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from pipeline.model import Change

Gates = Mapping[str, Sequence[str]]
"""Gate → the subroutines that read it, spelt as in stack frames."""

SHORTEST_NAME = 4
"""Shortest gate name, in characters, that is searched for in diffs: shorter ones are words of any code."""

MOST_SWITCHED = 3
"""Most changes that are named beside a flip."""

_SETTINGS = (".json", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".conf", ".properties", ".env")


class GateHistory:
    """The changes behind each gate, for queries by time; diffs are searched once for each gate."""

    def __init__(self, history: Sequence[Change]) -> None:
        self._history = history
        self._behind: dict[str, list[Change]] = {}

    def behind(self, gate: str) -> list[Change]:
        """Return the changes that carry a gate or name it in their diff, in the history's order."""
        if gate not in self._behind:
            named = _named_whole(gate)
            self._behind[gate] = [
                change
                for change in self._history
                if gate in change.gates or (named and gate in change.content and named.search(change.content))
            ]
        return self._behind[gate]

    def before(self, flip: Change, gate: str, lookback_s: float) -> list[Change]:
        """Return the changes behind a gate that were deployed before a flip, or with it."""
        return [
            change
            for change in self.behind(gate)
            if flip.time - lookback_s <= change.time <= flip.time and change.id != flip.id
        ]


def affected_subroutines(
    changes: Sequence[Change], history: GateHistory, gates: Gates, *, lookback_s: float
) -> tuple[frozenset[str], ...]:
    """Return the subroutines that each change affects: modified ones, and for a flip those behind its gates.

    A change of code that only reads a gate does not switch what others put behind it.

    Args:
        changes: Candidates.
        history: Of earlier changes of the service, the candidates among them or not.
        gates: What is known of gates besides.
        lookback_s: How long before a change the code behind its gate may have been deployed.
    """
    affected = []
    for change in changes:
        names = set(change.subroutines)
        for gate in () if _brings_code(change) else change.gates:
            names.update(gates.get(gate, ()))
            for earlier in history.before(change, gate, lookback_s):
                names.update(earlier.subroutines)
        affected.append(frozenset(names))
    return tuple(affected)


def switched_changes(flip: Change, history: GateHistory, *, lookback_s: float) -> tuple[Change, ...]:
    """Return the changes of code that a flip switches, the latest first, at most MOST_SWITCHED.

    Args:
        flip: A change that carries gates; other changes, and changes of code that reads gates, switch
            nothing.
        history: Of earlier changes of the service.
        lookback_s: How long before the flip they may have been deployed.
    """
    if _brings_code(flip):
        return ()
    switched = {
        change.id: change
        for gate in flip.gates
        for change in history.before(flip, gate, lookback_s)
        if _is_code(change)
    }
    return tuple(sorted(switched.values(), key=lambda change: (-change.time, change.id))[:MOST_SWITCHED])


def _is_code(change: Change) -> bool:
    """Return whether a change is of code, and no earlier flip."""
    return bool(change.subroutines) or _brings_code(change)


def _brings_code(change: Change) -> bool:
    """Return whether a diff changes more than files of settings, which a flip may change, too."""
    return bool(change.content) and not all(file.endswith(_SETTINGS) for file in change.files)


def _named_whole(gate: str) -> re.Pattern[str] | None:
    """Return a pattern of a gate's whole name for diffs; None if the name is too short to be specific."""
    return re.compile(rf"(?<![\w-]){re.escape(gate)}(?![\w-])") if len(gate) >= SHORTEST_NAME else None
