"""Java source as a unit of the call graph, with Spring's mappings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agents.source.routes.source import Chain, Class, Function, Unit
from agents.source.syntax_nodes import (
    CALLED,
    Link,
    children_of,
    field_text,
    fields_of,
    last_line_of,
    line_of,
    nodes_within,
    parser_of,
    read_chain,
    string_of,
    text_of,
)

_TYPES = ("class_declaration", "interface_declaration", "enum_declaration", "record_declaration")
_METHODS = ("method_declaration", "constructor_declaration", "compact_constructor_declaration")
_MAPPINGS = {
    "RequestMapping": (),
    **{f"{verb.capitalize()}Mapping": (verb,) for verb in ("GET", "POST", "PUT", "DELETE", "PATCH")},
}
_LINKS = {
    "method_invocation": Link("object", "name", called=True),
    "field_access": Link("object", "field"),
    "parenthesized_expression": Link(),
}
_NAMES = ("identifier", "this", "super", "type_identifier")

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
        enum_bodies = children_of(body, "enum_body_declarations")
        for member in (member for part in (body, *enum_bodies) for member in children_of(part)):
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
        above = [*fields_of(node, "superclass", "interfaces"), *children_of(node, "extends_interfaces")]
        bases = [name for part in above for name in _types_in(part)]
        name = ".".join(part for part in (self.package, qualified) if part)
        self.imports.setdefault(simple, name)
        self.classes[qualified] = Class(
            name, qualified, line_of(node), tuple((base,) for base in bases), fields
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
        for inner in nodes_within(node.child_by_field_name("body"), _TYPES):
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
    packages = children_of(root, "package_declaration")
    reader = _Reader(text_of(packages[0].named_children[-1]) if packages else "")
    for node in children_of(root, "import_declaration"):
        name = text_of(next(child for child in node.named_children if child.type.endswith("identifier")))
        wildcard = children_of(node, "asterisk")
        reader.imports[f"*{name}" if wildcard else name.rpartition(".")[2]] = name
    for node in children_of(root, *_TYPES):
        reader.read_type(node, "")
    unit = Unit(path, reader.package, "Java", reader.imports, reader.functions, reader.classes)
    return JavaFile(unit, tuple(reader.mapped), reader.constants)


def _annotations(node: Any) -> dict[str, Any]:
    """Return the annotations of a definition by their names without packages."""
    annotations = {}
    for modifiers in children_of(node, "modifiers"):
        for annotation in children_of(modifiers, "annotation", "marker_annotation"):
            annotations[field_text(annotation, "name").rpartition(".")[2]] = annotation
    return annotations


def _mapping(annotation: Any, name: str) -> RequestMapping:
    methods, paths = tuple(_MAPPINGS[name]), []
    arguments = annotation.child_by_field_name("arguments") if annotation is not None else None
    for pair in children_of(arguments):
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


def _types_in(node: Any) -> list[str]:
    listed = [child for part in children_of(node, "type_list") for child in children_of(part)]
    return [name for child in listed or children_of(node) if (name := _type_of(child))]


def _parameters(node: Any) -> dict[str, Chain]:
    types: dict[str, Chain] = {}
    for parameter in children_of(node.child_by_field_name("parameters")):
        type_ = _type_of(parameter.child_by_field_name("type"))
        types[field_text(parameter, "name")] = (type_, CALLED) if type_ else ()
    return types


def _locals(node: Any) -> dict[str, Chain]:
    type_ = _type_of(node.child_by_field_name("type"))
    types: dict[str, Chain] = {}
    for declarator in node.children_by_field_name("declarator"):
        chain, name = _chain(declarator.child_by_field_name("value")), field_text(declarator, "name")
        types[name] = (type_, CALLED) if type_ else (chain if chain[:1] != (name,) else ())
    return types


def _chain(node: Any) -> Chain:
    """Return the chain of a call, a field, a new object or a method reference; empty for others."""
    chain = read_chain(node, _LINKS, _NAMES, _beginning)
    return chain if len(chain) > 1 else ()


def _beginning(node: Any) -> Chain | None:
    if node.type == "object_creation_expression":
        type_ = _type_of(node.child_by_field_name("type"))
        return (type_, CALLED) if type_ else ()
    if node.type == "method_reference":
        first, *rest = node.named_children
        begun = read_chain(first, _LINKS, _NAMES, _beginning)
        return (*(begun or ("",)), text_of(rest[-1]) if rest else "<init>")
    return None
