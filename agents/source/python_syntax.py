"""Syntax of Python files: their trees, and the names that they import."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator

Definition = ast.FunctionDef | ast.AsyncFunctionDef

PARSE_ERRORS = (SyntaxError, ValueError, RecursionError, MemoryError)
"""Errors of ``parse_python``: the first if a source is not valid, the others if the parser gave up."""


def parse_python(source: bytes | str) -> ast.Module:
    """Return the tree of a source, without warnings, such as of invalid escapes: they are the author's.

    Raises:
        PARSE_ERRORS: it cannot be parsed.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(source)


def imported_names(node: ast.Import | ast.ImportFrom, package: str) -> Iterator[tuple[str, str]]:
    """Yield local names, and what each stands for; ``*`` for a module whose names are all imported."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            first = alias.name.partition(".")[0]
            yield (alias.asname, alias.name) if alias.asname else (first, first)
        return
    above = package.split(".") if package else []
    above = above[: len(above) - node.level + 1] if node.level else []
    origin = ".".join([*above, *([node.module] if node.module else [])])
    for alias in node.names:
        if alias.name == "*":
            yield f"*{origin}", origin
        else:
            yield alias.asname or alias.name, f"{origin}.{alias.name}".lstrip(".")
