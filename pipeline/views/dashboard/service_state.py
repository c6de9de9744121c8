"""The state of a service: the last scans of its workloads, and the series that they could not judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.model import Unjudged
from pipeline.views.report.unjudged import describe_unjudged


@dataclass(frozen=True, slots=True)
class WorkloadState:
    """State of a service by one workload's last scan."""

    name: str
    last_scan: float  # end of the scanned span, epoch seconds
    scans: int  # in the span that was read
    series: int  # of the last scan
    candidates: int  # of the last scan
    unjudged: tuple[str, ...]  # reasons why series of the last scan could not be judged, in words
    judged: bool  # whether the last scan could judge any series


@dataclass(frozen=True, slots=True)
class ServiceState:
    """A service as a line of a list."""

    name: str
    samples_per_s: float  # in the hour before its last scan ended
    workloads: tuple[WorkloadState, ...]
    detectable: float | None = None  # detectable rise of a typical subroutine's gCPU; None: not computed

    @property
    def last_scan(self) -> float | None:
        """End of the last scan of any workload; None without one."""
        return max((workload.last_scan for workload in self.workloads), default=None)

    @property
    def series(self) -> int:
        """Most series in a workload's last scan."""
        return max((workload.series for workload in self.workloads), default=0)

    @property
    def gaps(self) -> tuple[str, ...]:
        """Reasons why the service is not judged, in words: one line a workload."""
        if not self.workloads:
            return ("not scanned yet: its history has to reach back far enough for a workload first",)
        return tuple(
            f"{workload.name}: {workload.unjudged[0]}"
            for workload in self.workloads
            if workload.unjudged and not workload.judged
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
            Unjudged(record["code"], record["series"], record["value"], record["bound"])
            for record in unjudged
            if record["workload"] == workload and record["time"] == row["time"]
        ]
        lacking.sort(key=lambda record: -record.series)
        without = max((record.series for record in lacking), default=0)
        states.append(
            WorkloadState(
                name=workload,
                last_scan=row["time"],
                scans=sum(record["workload"] == workload for record in scans),
                series=row["series"],
                candidates=row["candidates"],
                unjudged=tuple(
                    f"{describe_unjudged(record)} ({record.series:,} series)" for record in lacking
                ),
                judged=without < max(row["series"], 1),
            )
        )
    return ServiceState(name, samples_per_s, tuple(states))
