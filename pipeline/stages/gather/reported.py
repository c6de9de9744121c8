"""What dedup knows as it works through a scan: what was told before, and what becomes of the candidates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from pipeline.codec.events import regression_id
from pipeline.model import Candidate, Dropped, Joined, Scan
from pipeline.stages.gather.history import Memory

_MOST_MEMBERS = 100
"""Members of a group that are remembered: so many parts of one release are no chance already."""


@dataclass(frozen=True, slots=True)
class ToldBefore:
    """What earlier scans passed on: each group's regressions, and the other members of the groups."""

    regressions: Sequence[Memory] = ()
    members: Sequence[Memory] = ()

    def within(self, scan: Scan, cluster: Sequence[Candidate]) -> ToldBefore:
        """Return what concerns candidates of one time.

        A slow rise may have begun long before the scan's windows, and been told then; what stepped before
        them has nothing to do with what steps now.
        """
        if any(candidate.kind == "long_term" for candidate in cluster):
            return self
        return ToldBefore(
            *(
                [m for m in some if m.candidate.change_time >= scan.start]
                for some in (self.regressions, self.members)
            )
        )


@dataclass(slots=True)
class Outcome:
    """What becomes of candidates of a scan."""

    unique: list[Candidate] = field(default_factory=list)
    joined: list[Joined] = field(default_factory=list)
    dropped: list[Dropped] = field(default_factory=list)

    def take(self, other: Outcome, scan: Scan) -> list[Memory]:
        """Take in what becomes of others, and return what is passed on of them.

        What joins a regression that this very scan tells becomes a member of it.
        """
        places = {_id(scan, candidate): place for place, candidate in enumerate(self.unique)}
        told = [Memory(candidate, _id(scan, candidate)) for candidate in other.unique]
        self.unique += other.unique
        self.dropped += other.dropped
        for joined in other.joined:
            told.append(Memory(joined.candidate, joined.regression, leads=False))
            place = places.get(joined.regression)
            if place is None:
                self.joined.append(joined)
            else:
                self.unique[place] = _with_member(self.unique[place], joined.candidate)
        return told


def parts_of(memory: Memory) -> list[Memory]:
    """Return the members of a group that is passed on as memories, the largest if they are many."""
    return [replace(memory, candidate=member, leads=False) for member in largest_members(memory.candidate)]


def largest_members(leader: Candidate) -> list[Candidate]:
    """Return the subroutines of a group that are worth to know of, the largest if they are many."""
    members = [c for c in leader.group if c.metric_kind == "subroutine"]
    return sorted(members, key=lambda c: (-abs(c.delta), c.metric))[:_MOST_MEMBERS]


def _id(scan: Scan, candidate: Candidate) -> str:
    return regression_id(scan.service, scan.workload, candidate, scan.end)


def _with_member(leader: Candidate, other: Candidate) -> Candidate:
    """Return a regression with one more member, and those of that one."""
    return replace(leader, group=(*leader.group, replace(other, group=(), passed=()), *other.group))
