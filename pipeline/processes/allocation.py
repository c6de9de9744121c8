"""The memory that a process keeps for arrays to come."""

from __future__ import annotations

import ctypes
import sys

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of mallopt(3)

KEPT_BYTES = 128 << 20
"""Of free memory: more goes back to the kernel."""

_LARGEST_BYTES = 32 << 20
"""Of an array that is kept; glibc allows no more."""


def keep_freed_memory() -> None:
    """Have the C library keep the memory of arrays that are freed for the next ones.

    As it comes glibc gives arrays of a few megabytes back at once. The kernel then clears each page of the
    next one anew, which takes longer than most of what is computed in it. Only glibc has this setting.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, _LARGEST_BYTES)
        mallopt(_TRIM_THRESHOLD, KEPT_BYTES)
