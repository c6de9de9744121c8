"""A program that ends with the process that started it, even if that one is killed with SIGKILL.

Used as a script, ``python tether.py PARENT_PID PROGRAM ARGUMENT...``: it asks the kernel for a SIGTERM when
its parent thread ends, then becomes the program, so pid and pipes stay the same. Doing this after exec is
safe in a process with threads, which ``preexec_fn`` is not. It needs Linux; elsewhere the program just runs.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def tether(parent_pid: int) -> None:
    """Have this process end when the thread that started it does; end now if it has already."""
    if not sys.platform.startswith("linux"):
        return
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent_pid:
        os._exit(1)


if __name__ == "__main__":
    tether(int(sys.argv[1]))
    os.execv(sys.argv[2], sys.argv[2:])
