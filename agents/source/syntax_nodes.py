"""Nodes of tree-sitter's trees: their texts, what is within them, and the chains that code uses.

It imports nothing else of Smidgen, since ``agents.source.parser_program`` loads it for each commit.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

MAX_TEXT = 500
MAX_NODES = 2_000_000
"""Longest name in characters, and most nodes of a file that are looked at."""

CALLED = "()"
"""The part of a chain that stands for the result of a call."""

_MOST_PARTS = 30
"""Longest chain that is followed."""


class Link(NamedTuple):
    """How a node goes on with a chain that is read from its end.

    Args:
        before: Field with what stands before it; empty for its first child.
        part: Field whose text is the part that it adds; empty for none.
        called: True if it calls.
    """

    before: str = ""
    part: str = ""
    called: bool = False


@cache
def parser_of(package: str, entry: str = "language") -> Any:
    """Return the parser of a grammar."""
    tree_sitter = importlib.import_module("tree_sitter")
    grammar = getattr(importlib.import_module(package), entry)
    return tree_sitter.Parser(tree_sitter.Language(grammar()))


def text_of(node: Any) -> str:
    """Return the text of a node, cut to MAX_TEXT; empty for none."""
    data: bytes = (node.text or b"") if node is not None else b""
    return data[:MAX_TEXT].decode(errors="replace")


def fields_of(node: Any, *names: str) -> Iterator[Any]:
    """Yield the nodes of fields, None for those that are not there."""
    yield from (node.child_by_field_name(name) if node is not None else None for name in names)


def field_text(node: Any, field: str) -> str:
    """Return the text of a field; empty where there is none."""
    return text_of(node.child_by_field_name(field))


def children_of(node: Any, *types: str) -> list[Any]:
    """Return the named children of a node that are of some types, or all; none of None."""
    children = node.named_children if node is not None else ()
    return [child for child in children if not types or child.type in types]


def string_of(node: Any) -> str | None:
    """Return the value of a plain string literal."""
    if node is None or node.type not in ("string", "string_literal", "template_string"):
        return None
    parts = list(node.named_children)
    if any(part.type not in ("string_fragment", "escape_sequence") for part in parts):
        return None
    return "".join(text_of(part) for part in parts).replace("\\\\", "\\")


def nodes_within(node: Any, stop: Sequence[str] = ()) -> Iterator[Any]:
    """Yield the named nodes under a node, outer ones first; of types to stop at without what they hold."""
    left = children_of(node)[::-1]
    for _ in range(MAX_NODES):
        if not left:
            return
        inner = left.pop()
        yield inner
        if inner.type not in stop:
            left += reversed(inner.named_children)


def read_chain(
    node: Any,
    links: Mapping[str, Link],
    names: Sequence[str],
    beginning: Callable[[Any], tuple[str, ...] | None],
) -> tuple[str, ...]:
    """Return the chain of an expression, see ``agents.source.routes.source``; empty where it has none.

    Args:
        node: The expression.
        links: Type of a node → how it goes on with a chain.
        names: Types of nodes whose text begins a chain.
        beginning: Returns what any other node begins a chain with; empty ends it, None is for no such node.
    """
    parts: list[str] = []
    for _ in range(_MOST_PARTS):
        if node is None:
            break
        begun = (text_of(node),) if node.type in names else beginning(node)
        if begun is not None:
            return (*begun, *reversed(parts)) if begun else ()
        link = links.get(node.type)
        if link is None:
            return ("", *reversed(parts)) if parts and parts[-1] != CALLED else ()
        parts += [CALLED] if link.called else []
        parts += [field_text(node, link.part)] if link.part else []
        node = node.child_by_field_name(link.before) if link.before else next(iter(children_of(node)), None)
        if node is None and link.called and link.part:  # a method of this object
            return tuple(reversed(parts))
    return ()


def line_of(node: Any) -> int:
    """Return the line on which a node begins, from 1."""
    return int(node.start_point[0]) + 1


def last_line_of(node: Any) -> int:
    """Return the line on which a node ends, from 1."""
    return int(node.end_point[0]) + 1
