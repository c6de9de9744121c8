"""Subroutines that differ between two versions of a Python file.

Every function, and every class body and the module itself without the functions in them, is one scope. A
scope is modified if its own code differs: its syntax tree, so that comments, formatting, docstrings and
moves count for nothing. Nested functions are scopes of their own, as they are in stack frames, while
lambdas and comprehensions belong to the scope around them. Decorators belong to their function.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from agents.source.python_index import (
    DEFINITIONS,
    PARSE_ERRORS,
    CodeScope,
    Definition,
    parse_python,
    qualified_name,
    split_scopes,
)
from pipeline.model.frames import MODULE

MAX_BOTH_BYTES = 1024**2
"""Bytes of both versions above which only one tree is in memory at a time."""

_DEFINITION = re.compile(r"(?P<indent>[ \t]*)(?:async\s+def|def|class)\s+(?P<name>\w+)")


@dataclass(frozen=True, slots=True)
class Comparison:
    """The scopes that differ, by qualified name, and whether both versions were parsed."""

    modified: tuple[str, ...]
    parsed: bool


def compare_python(old: bytes | None, new: bytes | None, *, parse: bool = True) -> Comparison:
    """Find the scopes that differ, ``<module>`` for top-level code.

    ``None`` is a file that does not exist: all scopes of the other version were added or deleted. If one
    version is not valid Python, or without ``parse``, both are read by their indentation alone. A syntax
    tree takes up to six hundred times the memory of its source.
    """
    versions = (old or b"", new or b"")
    before, after = _parsed(*versions) if parse else (None, None)
    parsed = before is not None and after is not None
    if before is None or after is None:
        before, after = map(_outline, versions)
    names = before.keys() | after.keys()
    return Comparison(
        tuple(sorted(name for name in names if before.get(name, ()) != after.get(name, ()))), parsed
    )


Scopes = dict[str, tuple[str, ...]]


def _parsed(old: bytes, new: bytes) -> tuple[Scopes, Scopes] | tuple[None, None]:
    """Return the scopes of two versions that may differ, nothing if one of them is not valid Python."""
    try:
        if len(old) + len(new) > MAX_BOTH_BYTES:
            return _scopes(parse_python(old)), _scopes(parse_python(new))
        before, after = parse_python(old), parse_python(new)
        _drop_same(before, after, old.splitlines(), new.splitlines())
        return _scopes(before), _scopes(after)
    except PARSE_ERRORS:
        return None, None


def _scopes(module: ast.Module) -> Scopes:
    scopes: dict[str, tuple[str, ...]] = {}
    for scope in split_scopes(module):
        _remove_docstring(scope)
        if scope.around or module.body:
            name = scope.qualified or MODULE
            scopes[name] = (*scopes.get(name, ()), ast.dump(scope.node))
    return scopes


def _drop_same(
    before: ast.Module | ast.ClassDef,
    after: ast.Module | ast.ClassDef,
    old: Sequence[bytes],
    new: Sequence[bytes],
) -> None:
    """Drop functions and classes of the same text in both versions: most of a file, and costly to compare.

    A name that is defined twice is left: which definition comes last makes a difference.
    """
    olds, news = _definitions(before), _definitions(after)
    same = set()
    for name in olds.keys() & news.keys():
        definition, counterpart = olds[name], news[name]
        if _lines_of(definition, old) == _lines_of(counterpart, new):
            same |= {definition, counterpart}
        elif isinstance(definition, ast.ClassDef) and isinstance(counterpart, ast.ClassDef):
            _drop_same(definition, counterpart, old, new)
    before.body = [definition for definition in before.body if definition not in same]
    after.body = [definition for definition in after.body if definition not in same]


def _definitions(node: ast.Module | ast.ClassDef) -> dict[str, Definition | ast.ClassDef]:
    nodes = [definition for definition in node.body if isinstance(definition, DEFINITIONS)]
    count = Counter(definition.name for definition in nodes)
    return {definition.name: definition for definition in nodes if count[definition.name] == 1}


def _lines_of(node: Definition | ast.ClassDef, lines: Sequence[bytes]) -> Sequence[bytes]:
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    return lines[first - 1 : node.end_lineno]


def _remove_docstring(scope: CodeScope) -> None:
    match scope.node.body:
        case [ast.Expr(value=ast.Constant(value=str())), *_]:
            del scope.node.body[0]


def _outline(source: bytes) -> dict[str, tuple[str, ...]]:
    """Return the scopes of a broken file, as far as indentation shows them: each with its lines."""
    scopes: dict[str, list[str]] = {}
    path: list[tuple[int, str]] = []
    decorators: list[str] = []
    for line in source.decode("utf-8", errors="replace").splitlines():
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        indent = len(line.expandtabs()) - len(line.expandtabs().lstrip())
        while path and indent <= path[-1][0] and not text.startswith((")", "]", "}")):
            path.pop()
        if text.startswith("@"):
            decorators.append(text)
            continue
        if definition := _DEFINITION.match(line):
            path.append((indent, qualified_name(path[-1][1] if path else "", definition["name"])))
        name = path[-1][1] if path else MODULE
        scopes.setdefault(name, []).extend([*decorators, text])
        decorators = []
    return {name: tuple(lines) for name, lines in scopes.items()}
