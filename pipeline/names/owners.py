"""Owners of subroutines: the class or module that a name says it belongs to."""

from __future__ import annotations

from pipeline.names.brackets import outline

_SEPARATORS = (".", "::", "\\", "#")
"""Between a module, a class and a method, as the languages in use spell them."""


def owner_of(name: str) -> str:
    """Return what stands before the last separator of a name; a slash is none, and a space ends the name.

    Separators in arguments and type parameters do not count.
    """
    plain = outline(name, "(<[{").partition(" ")[0]
    folders = plain.rfind("/")
    ends = [index for separator in _SEPARATORS if (index := plain.rfind(separator)) > folders]
    return plain[: max(ends)] if ends else ""
