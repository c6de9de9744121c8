"""Choice of the processes to sample if there are more than may be sampled at once."""

from __future__ import annotations

from collections.abc import Sequence, Set

from agents.host.discovery import MatchedProcess

STAYS = 2.0
"""A sampled process is replaced only by one that uses this many times its CPU, since a start costs, too."""


def choose(
    found: Sequence[MatchedProcess], sampled: Set[tuple[int, float]], most: int
) -> tuple[list[MatchedProcess], list[MatchedProcess]]:
    """Return the processes to sample, the largest users of CPU first, and those that have to wait.

    Args:
        found: All processes that rules take.
        sampled: Keys of the processes that are sampled now.
        most: Most processes that may be sampled at once.
    """

    def weight(process: MatchedProcess) -> tuple[float, bool, tuple[int, float]]:
        is_sampled = process.key in sampled
        return (-process.cpu_share * (STAYS if is_sampled else 1.0), not is_sampled, process.key)

    ordered = sorted(found, key=weight)
    return ordered[:most], ordered[most:]
