"""Java source as a unit of the call graph, with Spring's mappings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agents.source.routes.source import CALLED, Chain, Class, Function, Unit
from agents.source.routes.syntax_nodes import (
    field_text,
    last_line_of,
    line_of,
    nodes_within,
    parser_of,
    string_of,
    text_of,
)

_TYPES = ("class_declaration", "interface_declaration", "enum_declaration", "record_declaration")
_METHODS = ("method_declaration", "constructor_declaration", "compact_constructor_declaration")
_MAPPINGS = {
    "RequestMapping": (),
    **{f"{verb.capitalize()}Mapping": (verb,) for verb in ("GET", "POST", "PUT", "DELETE", "PATCH")},
}
_MOST_PARTS = 30

Text = tuple[str, ...]
"""A text as its parts: literals begin with ``"``, other parts are names of constants."""


@dataclass(frozen=True, slots=True)
class RequestMapping:
    """One mapping: methods, and the texts of its paths."""

    methods: tuple[str, ...]
    paths: tuple[Text, ...]


@dataclass(frozen=True, slots=True)
class SpringMethod:
    """A method that answers requests, with the mapping of its class."""

    qualified: str
    outer: RequestMapping
    inner: RequestMapping


@dataclass(frozen=True, slots=True)
class JavaFile:
    """A unit, its mappings, and its constants: ``Paths.ORDERS`` → text."""

    unit: Unit
    mapped: tuple[SpringMethod, ...]
    constants: Mapping[str, Text]


@dataclass(slots=True)
class _Reader:
    package: str
    imports: dict[str, str] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)
    classes: dict[str, Class] = field(default_factory=dict)
    constants: dict[str, Text] = field(default_factory=dict)
    mapped: list[SpringMethod] = field(default_factory=list)

    def read_type(self, node: Any, around: str) -> None:
        """Read a class or interface, and those inside."""
        simple = field_text(node, "name")
        qualified = f"{around}${simple}" if around else simple
        body = node.child_by_field_name("body")
        fields: dict[str, Chain] = {}
        annotations = _annotations(node)
        outer = _mapping(annotations.get("RequestMapping"), "RequestMapping")
        answers = any(name.endswith("Controller") for name in annotations) or "RequestMapping" in annotations
        members = list(body.named_children) if body is not None else []
        members += [
            child
            for part in members
            if part.type == "enum_body_declarations"
            for child in part.named_children
        ]
        for member in members:
            if member.type == "field_declaration":
                self._read_field(member, simple, fields)
            elif member.type in _TYPES:
                self.read_type(member, qualified)
            elif member.type in _METHODS:
                function = self._method(member, qualified, simple)
                self.functions[function.qualified] = function
                if answers:
                    self._map(member, function.qualified, outer)
        if node.type == "record_declaration":
            fields |= _parameters(node)
        bases = [child for part in ("superclass", "interfaces") for child in _named_types(node, part)]
        bases += [
            child
            for part in node.named_children
            if part.type == "extends_interfaces"
            for child in _types_in(part)
        ]
        name = ".".join(part for part in (self.package, qualified) if part)
        self.imports.setdefault(simple, name)
        self.classes[qualified] = Class(
            name, qualified, line_of(node), tuple((child,) for child in bases), fields
        )

    def _read_field(self, node: Any, owner: str, fields: dict[str, Chain]) -> None:
        type_ = _type_of(node.child_by_field_name("type"))
        for declarator in node.children_by_field_name("declarator"):
            name = field_text(declarator, "name")
            fields[name] = (type_, CALLED) if type_ else ()
            value = _text(declarator.child_by_field_name("value"))
            if value:
                self.constants[f"{owner}.{name}"] = value

    def _method(self, node: Any, owner: str, simple: str) -> Function:
        name = "<init>" if node.type != "method_declaration" else field_text(node, "name")
        returns = _type_of(node.child_by_field_name("type"))
        variables = _parameters(node)
        uses: dict[Chain, None] = {}
        body = node.child_by_field_name("body")
        for inner in nodes_within(body, (*_TYPES,)) if body is not None else ():
            if inner.type == "local_variable_declaration":
                variables |= _locals(inner)
            elif inner.type in ("enhanced_for_statement", "resource"):
                type_ = _type_of(inner.child_by_field_name("type"))
                variables[field_text(inner, "name")] = (type_, CALLED) if type_ else ()
            chain = _chain(inner)
            if chain:
                uses[chain] = None
        qualified = f"{owner}.{name}"
        return Function(
            name=".".join(part for part in (self.package, qualified) if part),
            qualified=qualified,
            owner=owner,
            line=line_of(node.child_by_field_name("name") or node),
            end=last_line_of(node),
            uses=tuple(uses),
            variables=variables,
            returns=(returns, CALLED) if returns else (),
        )

    def _map(self, node: Any, qualified: str, outer: RequestMapping) -> None:
        for name, annotation in _annotations(node).items():
            if name in _MAPPINGS:
                self.mapped.append(SpringMethod(qualified, outer, _mapping(annotation, name)))


def read_java(path: str, source: bytes) -> JavaFile:
    """Read a Java file; what is no valid Java is left out."""
    root = parser_of("tree_sitter_java").parse(source).root_node
    packages = [node for node in root.named_children if node.type == "package_declaration"]
    reader = _Reader(text_of(packages[0].named_children[-1]) if packages else "")
    for node in root.named_children:
        if node.type == "import_declaration":
            name = text_of(next(child for child in node.named_children if child.type.endswith("identifier")))
            wildcard = any(child.type == "asterisk" for child in node.named_children)
            reader.imports[f"*{name}" if wildcard else name.rpartition(".")[2]] = name
    for node in root.named_children:
        if node.type in _TYPES:
            reader.read_type(node, "")
    unit = Unit(path, reader.package, "Java", reader.imports, reader.functions, reader.classes)
    return JavaFile(unit, tuple(reader.mapped), reader.constants)


def _annotations(node: Any) -> dict[str, Any]:
    """Return the annotations of a definition by their names without packages."""
    annotations = {}
    for modifiers in node.named_children:
        if modifiers.type == "modifiers":
            for annotation in modifiers.named_children:
                if annotation.type in ("annotation", "marker_annotation"):
                    annotations[field_text(annotation, "name").rpartition(".")[2]] = annotation
    return annotations


def _mapping(annotation: Any, name: str) -> RequestMapping:
    methods, paths = tuple(_MAPPINGS[name]), []
    arguments = annotation.child_by_field_name("arguments") if annotation is not None else None
    for pair in arguments.named_children if arguments is not None else ():
        key, value = "value", pair
        if pair.type == "element_value_pair":
            key, value = field_text(pair, "key"), pair.child_by_field_name("value")
        values = value.named_children if value.type == "element_value_array_initializer" else [value]
        if key in ("value", "path"):
            paths += [text for element in values if (text := _text(element))]
        elif key == "method":
            methods = tuple(text_of(element).rpartition(".")[2] for element in values)
    return RequestMapping(methods, tuple(paths) or (('"',),))


def _text(node: Any) -> Text:
    """Return the parts of a text; empty where it is none."""
    if node is None:
        return ()
    literal = string_of(node)
    if literal is not None:
        return (f'"{literal}',)
    if node.type in ("identifier", "field_access"):
        return (".".join(text_of(node).split(".")[-2:]),)
    if node.type == "binary_expression":
        left, right = (_text(node.child_by_field_name(side)) for side in ("left", "right"))
        return (*left, *right) if left and right else ()
    return ()


def _type_of(node: Any) -> str:
    """Return the name of a class type without its arguments; empty for others."""
    if node is None:
        return ""
    if node.type == "generic_type":
        inner = node.named_children[0]
        name = text_of(inner)
        # Of a reactive or optional value, what is asked of it later is asked of its content.
        return name if name[:1].isupper() else ""
    name = text_of(node).rpartition(".")[2]
    return name if node.type in ("type_identifier", "scoped_type_identifier") and name != "var" else ""


def _named_types(node: Any, field_name: str) -> list[str]:
    child = node.child_by_field_name(field_name)
    return _types_in(child) if child is not None else []


def _types_in(node: Any) -> list[str]:
    listed = [
        child
        for part in node.named_children
        for child in (part.named_children if part.type == "type_list" else [part])
    ]
    return [name for child in listed if (name := _type_of(child))]


def _parameters(node: Any) -> dict[str, Chain]:
    parameters = node.child_by_field_name("parameters")
    types: dict[str, Chain] = {}
    for parameter in parameters.named_children if parameters is not None else ():
        type_ = _type_of(parameter.child_by_field_name("type"))
        types[field_text(parameter, "name")] = (type_, CALLED) if type_ else ()
    return types


def _locals(node: Any) -> dict[str, Chain]:
    type_ = _type_of(node.child_by_field_name("type"))
    types: dict[str, Chain] = {}
    for declarator in node.children_by_field_name("declarator"):
        value = declarator.child_by_field_name("value")
        chain = _chain(value) if value is not None else ()
        name = field_text(declarator, "name")
        types[name] = (type_, CALLED) if type_ else (chain if chain[:1] != (name,) else ())
    return types


def _chain(node: Any) -> Chain:
    """Return the chain of a call, a field, a new object or a method reference; empty for others."""
    parts: list[str] = []
    for _ in range(_MOST_PARTS):
        if node is None:
            break
        if node.type == "method_invocation":
            parts += [CALLED, field_text(node, "name")]
            node = node.child_by_field_name("object")
            if node is None:
                return tuple(reversed(parts))
        elif node.type == "field_access":
            parts.append(field_text(node, "field"))
            node = node.child_by_field_name("object")
        elif node.type == "object_creation_expression":
            type_ = _type_of(node.child_by_field_name("type"))
            return (type_, CALLED, *reversed(parts)) if type_ else ()
        elif node.type == "method_reference":
            named = node.named_children
            parts.append(text_of(named[-1]) if len(named) > 1 else "<init>")
            node = named[0]
        elif node.type in ("identifier", "this", "super", "type_identifier"):
            return (text_of(node), *reversed(parts)) if parts else ()
        elif node.type == "parenthesized_expression":
            node = node.named_children[0] if node.named_children else None
        else:
            return ("", *reversed(parts)) if parts and parts[-1] != CALLED else ()
    return ()
