"""Names of subroutines from what a sampler prints for a frame.

Subroutines are spelt ``module.path.QualName``; code without a name of its own (comprehensions, generator
expressions, lambdas) belongs to the function around it. ``agents.source.changes`` spells modified subroutines
with the same functions, so that a change meets its stack frames. This module uses the standard library
alone, since ``agents.inprocess`` names frames inside an application.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import unquote

from agents.profiles.annotate import ANNOTATION_FILE

if TYPE_CHECKING:
    from pipeline.model import AnnotationKind

_KINDS: tuple[AnnotationKind, ...] = ("endpoint", "metadata")
_MODULE = "<module>"  # as CPython has it, and ``pipeline.model.frames.MODULE``
_ANONYMOUS = re.compile(r"<[^<>]+>")
_LINE = re.compile(r":\d+$")
_FROZEN = re.compile(r"<frozen ([^<>]+)>")
_PROCESS = re.compile(r'process \d+:"')
_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")
_TYPES = r"(?:\[*[BCDFIJSZ])*"
_CUT_SIGNATURE = re.compile(rf"\w\({_TYPES}\[*L[\w/$]+$")
_SIGNATURE_PART = re.compile(rf"{_TYPES}\[*L[\w/$]+")
_SIGNATURE_END = re.compile(rf"{_TYPES}\)\[*(?:[VBCDFIJSZ]|L[\w/$]+)")
_BINARY = re.compile(r"[^\s():]+\.\w+")  # a source file or library, such as ceval.c or libc.so.6


@dataclass(frozen=True, slots=True)
class NamedFrame:
    """A frame's subroutine, the annotation it carries, and whether it is anonymous code inside it."""

    name: str
    annotation: tuple[AnnotationKind, str] | None = None
    anonymous: bool = False


def name_stack(frames: Sequence[str]) -> list[NamedFrame]:
    """Name the frames of one stack, root first.

    An anonymous frame directly below the function it belongs to is that function, so it vanishes. The
    frames that name a sampled process (``process 42:"python app.py"``) are left out: their pids would make
    new series at every restart. A signature of the JVM (``total(Ljava/lang/String;I)V``), which collapsed
    stacks cut at its semicolons, is put together again.
    """
    named: list[NamedFrame] = []
    for text in _with_whole_signatures(_without_processes(frames)):
        frame = name_frame(text)
        if frame.anonymous and named and named[-1].name == frame.name:
            continue
        named.append(frame)
    return named


def module_name(path: str) -> str:
    """Return the dotted module of a Python file: ``shop/pricing.py`` is ``shop.pricing``.

    A package's ``__init__.py`` is the package.
    """
    parts = [part for part in path.replace("\\", "/").removesuffix(".py").split("/") if part not in ("", ".")]
    if len(parts) > 1 and parts[-1] == "__init__":
        parts.pop()
    return ".".join(parts)


def subroutine_name(module: str, qualname: str) -> str:
    """Return a function's spelling: ``<locals>`` and anonymous scopes vanish from its qualified name.

    What is left without any name belongs to the module's top-level code.
    """
    named = [part for part in qualname.split(".") if not _ANONYMOUS.fullmatch(part)]
    return ".".join([module, *(named or [_MODULE])])


@lru_cache(maxsize=65_536)
def name_frame(text: str) -> NamedFrame:
    """Name one frame as py-spy prints it: ``name (file)`` or ``name (file:line)``.

    Frames of other languages and samplers keep their name verbatim; only the source file or library behind
    a native frame is taken away, and code without symbols is named after its library: ``[libc.so.6]``.
    """
    name, location = _split_location(text)
    path = _LINE.sub("", location)
    if path == ANNOTATION_FILE:
        for kind in _KINDS:
            if name.startswith(f"{kind}="):
                value = unquote(name[len(kind) + 1 :])
                return NamedFrame(f"{kind}={value}", (kind, value))
    if _ADDRESS.fullmatch(name) and path:
        return NamedFrame(f"[{path.rpartition('/')[2]}]")
    module = _python_module(path)
    if module:
        last = name.rpartition(".")[2]
        anonymous = bool(_ANONYMOUS.fullmatch(last)) and last != _MODULE
        return NamedFrame(subroutine_name(module, name), anonymous=anonymous)
    return NamedFrame(name if _BINARY.fullmatch(path) else text)


def _python_module(path: str) -> str:
    """Return the module of a Python source, or nothing for any other file."""
    if path.endswith(".py"):
        return module_name(path)
    if frozen := _FROZEN.fullmatch(path):
        return frozen[1]
    return path if _ANONYMOUS.fullmatch(path) else ""  # exec and generated code: <string>, <stdin>


def _split_location(text: str) -> tuple[str, str]:
    """Split ``name (location)`` at the parenthesis that matches the last one."""
    if not text.endswith(")"):
        return text, ""
    depth = 0
    for index in range(len(text) - 1, 0, -1):
        depth += (text[index] == ")") - (text[index] == "(")
        if depth == 0:
            if text[index - 1] == " " and index > 1:
                return text[: index - 1], text[index + 1 : -1]
            break
    return text, ""


def _without_processes(frames: Sequence[str]) -> Sequence[str]:
    """Leave out leading process frames; a command line with semicolons in it came as several frames."""
    first = 0
    while first < len(frames) and _PROCESS.match(frames[first]):
        closing = next((i for i in range(first, len(frames)) if frames[i].endswith('"')), None)
        if closing is None:
            break
        first = closing + 1
    return frames[first:]


def _with_whole_signatures(frames: Sequence[str]) -> Sequence[str]:
    """Join the pieces of signatures that were cut at semicolons; what never closes stays in pieces."""
    if not any("(" in frame and _CUT_SIGNATURE.search(frame) for frame in frames):
        return frames
    joined: list[str] = []
    index = 0
    while index < len(frames):
        end = index + 1
        if _CUT_SIGNATURE.search(frames[index]):
            while end < len(frames) and _SIGNATURE_PART.fullmatch(frames[end]):
                end += 1
            # The last piece closes the bracket; an object that it returns ends in a semicolon of its own.
            if end < len(frames) and _SIGNATURE_END.fullmatch(frames[end]):
                end += 1
            else:
                end = index + 1
        joined.append(";".join(frames[index:end]))
        index = end
    return joined
