"""The same layout of memory in each process: left to chance it makes equal code differ by a few percent."""

from __future__ import annotations

import ctypes
import os
import sys

_ADDR_NO_RANDOMIZE = 0x0040000
_ASK = 0xFFFFFFFF
_SEED = "PYTHONHASHSEED"


def fix_layout() -> None:
    """Start this program anew without random addresses and hashes, where the system allows it."""
    libc = ctypes.CDLL(None)
    personality = getattr(libc, "personality", None)
    if personality is None or os.environ.get(_SEED) == "0":
        return
    personality(ctypes.c_ulong(personality(ctypes.c_ulong(_ASK)) | _ADDR_NO_RANDOMIZE))
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], {**os.environ, _SEED: "0"})
