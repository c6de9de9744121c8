"""Frames of profile files, spelt in one way: ``name``, ``name (file)`` or ``name (file:line)``."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

_FRAME = re.compile(r"(?P<name>.+) \((?P<file>[^()]+?)(?::(?P<line>[1-9][0-9]{0,8}))?\)", re.DOTALL)
_OTHER_SPELLINGS = (  # rbspy's, that of Pyroscope's agents in Rust, and Pyflame's
    re.compile(r"(?P<name>.+) - (?P<file>[^:]+\.\w+):(?P<line>[0-9]{1,9})", re.DOTALL),
    re.compile(r"(?P<file>[^:]+\.\w+):(?P<line>[0-9]{1,9}) - (?P<name>.+)", re.DOTALL),
    re.compile(r"(?P<file>[^:]+\.py):(?P<name>[^:]+):(?P<line>[0-9]{1,9})", re.DOTALL),
)
_FILE = re.compile(r".*[/\\].*|.*\.\w+|<.*>", re.DOTALL)
_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")
_DESCRIPTOR = (
    r"\((?=[^\s;()]*;)(?:\[*(?:[BCDFIJSZ]|L[^\s;()]+;))*\)|(?<![^;])L[\w$-]+(?:/[\w$-]+)+;(?=::|\.[\w<])"
)
"""Semicolons of the JVM: in arguments, ``(Ljava/lang/String;I)``, and after a class, ``Lshop/Cart;::add``."""

_DESCRIBED = re.compile(_DESCRIPTOR)
_PART = re.compile(rf"(?:{_DESCRIPTOR}|[^;])+")


class FrameParts(NamedTuple):
    """Parts of a frame; an empty file or a line of 0 is not known."""

    name: str
    file: str = ""
    line: int = 0


def split_stack(text: str) -> list[str]:
    """Return the frames of a stack; semicolons separate them, but for those of the JVM's descriptors."""
    return _PART.findall(text) if _DESCRIBED.search(text) else text.split(";")


def join_frame(name: str, file: str = "", line: int = 0) -> str:
    """Return a frame as it is spelt here; ``split_frame`` returns its parts again."""
    if not file:
        return name
    return f"{name} ({file}:{line})" if 0 < line < 10**9 else f"{name} ({file})"


def split_frame(frame: str) -> FrameParts:
    """Return the parts of a frame; what stands in the last brackets is a file only if it looks like one.

    ``work - /a.rb:9``, ``/a.rb:9 - work`` and ``/a.py:work:9`` are frames with files, too.
    """
    match = _FRAME.fullmatch(frame)
    if not match and len(frame) <= _LONGEST_CACHED and (" - " in frame or ".py:" in frame):
        others = (spelling.fullmatch(frame) for spelling in _OTHER_SPELLINGS)
        match = next(filter(None, others), None)
    if not match or not (match["line"] or _FILE.fullmatch(match["file"])):
        return FrameParts(frame)
    return FrameParts(match["name"], match["file"], int(match["line"] or 0))


def without_line(frame: str) -> str:
    """Return a frame without its line, and without its file unless a subroutine's name needs it.

    A Python function's name needs its module; names of other languages are complete. Code without symbols is
    named after its binary, since addresses change with each start.
    """
    return _cached(frame) if len(frame) <= _LONGEST_CACHED else _without_line(frame)


def file_name(path: str) -> str:
    """Return the last part of a path of any system."""
    return path.replace("\\", "/").rpartition("/")[2]


def _without_line(frame: str) -> str:
    name, file, _ = split_frame(frame)
    if not file:
        return "[unknown]" if _ADDRESS.fullmatch(name) else frame
    if _ADDRESS.fullmatch(name):
        return f"[{file_name(file)}]"
    return f"{name} ({file})" if file.endswith(".py") or file.startswith("<") else name


_LONGEST_CACHED = 1000
_cached = lru_cache(maxsize=16_384)(_without_line)
