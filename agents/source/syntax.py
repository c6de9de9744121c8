"""Subroutines around given lines of a source, by its language's tree-sitter grammar.

It imports little of Smidgen, since ``agents.source.parser_program`` loads it for each commit.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

from agents.source.syntax_nodes import parser_of

MAX_NAME = 500
MAX_DEPTH = 100
"""Longest name in bytes, and how deep subroutines and types are followed into one another."""


@dataclass(frozen=True, slots=True)
class Definition:
    """A subroutine. ``receiver`` is Go's type with its star; ``scope`` is outermost first."""

    name: str
    scope: tuple[str, ...] = ()
    receiver: str = ""
    package: str = ""  # package or namespace that the source declares


@dataclass(frozen=True, slots=True)
class Question:
    """Question for the subroutines around these lines (numbered from 1) of a source."""

    language: str
    source: bytes
    lines: Sequence[int]


@dataclass(frozen=True, slots=True)
class Grammar:
    """Where a grammar is, and the types of its nodes that matter, each with a field ``name``.

    ``queries`` are patterns for all others: ``@function``, ``@scope`` and ``@package`` with their ``@name``.
    """

    package: str
    functions: str
    scopes: str = ""
    packages: str = ""
    comments: str = "comment"
    queries: str = ""
    entry: str = "language"

    @property
    def query(self) -> str:
        """The query that captures definitions, what is around them, and comments."""
        kinds = {"function": self.functions, "scope": self.scopes, "package": self.packages}
        named = [
            f"({kind_name} name: (_) @name) @{kind}" for kind in kinds for kind_name in kinds[kind].split()
        ]
        return "\n".join(
            [*named, *(f"({kind_name}) @comment" for kind_name in self.comments.split()), self.queries]
        )


_BOTH_COMMENTS = "line_comment block_comment"
_JS_FUNCTIONS = "function_declaration generator_function_declaration method_definition"
_JS_VALUE = "[(arrow_function) (function_expression) (generator_function)]"
_JS = f"""
(variable_declarator name: (identifier) @name value: {_JS_VALUE}) @function
(pair key: (_) @name value: {_JS_VALUE}) @function
(assignment_expression left: [(identifier) (member_expression)] @name right: {_JS_VALUE}) @function
"""
_TS_SCOPES = "class_declaration class abstract_class_declaration internal_module"
_TS = f"{_JS}(public_field_definition name: (_) @name value: {_JS_VALUE}) @function"

GRAMMARS: Mapping[str, Grammar] = {
    "C++": Grammar(
        "tree_sitter_cpp",
        functions="",
        scopes="class_specifier struct_specifier union_specifier",
        queries="(function_definition declarator: (_) @name) @function\n"
        "(namespace_definition name: (_)? @name) @scope",
    ),
    "Java": Grammar(
        "tree_sitter_java",
        functions="method_declaration constructor_declaration compact_constructor_declaration",
        scopes="class_declaration interface_declaration enum_declaration record_declaration "
        "annotation_type_declaration",
        comments=_BOTH_COMMENTS,
        queries="(package_declaration [(identifier) (scoped_identifier)] @name) @package",
    ),
    "Go": Grammar(
        "tree_sitter_go",
        functions="function_declaration",
        queries="(method_declaration receiver: (parameter_list (parameter_declaration type: (_) @receiver)) "
        "name: (_) @name) @function\n(package_clause (_) @name) @package",
    ),
    "Rust": Grammar(
        "tree_sitter_rust",
        functions="function_item",
        scopes="function_item trait_item mod_item",
        comments=_BOTH_COMMENTS,
        queries="(impl_item type: (_) @name) @scope",
    ),
    "JavaScript": Grammar(
        "tree_sitter_javascript",
        functions=_JS_FUNCTIONS,
        scopes="class_declaration class",
        queries=f"{_JS}(field_definition property: (_) @name value: {_JS_VALUE}) @function",
    ),
    "TypeScript": Grammar(
        "tree_sitter_typescript", _JS_FUNCTIONS, _TS_SCOPES, queries=_TS, entry="language_typescript"
    ),
    "TSX": Grammar("tree_sitter_typescript", _JS_FUNCTIONS, _TS_SCOPES, queries=_TS, entry="language_tsx"),
    "PHP": Grammar(
        "tree_sitter_php",
        functions="function_definition method_declaration",
        scopes="class_declaration interface_declaration trait_declaration enum_declaration",
        packages="namespace_definition",
        entry="language_php",
    ),
    "Kotlin": Grammar(
        "tree_sitter_kotlin",
        functions="function_declaration",
        scopes="class_declaration object_declaration",
        comments=_BOTH_COMMENTS,
        queries="(companion_object name: (_)? @name) @scope\n(package_header (_) @name) @package",
    ),
    "Scala": Grammar(
        "tree_sitter_scala",
        functions="function_definition",
        scopes="class_definition object_definition trait_definition enum_definition",
        packages="package_clause",
        comments="comment block_comment",
    ),
    "C#": Grammar(
        "tree_sitter_c_sharp",
        functions="method_declaration constructor_declaration",
        scopes="class_declaration struct_declaration interface_declaration record_declaration",
        packages="namespace_declaration file_scoped_namespace_declaration",
    ),
    "Ruby": Grammar("tree_sitter_ruby", functions="method singleton_method", scopes="class module"),
}

_UNNAMED = {"namespace_definition": "(anonymous namespace)", "companion_object": "Companion"}
_PARTS_OF = {
    **dict.fromkeys(("qualified_identifier", "scope_resolution"), ("scope", "name")),
    **dict.fromkeys(("template_type", "template_function", "template_method"), ("name",)),
    "member_expression": ("object", "property"),
    "scoped_type_identifier": ("name",),
    "generic_type": ("type",),
}
"""Node → its fields with names; any other name is the node's text."""

_JS_OWNERS = {"this", "prototype", "exports", "module", "window", "globalThis"}
# Macros hide from the grammar what a name or body belongs to: after class, after a namespace's name or a
# function's parameters, and on a line of their own. Quantifiers that keep what they took stay linear.
_MACRO_NAME = rb"_*+[A-Z][A-Z0-9]*+_[A-Z0-9_]*+"
_MACROS = re.compile(
    rb"\b((?:class|struct)\s++)[A-Z][A-Z0-9_]++(?=\s++\w++\s*+(?:final\s*+)?[:{])"
    rb"|(\bnamespace\s++\w++\s++)" + _MACRO_NAME + rb"(?:\([^()\n]*+\))?(?=\s*+\{)"
    rb"|(\)\s*+(?:const\s++)?)" + _MACRO_NAME + rb"(?:\([^()\n]*+\))?(?=\s*+[{;])"
    rb"|(^[ \t]*+)" + _MACRO_NAME + rb"(?=[ \t]*+$)",
    re.MULTILINE,
)
_NO_CODE = b" \t\r\f\v{}()[];,"


@dataclass(slots=True)
class _Item:
    kind: str
    start: int
    end: int
    rows: tuple[int, int]
    names: tuple[str, ...]
    receiver: str = ""

    @property
    def order(self) -> tuple[int, int, bool]:
        return (self.start, -self.end, self.kind == "scope")  # a function is not in its own scope


def touched_definitions(question: Question) -> list[Definition]:
    """Return the innermost subroutines around lines that are more than blanks, comments and brackets."""
    items, comments = _read(question.language, question.source)
    code = _without(question.source, comments).split(b"\n")
    wanted = {number - 1 for number in question.lines if 0 < number <= len(code)}
    wanted = {row for row in wanted if code[row].strip(_NO_CODE)}
    owners: dict[int, Definition] = {}
    for item, definition in _functions(items):
        span = range(item.rows[0], item.rows[1] + 1)
        rows = wanted.intersection(span) if len(wanted) < len(span) else (r for r in span if r in wanted)
        owners.update(dict.fromkeys(rows, definition))
    return list(dict.fromkeys(owners[row] for row in sorted(owners)))


def _functions(items: Sequence[_Item]) -> Iterator[tuple[_Item, Definition]]:
    """Yield each function with what is around it, outer ones before those inside them."""
    around: list[_Item] = []
    package = ""
    for item in sorted(items, key=lambda enclosing: enclosing.order):
        while around and around[-1].end <= item.start:
            around.pop()
        if item.kind == "function":
            scope = tuple(
                name for enclosing in around if enclosing.kind == "scope" for name in enclosing.names
            )
            inside = ".".join(
                name for enclosing in around if enclosing.kind == "package" for name in enclosing.names
            )
            if item.names and item.names[-1]:
                *owners, name = item.names
                yield item, Definition(name, (*scope, *owners), item.receiver, inside or package)
            continue
        if item.kind == "package":
            package = item.names[0]
        if len(around) < MAX_DEPTH:
            around.append(item)


def _read(language: str, source: bytes) -> tuple[list[_Item], list[tuple[int, int]]]:
    """Return the captures of a source, and where its comments begin and end."""
    parser, query = _tools(language)
    if language == "C++":
        source = _MACROS.sub(_blank, source)
    cursor = importlib.import_module("tree_sitter").QueryCursor(query)
    items: list[_Item] = []
    comments: list[tuple[int, int]] = []
    for _, captures in cursor.matches(parser.parse(source).root_node):
        for kind in ("function", "scope", "package"):
            if nodes := captures.get(kind):
                items.append(_item(kind, nodes[0], captures, source))
        comments += [(node.start_byte, node.end_byte) for node in captures.get("comment", ())]
    return items, comments


def _blank(match: re.Match[bytes]) -> bytes:
    """Return what stands before a macro, with blanks in the macro's place."""
    before = match[match.lastindex or 0]
    return before + b" " * (len(match[0]) - len(before))


def _item(kind: str, node: Any, captures: Mapping[str, Sequence[Any]], source: bytes) -> _Item:
    rows = (node.start_point[0], node.end_point[0])
    named = captures.get("name", ())
    if kind == "package":
        names: tuple[str, ...] = (_text(named[0], source),)
    else:
        names = _parts(named[0], source) if named else (_UNNAMED.get(node.type, ""),)
    receiver = ""
    for receiver_node in captures.get("receiver", ()):
        star, base = (
            ("*", receiver_node.named_children[0])
            if receiver_node.type == "pointer_type"
            else ("", receiver_node)
        )
        receiver = star + _parts(base, source)[-1]
    end = _end_of_package(node) if kind == "package" else node.end_byte
    return _Item(kind, node.start_byte, end, rows, names, receiver)


def _end_of_package(node: Any) -> int:
    """Return where a package ends that has its content in brackets; elsewhere it is only a line."""
    return int(node.end_byte if node.child_by_field_name("body") else node.start_byte)


def _parts(node: Any, source: bytes, depth: int = MAX_DEPTH) -> tuple[str, ...]:
    """Return a name's parts, outermost first, without template arguments, pointers and parameters.

    Parts within so many others are left out.
    """
    if not depth:
        return ()
    for _ in range(MAX_DEPTH):
        inner = node.child_by_field_name("declarator")
        if node.type in ("reference_declarator", "parenthesized_declarator") and node.named_children:
            inner = node.named_children[-1]
        if inner is None or node.type == "operator_cast":
            break
        node = inner
    if fields := _PARTS_OF.get(node.type):
        inside = [node.child_by_field_name(field) for field in fields]
        parts = [
            part
            for inner_node in inside
            if inner_node is not None
            for part in _parts(inner_node, source, depth - 1)
        ]
        if node.type == "member_expression":
            parts = [part for part in parts if part not in _JS_OWNERS]
        return tuple(parts[-MAX_DEPTH:])
    if node.type == "nested_namespace_specifier":
        return tuple(
            part for child in node.named_children[:MAX_DEPTH] for part in _parts(child, source, depth - 1)
        )
    text = _text(node, source)
    return (text.partition("(")[0] if node.type == "operator_cast" else text,)


def _text(node: Any, source: bytes) -> str:
    text = source[node.start_byte : min(node.end_byte, node.start_byte + MAX_NAME)].decode(errors="replace")
    return text.strip("`#\"'")


def _without(source: bytes, spans: Sequence[tuple[int, int]]) -> bytes:
    """Return a source with blanks in place of its comments; lines stay lines."""
    pieces, position = [], 0
    for start, end in sorted(spans):
        if start >= position:
            pieces += [source[position:start], b"\n" * source.count(b"\n", start, end)]
            position = end
    return b"".join([*pieces, source[position:]])


@cache
def _tools(language: str) -> tuple[Any, Any]:
    """Return the parser of a language and its query."""
    grammar = GRAMMARS[language]
    parser = parser_of(grammar.package, grammar.entry)
    return parser, importlib.import_module("tree_sitter").Query(parser.language, grammar.query)


def answer(question: Mapping[str, Any], source: bytes) -> list[dict[str, Any]]:
    """Answer a question of ``parser_process``, as JSON can hold it."""
    parsed = Question(question["language"], source, question["lines"])
    return [asdict(definition) for definition in touched_definitions(parsed)]
