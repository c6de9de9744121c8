"""A rule of names: one thing that is taken away from them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rule:
    """One thing that is taken away from names.

    ``key`` is what a file of names switches it off by. ``sign`` is a regular expression that matches every
    name which the rule changes, for rules whose hints are in many other names too. A name without any rule's
    sign is its own symbol.
    """

    key: str
    language: str
    hints: tuple[str, ...]  # one of them must be in a name
    apply: Callable[[str], str]
    sign: str = ""  # the hints, if empty


def cut(*steps: tuple[str, str]) -> Callable[[str], str]:
    """Return a function that substitutes regular expressions, one after the other."""
    compiled = [(re.compile(pattern), text) for pattern, text in steps]

    def apply(name: str) -> str:
        for pattern, text in compiled:
            name = pattern.sub(text, name)
        return name

    return apply
