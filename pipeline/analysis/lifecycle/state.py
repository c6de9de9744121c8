"""Open regressions, and their updates by scans."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from pipeline.model import Candidate, Change, SeriesKey, Suspect

UpdateKind = Literal["updated", "resolved"]


@dataclass(frozen=True, slots=True)
class OpenRegression:
    """A regression that was reported and has not been resolved since."""

    id: str
    candidate: Candidate  # as it was reported, with its group
    levels: Mapping[SeriesKey, float] = field(default_factory=dict)  # that later updates reported

    def member(self, series: SeriesKey) -> Candidate | None:
        """Return the reported candidate of one of its series; None if the series is not part of it."""
        every = (self.candidate, *self.candidate.group)
        return next((c for c in every if c.series == series), None)

    def last_level(self, series: SeriesKey) -> float | None:
        """Return the level of one of its series that was reported last."""
        member = self.member(series)
        return self.levels.get(series, member.after) if member else None

    @property
    def own_level(self) -> float:
        """The level of its own metric that was reported last."""
        return self.levels.get(self.candidate.series, self.candidate.after)


@dataclass(frozen=True, slots=True)
class Update:
    """Course of a regression, as one scan found it."""

    kind: UpdateKind
    regression: OpenRegression
    service: str
    workload: str
    time: float  # end of the scan, epoch seconds
    change_time: float  # when the series escalated or returned
    level: float  # of the regression's own metric now
    escalated: Candidate | None = None  # updated: the escalated series; ``before`` is the level reported last
    joined: tuple[Candidate, ...] = ()  # updated: series that rise with it, found by this scan
    changes: tuple[Change, ...] = ()  # resolved: changes that may have fixed it, the latest first
    suspects: tuple[Suspect, ...] = ()  # updated: suspects that only the joined series have

    @property
    def share_remaining(self) -> float:
        """Share of the regression that remains: 1 as it was reported, 0 at the level before it."""
        reported = self.regression.candidate
        return (self.level - reported.before) / reported.delta if reported.delta else 1.0
