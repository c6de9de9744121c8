"""Stack elements: subroutines, and the endpoint or metadata annotations that stand above them.

An annotated frame is written as two elements, the annotation (``endpoint=/checkout``) just above the
subroutine, so that a stack stays a plain list of names wherever it is stored or drawn.

Names in round brackets stand for what was left out to keep within bounds.
"""

from __future__ import annotations

from collections.abc import Sequence

import xxhash

from pipeline.model import METRIC_KINDS, Annotation, MetricKind, SeriesKey

OTHER = "(other)"
"""Stands for names beyond a service's quota, and for stacks beyond what is kept of one message."""

DEEP = "(deep)"
"""Stands for the middle of a stack that is too deep to be kept whole."""

MODULE = "<module>"
"""How CPython names a module's top-level code, the last part of its subroutine's name."""

MAX_LABEL = 1000
"""Longest name that is kept, in characters: a longer one ends in a hash of the whole."""

_PREFIXES = [
    (measure.prefix, kind) for kind, measure in METRIC_KINDS.items() if measure.gcpu and measure.prefix
]


def element(kind: MetricKind, name: str) -> str:
    """Return how a series' member is spelt in a stack: an annotation has its kind in front."""
    return METRIC_KINDS[kind].prefix + name


def series_of(label: str) -> SeriesKey:
    """Return the series that an element of a stack counts for; the inverse of ``element``."""
    for prefix, kind in _PREFIXES:
        if label.startswith(prefix):
            return SeriesKey(kind, label[len(prefix) :])
    return SeriesKey("subroutine", label)


def name_parts(name: str) -> list[str]:
    """Split a subroutine's name at its dots, but not within brackets, such as those of type arguments.

    >>> name_parts("cart.(*Tree[go.shape.int]).Walk")
    ['cart', '(*Tree[go.shape.int])', 'Walk']
    >>> name_parts("main.Map[...]")
    ['main', 'Map[...]']
    """
    parts, depth = [""], 0
    for character in name:
        depth = max(0, depth + (character in "[(<") - (character in "])>"))
        if character == "." and not depth and parts[-1].strip("."):
            parts.append("")
        else:
            parts[-1] += character
    return parts


def cut_name(name: str, limit: int = MAX_LABEL) -> str:
    """Return a name of at most ``limit`` characters (20 at least): one too long ends in a hash of the whole.

    Equal names give equal results and different ones stay different, up to collisions of 64 bits.
    """
    if len(name) <= limit:
        return name
    return f"{name[: limit - 18]}…#{xxhash.xxh3_64_hexdigest(name.encode('utf-8', 'surrogatepass'))}"


def frame_elements(frames: Sequence[str], annotations: Sequence[Annotation]) -> list[tuple[str, ...]]:
    """Return the elements of each frame, annotations first.

    A frame that is itself named like its annotation, as samplers report it that can only name frames, is
    one element.
    """
    elements: list[tuple[str, ...]] = [(name,) for name in frames]
    for annotation in annotations:
        label = element(annotation.kind, annotation.value)
        present = elements[annotation.frame]
        if label not in present:
            elements[annotation.frame] = (label, *present)
    return elements
