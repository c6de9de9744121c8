"""Owners of subroutines: the class or module that a name says it belongs to."""

from __future__ import annotations

from functools import lru_cache

from pipeline.counting.names.brackets import outline

_SEPARATORS = (".", "::", "\\", "#")
"""Between a module, a class and a method, as the languages in use spell them."""


def owner_of(name: str) -> str:
    """Return what stands before the last separator of a name; a slash is none, and a space ends the name.

    Separators in arguments and type parameters do not count.
    """
    return _halves(name)[0]


def method_of(name: str) -> str:
    """Return what a subroutine is called within its owner."""
    return _halves(name)[1]


@lru_cache(maxsize=2**16)  # the same names come with every scan
def _halves(name: str) -> tuple[str, str]:
    plain = outline(name, "(<[{").partition(" ")[0]
    folders = plain.rfind("/")
    ends = [(index, separator) for separator in _SEPARATORS if (index := plain.rfind(separator)) > folders]
    if not ends:
        return "", plain
    index, separator = max(ends)
    return plain[:index], plain[index + len(separator) :]
