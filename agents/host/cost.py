"""Cost of the agent: the CPU of itself and its descendants, as a share of the host's."""

from __future__ import annotations

import os

from agents.host.discovery import ProcessScan


class CostMeter:
    """Compares scans. Pauses of sampled processes are not included: they are not CPU time."""

    def __init__(self, cpus: int | None = None) -> None:
        self._cpus = cpus or os.cpu_count() or 1
        self._before: ProcessScan | None = None

    def share(self, scan: ProcessScan) -> float | None:
        """Return the share of the host's CPU since the scan that was given before; None if there was none."""
        before, self._before = self._before, scan
        if before is None or scan.uptime_s <= before.uptime_s:
            self._before = before or scan
            return None
        used_s = max(scan.own_cpu_s - before.own_cpu_s, 0.0)  # the CPU of children that others reap is lost
        return used_s / (scan.uptime_s - before.uptime_s) / self._cpus
