"""Patterns of files, matched without backtracking: whoever sends a file must not choose how long it takes.

The syntax is that part of RE2's which names of functions need: characters, ``.``, classes, groups,
alternatives, ``*``, ``+``, ``?``, and ``^`` and ``$``. A part of a pattern maps the positions in a text at
which it may begin to those at which it may end, so the time is bounded by their product (Thompson, 1968).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Set

MAX_STEPS = 10_000_000
"""Most positions that a pattern looks at in all its texts, some seconds."""

MAX_DEPTH = 50
"""Most groups in one another."""

_Positions = Set[int]
_Part = Callable[[str, _Positions], _Positions]
_CLASS = re.compile(r"\[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]\\\[])*\]")
_GROUP = re.compile(r"\((?:\?:|\?P?<\w+>)?(?!\?)")
_NAMED = frozenset("wWdDsS")


class LinearPattern:
    """A pattern that whole texts match.

    Raises:
        ValueError: it has something that is not read here; from ``matches``, it takes too long.
    """

    def __init__(self, pattern: str) -> None:
        self._pattern, self._at, self._depth, self._steps = pattern, 0, 0, 0
        self._part = self._alternatives()
        if self._at < len(pattern):
            raise self._unread()

    def matches(self, text: str) -> bool:
        """Return whether a whole text matches."""
        return len(text) in self._part(text, {0})

    def _unread(self) -> ValueError:
        return ValueError(f"{self._pattern[self._at : self._at + 10]!r} is not read in a pattern")

    def _alternatives(self) -> _Part:
        parts = [self._sequence()]
        while self._pattern.startswith("|", self._at):
            self._at += 1
            parts.append(self._sequence())
        if len(parts) == 1:
            return parts[0]
        return lambda text, starts: {end for part in parts for end in part(text, starts)}

    def _sequence(self) -> _Part:
        parts: list[_Part] = []
        while self._at < len(self._pattern) and self._pattern[self._at] not in "|)":
            parts.append(self._repeated(self._atom()))

        def sequence(text: str, starts: _Positions) -> _Positions:
            for part in parts:
                if not starts:
                    break
                starts = part(text, starts)
            return starts

        return sequence

    def _repeated(self, part: _Part) -> _Part:
        quantifier = self._pattern[self._at : self._at + 1]
        if quantifier not in ("*", "+", "?"):
            return part
        self._at += 1
        if self._pattern.startswith("?", self._at):  # the shortest match first, which changes no whole match
            self._at += 1
        return _repetition(part, quantifier)

    def _atom(self) -> _Part:
        pattern, at = self._pattern, self._at
        character = pattern[at]
        if group := _GROUP.match(pattern, at):
            self._at, self._depth = group.end(), self._depth + 1
            part = self._alternatives() if self._depth <= MAX_DEPTH else None
            if part is None or not pattern.startswith(")", self._at):
                raise self._unread()
            self._at, self._depth = self._at + 1, self._depth - 1
            return part
        self._at += 1
        if character in "^$":
            return lambda text, starts: starts & {0 if character == "^" else len(text)}
        if character == "[" and (class_ := _CLASS.match(pattern, at)) and "[:" not in class_[0]:
            self._at = class_.end()
            return self._single(re.compile(class_[0]))
        if character == "\\" and pattern[self._at : self._at + 1]:
            escaped = pattern[self._at]
            if escaped in _NAMED or not escaped.isalnum():
                self._at += 1
                return self._single(re.compile(f"\\{escaped}"))
        elif character not in "[](){}*+?\\":
            return self._single(None if character == "." else re.compile(re.escape(character)))
        self._at = at
        raise self._unread()

    def _single(self, character: re.Pattern[str] | None) -> _Part:
        """Return the part that matches one character of a pattern; None: any."""

        def single(text: str, starts: _Positions) -> _Positions:
            self._steps += len(starts)
            if self._steps > MAX_STEPS:
                raise ValueError("the pattern takes too long")
            if character is None:
                return {start + 1 for start in starts if start < len(text)}
            return {start + 1 for start in starts if character.match(text, start)}

        return single


def _repetition(part: _Part, quantifier: str) -> _Part:
    def repetition(text: str, starts: _Positions) -> _Positions:
        ends = set() if quantifier == "+" else set(starts)
        latest: _Positions = starts
        while latest := set(part(text, latest)) - ends:
            ends |= latest
            if quantifier == "?":
                break
        return ends

    return repetition
