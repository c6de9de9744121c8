"""Index of a Python file: its scopes, each with its own code alone, which gates, routes and changes read."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

Definition = ast.FunctionDef | ast.AsyncFunctionDef
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)

PARSE_ERRORS = (SyntaxError, ValueError, RecursionError, MemoryError)
"""Errors of ``parse_python``: the first if a source is not valid, the others if the parser gave up."""

MAX_NAME = 500
"""Longest qualified name, in characters: a long outer name is kept again with each of its inner ones."""

_NESTED = (ast.stmt, ast.excepthandler, ast.match_case)
"""Nodes that hold statements, or are some."""


@dataclass(slots=True, eq=False)
class CodeScope:
    """A module, class or function.

    Args:
        node: Its tree without the definitions inside, which are scopes of their own; lambdas and
            comprehensions belong to the scope around them, and decorators to their definition.
        qualified: Its name, ``Basket.total``; empty for the module.
        around: The scope that holds it; None for the module.
        nested: The scopes directly inside, in the source's order.
    """

    node: ast.Module | Definition | ast.ClassDef
    qualified: str = ""
    around: CodeScope | None = None
    nested: list[CodeScope] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Its own name, without those around it."""
        return self.qualified.rpartition(".")[2]


def parse_python(source: bytes | str) -> ast.Module:
    """Return the tree of a source, without warnings, such as of invalid escapes: they are the author's.

    Raises:
        PARSE_ERRORS: it cannot be parsed.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(source)


def qualified_name(around: str, name: str) -> str:
    """Return the name of a definition inside another one, cut to MAX_NAME."""
    return (f"{around}.{name}" if around else name)[:MAX_NAME]


def split_scopes(module: ast.Module) -> list[CodeScope]:
    """Return the scopes of a module in the source's order; its tree is taken apart."""
    scopes: list[CodeScope] = []
    left = [CodeScope(module)]
    while left:
        scope = left.pop()
        scopes.append(scope)
        for node in _take_definitions(scope.node):
            scope.nested.append(CodeScope(node, qualified_name(scope.qualified, node.name), scope))
        left += reversed(scope.nested)
    return scopes


def _take_definitions(root: ast.AST) -> list[Definition | ast.ClassDef]:
    """Remove the definitions from a tree, and return them in the source's order."""
    taken: list[Definition | ast.ClassDef] = []
    left = [root]
    while left:  # and no recursion: each elif is nested in the one before
        node = left.pop()
        for block in ("body", "orelse", "finalbody", "handlers", "cases"):
            statements = getattr(node, block, None) or []
            taken += [statement for statement in statements if isinstance(statement, DEFINITIONS)]
            statements[:] = [statement for statement in statements if not isinstance(statement, DEFINITIONS)]
            left += statements
    return sorted(taken, key=lambda definition: definition.lineno)


def read_statements(nodes: Iterable[ast.AST]) -> Iterator[tuple[ast.AST, list[ast.AST]]]:
    """Yield statements, outer ones first, each with all nodes of its own expressions."""
    left = list(nodes)[::-1]
    while left:
        node = left.pop()
        children = list(ast.iter_child_nodes(node))
        expressions = [child for child in children if not isinstance(child, _NESTED)]
        yield node, [inner for child in expressions for inner in ast.walk(child)]
        left += [child for child in reversed(children) if isinstance(child, _NESTED)]


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


def parameters_of(node: ast.AST) -> tuple[ast.arg, ...]:
    """Return a function's parameters without ``*args`` and ``**kwargs``; none of any other definition."""
    arguments = getattr(node, "args", None)
    return (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs) if arguments else ()
