"""Processor time and memory of processes on a shared machine."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

from pipeline.model.errors import ConfigError

_RESET_PEAK = "5"  # of /proc/PID/clear_refs

_CPU_CLOCK = 2  # CPUCLOCK_SCHED of Linux: the scheduler's own count, in nanoseconds


def require_proc(bench: str) -> None:
    """Check that processes can be observed.

    Raises:
        ConfigError: this system has no /proc.
    """
    if not Path("/proc/self/status").exists():
        raise ConfigError(f"{bench}: needs /proc, as Linux has it")


def processor_s(pid: int) -> float:
    """Return the processor time of a process so far, in seconds, without its ended children."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def process_cpu_s(pid: int) -> float:
    """Return the processor time of a process so far, in seconds, to a microsecond or better.

    Read from the process's clock, see clock_getcpuclockid(3); its children are left out.
    """
    return time.clock_gettime(~pid << 3 | _CPU_CLOCK)


def peak_mb(pid: int) -> float:
    """Return the peak memory of a process since the last ``reset_peak``."""
    match = re.search(r"^VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    return round(int(match[1]) / 1024, 1) if match else 0.0


def reset_peak(pid: int) -> None:
    """Reset the peak memory of a process of this user: it is measured anew from now on."""
    Path(f"/proc/{pid}/clear_refs").write_text(_RESET_PEAK)
