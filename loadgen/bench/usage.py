"""What processes take of a machine that others use as well: processor time and memory."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

from pipeline.model.errors import ConfigError

_RESET_PEAK = "5"  # of /proc/PID/clear_refs

_CPU_CLOCK = 2  # CPUCLOCK_SCHED of Linux: the scheduler's own count, in nanoseconds


def require_proc(bench: str) -> None:
    """Check that processes can be looked at.

    Raises:
        ConfigError: this system has no /proc.
    """
    if not Path("/proc/self/status").exists():
        raise ConfigError(f"{bench}: needs /proc, as Linux has it")


def processor_s(pid: int) -> float:
    """Return the processor time of a process so far, in seconds; what it ended itself is left out."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def process_cpu_s(pid: int) -> float:
    """Return the processor time of a process so far, in seconds, to a microsecond and better.

    The clock of a process, as clock_getcpuclockid(3) names it; those that it started are left out.
    """
    return time.clock_gettime(~pid << 3 | _CPU_CLOCK)


def peak_mb(pid: int) -> float:
    """Return the most memory that a process has taken since the last ``reset_peak``."""
    match = re.search(r"^VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    return round(int(match[1]) / 1024, 1) if match else 0.0


def reset_peak(pid: int) -> None:
    """Forget the most memory that a process of this user has taken; from now on it is measured anew."""
    Path(f"/proc/{pid}/clear_refs").write_text(_RESET_PEAK)
