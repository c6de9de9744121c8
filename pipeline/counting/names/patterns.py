"""Patterns by which users name subroutines: globs and regular expressions."""

from __future__ import annotations

import re
from fnmatch import translate

REGEX = "re:"
"""What a pattern begins with that is a regular expression and no glob."""


def compile_pattern(pattern: str) -> re.Pattern[str]:
    """Compile a glob (``shop.cart.*``), or what follows ``re:`` as a regular expression.

    Raises:
        ValueError: a regular expression that is none.
    """
    text = pattern[len(REGEX) :] if pattern.startswith(REGEX) else translate(pattern)
    try:
        return re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"{pattern[:200]!r} is no regular expression: {error}") from None
