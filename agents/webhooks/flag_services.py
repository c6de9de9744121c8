"""Flag services that may send webhooks: which gates of which environment switch which service."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Literal

from agents.source.gates.flips import Flip, flip_change
from pipeline.model import Change

FlagServiceKind = Literal["launchdarkly", "unleash", "flagsmith", "openfeature"]


@dataclass(frozen=True, slots=True)
class FlagRule:
    """Flips that are changes of a service; each pattern is a glob."""

    service: str
    project: str = "*"
    environment: str = "*"
    gates: str = "*"

    def wants(self, flip: Flip) -> bool:
        """Return whether a flip is one of the service's."""
        return (
            fnmatchcase(flip.gate, self.gates)
            and fnmatchcase(flip.project, self.project)
            and fnmatchcase(flip.environment, self.environment)
        )


@dataclass(frozen=True, slots=True)
class FlagSource:
    """A flag service that may send webhooks."""

    name: str
    kind: FlagServiceKind
    rules: tuple[FlagRule, ...]
    secret: str = field(repr=False)

    def changes(self, flips: Sequence[Flip]) -> list[Change]:
        """Return flips as changes of the services that they switch."""
        return [
            flip_change(flip, service)
            for flip in flips
            for service in dict.fromkeys(rule.service for rule in self.rules if rule.wants(flip))
        ]
