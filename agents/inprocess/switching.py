"""The interpreter's switch interval: how long a sample waits for a thread that computes.

With Python's 5 ms, a sampler mostly gets the lock when a thread releases it to wait: it would see only waits,
never work in shorter bursts. While at most one thread computes, a short interval costs nothing, since only
the sampler asks for the lock. If several threads compete, a short interval makes them switch more often, so
a longer one is set.
"""

from __future__ import annotations

import sys

DEFAULT_S = 0.005
FINE_S = 0.0001
COARSE_S = 0.001

_MEMORY = 0.05  # weight of one sample in the share of samples with several busy threads
_CONTENDED = 0.2
_UNCONTENDED = 0.1


class SwitchInterval:
    """Sets the interval by the number of busy threads in samples, unless the application has set one."""

    def __init__(self) -> None:
        self._contended_share = 0.0
        self._ours = 0.0
        if any(_is_set(interval_s) for interval_s in (DEFAULT_S, FINE_S, COARSE_S)):
            self._set(FINE_S)  # the latter two are ours, of before a fork

    def note(self, busy_threads: int) -> None:
        """Take note of how many threads were on CPU in a sample."""
        self._contended_share += _MEMORY * ((busy_threads > 1) - self._contended_share)
        if not self._ours:
            return
        if self._contended_share > _CONTENDED:
            self._set(COARSE_S)
        elif self._contended_share < _UNCONTENDED:
            self._set(FINE_S)

    def restore(self) -> None:
        """Restore the former interval, unless the application has set one meanwhile."""
        if self._is_ours():
            sys.setswitchinterval(DEFAULT_S)
        self._ours = 0.0

    def _set(self, interval_s: float) -> None:
        if interval_s == self._ours:
            return
        if self._ours and not self._is_ours():
            self._ours = 0.0  # the application has chosen
            return
        sys.setswitchinterval(interval_s)
        self._ours = interval_s

    def _is_ours(self) -> bool:
        return bool(self._ours) and _is_set(self._ours)


def _is_set(interval_s: float) -> bool:
    return abs(sys.getswitchinterval() - interval_s) < 1e-6
