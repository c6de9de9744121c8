"""Names that a simulated service shows: as its language spells them, and as they are at the time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from loadgen.fleet.callgraph import Stack
from loadgen.fleet.inject.effects import Injected
from loadgen.fleet.scenario import GraphSpec
from loadgen.fleet.spelling import Spelling
from pipeline.model import Change
from pipeline.model.frames import series_of


class Written:
    """Stacks, changes and truth of a fleet with the names that are visible outside."""

    def __init__(self, graph: GraphSpec, injected: Sequence[Injected]) -> None:
        self._spelling = Spelling("python" if graph.profile else graph.language)
        self._annotated = graph.annotated
        renamed = [renamed for injection in injected for renamed in injection.renamed]
        self._renamed = sorted(renamed, key=lambda injection: injection.at)

    def stacks(self, stacks: Iterable[Stack]) -> tuple[Stack, ...]:
        """Return stacks as samplers print them, in the same order; endpoints only if they are shown."""
        return tuple(
            tuple(self._spelling.frame(label) for label in stack if self._shown(label)) for stack in stacks
        )

    def changes(self, changes: Iterable[Change]) -> list[Change]:
        """Return changes that name subroutines as their sources do at deployment."""
        return [replace(change, subroutines=self._declared(change)) for change in changes]

    def forms(self, kind: str, name: str) -> list[str]:
        """Return every spelling of a series over the fleet's time, the first spelling first."""
        if kind != "subroutine":
            return [name]
        now = {name: None}
        for renamed in self._renamed:
            now |= {renamed.names[form]: None for form in tuple(now) if form in renamed.names}
        return [self._spelling.frame(form) for form in now]

    def truth(self, row: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a row of the truth; a series that a refactoring renamed is in it by both names."""
        kinds = {name: kind for kind, name, _ in row["series"]}
        shown = [name for name in row["subroutines"] if self._annotated or kinds[name] != "endpoint"]
        series = [
            [kind, form, delta]
            for kind, name, delta in row["series"]
            if self._annotated or kind != "endpoint"
            for form in self.forms(kind, name)
        ]
        names = [form for name in shown for form in self.forms(kinds[name], name)]
        return {**row, "subroutines": list(dict.fromkeys(names)), "series": series}

    def _declared(self, change: Change) -> tuple[str, ...]:
        return tuple(self._spelling.declared(self._now(name, change.time)) for name in change.subroutines)

    def _now(self, name: str, at: float) -> str:
        for renamed in self._renamed:
            if renamed.in_source and at >= renamed.at:
                name = renamed.names.get(name, name)
        return name

    def _shown(self, label: str) -> bool:
        return self._annotated or series_of(label)[0] != "endpoint"
