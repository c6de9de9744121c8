"""The state of a service: when its workloads looked at it, and what they could not judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.model import Unjudged
from pipeline.views.report.unjudged import describe_unjudged


@dataclass(frozen=True, slots=True)
class WorkloadState:
    """What one workload last saw of a service."""

    name: str
    last_scan: float  # end of the scanned span, epoch seconds
    scans: int  # of the span that was read
    series: int  # of the last scan
    candidates: int  # of the last scan
    unjudged: tuple[str, ...]  # why series of the last scan could not be judged, in words
    judged: bool  # whether the last scan could judge any


@dataclass(frozen=True, slots=True)
class ServiceState:
    """A service as a line of a list."""

    name: str
    samples_per_s: float  # in the hour before its last scan ended
    workloads: tuple[WorkloadState, ...]
    detectable: float | None = None  # gCPU by which a typical subroutine has to rise; None: not worked out

    @property
    def last_scan(self) -> float | None:
        """End of the last scan of any workload; None if there was none yet."""
        return max((one.last_scan for one in self.workloads), default=None)

    @property
    def series(self) -> int:
        """Most series that a workload's last scan saw."""
        return max((one.series for one in self.workloads), default=0)

    @property
    def gaps(self) -> tuple[str, ...]:
        """What keeps the service from being judged, in words: one line a workload that could not."""
        if not self.workloads:
            return ("not scanned yet: its history has to reach back far enough for a workload first",)
        return tuple(
            f"{one.name}: {one.unjudged[0]}" for one in self.workloads if one.unjudged and not one.judged
        )


def service_state(
    name: str,
    scans: Sequence[Mapping[str, Any]],
    unjudged: Sequence[Mapping[str, Any]],
    samples_per_s: float,
) -> ServiceState:
    """Return a service's state from its rows of ``scans`` and ``unjudged``, oldest first."""
    last = {row["workload"]: row for row in scans}
    states = []
    for workload, row in sorted(last.items()):
        lacking = [
            Unjudged(one["code"], one["series"], one["value"], one["bound"])
            for one in unjudged
            if one["workload"] == workload and one["time"] == row["time"]
        ]
        lacking.sort(key=lambda one: -one.series)
        without = max((one.series for one in lacking), default=0)
        states.append(
            WorkloadState(
                name=workload,
                last_scan=row["time"],
                scans=sum(one["workload"] == workload for one in scans),
                series=row["series"],
                candidates=row["candidates"],
                unjudged=tuple(f"{describe_unjudged(one)} ({one.series:,} series)" for one in lacking),
                judged=without < max(row["series"], 1),
            )
        )
    return ServiceState(name, samples_per_s, tuple(states))
