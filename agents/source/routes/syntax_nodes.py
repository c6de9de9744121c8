"""Nodes of tree-sitter's trees, as the readers of Java and JavaScript ask them."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

MAX_TEXT = 500
MAX_NODES = 2_000_000
"""Longest name in characters, and most nodes of a file that are looked at."""


@cache
def parser_of(package: str, entry: str = "language") -> Any:
    """Return the parser of a grammar."""
    tree_sitter = importlib.import_module("tree_sitter")
    grammar = getattr(importlib.import_module(package), entry)
    return tree_sitter.Parser(tree_sitter.Language(grammar()))


def text_of(node: Any) -> str:
    """Return the text of a node, cut to MAX_TEXT."""
    data: bytes = node.text or b""
    return data[:MAX_TEXT].decode(errors="replace")


def field_text(node: Any, field: str) -> str:
    """Return the text of a field; empty where there is none."""
    child = node.child_by_field_name(field)
    return text_of(child) if child is not None else ""


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
    left = list(reversed(node.named_children))
    for _ in range(MAX_NODES):
        if not left:
            return
        inner = left.pop()
        yield inner
        if inner.type not in stop:
            left += reversed(inner.named_children)


def line_of(node: Any) -> int:
    """Return the line on which a node begins, from 1."""
    return int(node.start_point[0]) + 1


def last_line_of(node: Any) -> int:
    """Return the line on which a node ends, from 1."""
    return int(node.end_point[0]) + 1
