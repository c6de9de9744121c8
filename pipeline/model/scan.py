"""One look at one service by one workload."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.model.candidate import Candidate, Dropped, Joined


@dataclass(frozen=True, slots=True)
class Unjudged:
    """Series that a scan could not judge for one reason, with the number that fell short of its bound."""

    code: str  # why: one of pipeline.analysis.detect.unjudged.CODES
    series: int
    value: float
    bound: float


@dataclass(frozen=True, slots=True)
class Rename:
    """A subroutine's former name, and the one that it has when a scan ends."""

    former: str
    name: str


@dataclass(frozen=True, slots=True)
class Scan:
    """One look at one service by one workload: [start, end) with everything found and dropped so far."""

    service: str
    workload: str
    start: float
    analysis_start: float
    analysis_end: float  # where the extended window begins; equals ``end`` without one
    end: float
    series: int  # how many series were scanned
    candidates: tuple[Candidate, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    grown: tuple[Candidate, ...] = ()  # what a regression of an earlier scan has become; also in ``dropped``
    joined: tuple[Joined, ...] = ()  # what belongs to regressions of earlier scans; also in ``dropped``
    part: int = 0
    parts: int = 1
    attempt: str = ""  # which cut the part is of; empty of a scan in one part, and of former versions' parts
    share_factor: tuple[float, ...] | None = None
    """By which all shares moved in each window of the scan; empty where that is not known, None where the
    detector did not say. Part 0 holds it, up to the filters."""
    resolution_s: float | None = None  # of its windows, where they are wider than the workload's
    unjudged: tuple[Unjudged, ...] = ()  # what the detector could not judge; part 0 holds it
    renames: tuple[Rename, ...] = ()
    """Learnt by the detector from the scan's own data; the stages read what has a former name by these."""
    silent_partitions: int = 0  # whose data end where the scan looks for a change, so that some may come late
