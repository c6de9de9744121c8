"""Frames that a profile of pprof asks to be left out: its fields ``drop_frames`` and ``keep_frames``.

Both are patterns over whole names of functions. A frame that matches the first and not the second is left out
of a stack with all that it called, unless only such frames lie over it: so does pprof itself
(github.com/google/pprof, profile/prune.go).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from agents.profiles.formats.linear_pattern import LinearPattern

_BRACKETS = re.compile(r"\(anonymous namespace\)|operator\(\)|\(")


class DroppedFrames:
    """The locations of a profile with frames that are left out.

    Args:
        drop: Pattern of names that are left out.
        keep: Pattern of names among them that are not; empty: none.

    Raises:
        ValueError: a pattern is not read here; from ``mark``, it takes too long.
    """

    def __init__(self, drop: str, keep: str = "") -> None:
        dropped, spared = LinearPattern(drop), LinearPattern(keep) if keep else None

        @cache
        def is_dropped(name: str) -> bool:
            plain = _without_arguments(name)
            return dropped.matches(plain) and not (spared and spared.matches(plain))

        self._is_dropped = is_dropped
        self._is_whole: dict[int, bool] = {}

    def mark(self, location: int, names: Sequence[str]) -> int:
        """Return how many frames of a location are left out in every stack.

        Args:
            location: Its number.
            names: Its functions, the inlined one first.
        """
        last = max((index for index, name in enumerate(names) if self._is_dropped(name)), default=-1)
        if last >= 0:
            self._is_whole[location] = last == len(names) - 1
        return 0 if self._is_whole.get(location) else last + 1

    def cut(self, locations: Sequence[int]) -> Sequence[int]:
        """Return the locations of a stack, leaf first, without those that are left out."""
        has_caller = False
        for index in range(len(locations) - 1, -1, -1):
            is_whole = self._is_whole.get(locations[index])
            if is_whole is None:
                has_caller = True
            elif has_caller:
                return locations[index + is_whole :]
        return locations


def _without_arguments(name: str) -> str:
    """Return a name without its arguments, and without the dot of PowerPC's functions."""
    name = name.removeprefix(".")
    brackets = (match.start() for match in _BRACKETS.finditer(name) if match[0] == "(")
    return name[: next(brackets, len(name))]
