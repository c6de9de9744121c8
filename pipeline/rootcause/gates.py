"""The subroutines behind a gate (FBDetect §5.4.9).

A gate hides new code until a change of configuration opens it. That change modifies no code, so its
subroutines come from elsewhere: from a mapping, and from earlier changes of code that carry the same gate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pipeline.model import Change

Gates = Mapping[str, Sequence[str]]
"""Gate → the subroutines that read it, spelt as in stack frames."""


def affected_subroutines(
    changes: Sequence[Change], history: Sequence[Change], gates: Gates, *, lookback_s: float
) -> tuple[frozenset[str], ...]:
    """Return what each change affects: the subroutines that it modified, and those behind its gates.

    Args:
        changes: Candidates.
        history: Earlier changes of the service, the candidates among them or not.
        gates: What is known of gates besides.
        lookback_s: How long before a change the code behind its gate may have been deployed.
    """
    behind: dict[str, list[Change]] = {}
    for change in history:
        for gate in change.gates:
            behind.setdefault(gate, []).append(change)
    found = []
    for change in changes:
        names = set(change.subroutines)
        for gate in change.gates:
            names.update(gates.get(gate, ()))
            for earlier in behind.get(gate, ()):
                if change.time - lookback_s <= earlier.time <= change.time:
                    names.update(earlier.subroutines)
        found.append(frozenset(names))
    return tuple(found)
