"""Choice of the processes to sample where there are more than may be sampled at once."""

from __future__ import annotations

from collections.abc import Sequence, Set

from agents.host.discovery import Found

STAYS = 2.0
"""A process that is sampled stays until one that is not uses so many times its CPU: a start costs, too."""


def choose(
    found: Sequence[Found], sampled: Set[tuple[int, float]], most: int
) -> tuple[list[Found], list[Found]]:
    """Return which processes to sample, the largest users of CPU first, and which have to wait.

    Args:
        found: All that rules take.
        sampled: Keys of those that are sampled now.
        most: That may be sampled at once.
    """

    def weight(process: Found) -> tuple[float, bool, tuple[int, float]]:
        is_sampled = process.key in sampled
        return (-process.cpu_share * (STAYS if is_sampled else 1.0), not is_sampled, process.key)

    ordered = sorted(found, key=weight)
    return ordered[:most], ordered[most:]
