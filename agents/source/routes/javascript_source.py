"""JavaScript and TypeScript source as a unit of the call graph, with what Express is asked to do."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from agents.source.changes.languages import language_of
from agents.source.routes.source import Chain, Class, Function, Unit
from agents.source.syntax import GRAMMARS
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

VERBS = ("get", "post", "put", "delete", "patch", "options", "head", "all")

_FUNCTIONS = ("arrow_function", "function_expression", "generator_function")
_CLASSES = ("class_declaration", "class", "abstract_class_declaration")
_OWNERS = {"this", "prototype", "exports", "module", "window", "globalThis"}

_LINKS = {
    "call_expression": Link("function", called=True),
    "new_expression": Link("constructor", called=True),
    "member_expression": Link("object", "property"),
    **dict.fromkeys(("await_expression", "parenthesized_expression", "non_null_expression"), Link()),
}
_NAMES = ("identifier", "this", "super")

_MAKERS = (("express", CALLED), ("Router", CALLED))
"""Ends of chains that make an application or a router."""

_EXPORTED = "<exported>"
"""The name of a router that is exported without one."""


@dataclass(frozen=True, slots=True)
class ExpressCall:
    """A call that adds a route, or mounts a router.

    Args:
        target: On what it is called.
        method: In lower case, ``all``, or ``use``.
        pattern: Its path; empty for none.
        handlers: Chains of the functions or routers that are handed over.
    """

    target: Chain
    method: str
    pattern: str
    handlers: tuple[Chain, ...]


@dataclass(frozen=True, slots=True)
class JavaScriptFile:
    """A unit, with the names of its routers and what is called on them."""

    unit: Unit
    routers: frozenset[str]
    calls: tuple[ExpressCall, ...]
    parameters: frozenset[str]  # of any function: an application may be handed in


@dataclass(slots=True)
class _Reader:
    path: str
    imports: dict[str, str] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)
    classes: dict[str, Class] = field(default_factory=dict)
    variables: dict[str, Chain] = field(default_factory=dict)
    exports: dict[str, Chain] = field(default_factory=dict)
    routers: set[str] = field(default_factory=set)
    calls: list[ExpressCall] = field(default_factory=list)
    parameters: set[str] = field(default_factory=set)

    def read(self, root: Any) -> None:
        for node in nodes_within(root):
            match node.type:
                case "variable_declarator":
                    self._declarator(node)
                case "function_declaration" | "generator_function_declaration":
                    self._function(node, field_text(node, "name"))
                case "class_declaration" | "class" | "abstract_class_declaration":
                    self._class(node)
                case "pair" if _is_function(value := node.child_by_field_name("value")):
                    self._function(value, field_text(node, "key").strip("'\""))
                case "assignment_expression":
                    self._assignment(node)
                case "import_statement":
                    self._import(node)
                case "export_statement":
                    self._export(node)
                case "call_expression":
                    self._call(node)

    def _function(self, node: Any, name: str | None = None, owner: str = "") -> Chain:
        """Record a function, one without a name under its line, and return its chain."""
        name = f"<{line_of(node)}>" if name is None else name
        qualified = f"{owner}.{name}" if owner else name
        parameters, single, body = fields_of(node, "parameters", "parameter", "body")
        given = [*nodes_within(parameters), *nodes_within(single), *([single] if single is not None else [])]
        names = {text_of(inner) for inner in given if inner.type == "identifier"}
        self.parameters |= names
        variables: dict[str, Chain] = dict.fromkeys(names, ())
        inside = [*nodes_within(body, _CLASSES), body] if body is not None else []
        for inner in inside:
            if inner.type == "variable_declarator":
                named, value = fields_of(inner, "name", "value")
                chain = self.chain(value)
                if named is not None and named.type == "identifier" and chain[:1] != (text_of(named),):
                    variables[text_of(named)] = chain
        uses = dict.fromkeys(chain for inner in inside if (chain := self.chain(inner)))
        function = Function(
            f"{self.path}:{line_of(node)}" if name.startswith("<") else qualified,
            qualified,
            owner,
            line_of(node),
            last_line_of(node),
            tuple(uses),
            {key: chain for key, chain in variables.items() if key not in self.imports},
        )
        self.functions.setdefault(qualified, function)
        return (name,)

    def _class(self, node: Any) -> None:
        name = field_text(node, "name")
        fields: dict[str, Chain] = {}
        for member in children_of(node.child_by_field_name("body")):
            if member.type == "method_definition":
                self._function(member, field_text(member, "name"), name)
                for inner in nodes_within(member):
                    if inner.type == "assignment_expression":
                        left, right = map(self.chain, fields_of(inner, "left", "right"))
                        if left[:1] == ("this",) and len(left) == 2:
                            fields[left[1]] = right
            elif member.type in ("field_definition", "public_field_definition"):
                value = member.child_by_field_name("value")
                key = field_text(member, "property") or field_text(member, "name")
                if _is_function(value):
                    self._function(value, key, name)
                elif value is not None:
                    fields[key] = self.chain(value)
        heritage = next(iter(children_of(node, "class_heritage")), None)
        bases = [self.chain(child) for child in nodes_within(heritage) if child.type == "identifier"]
        self.classes[name] = Class(name, name, line_of(node), tuple(base for base in bases if base), fields)

    def _declarator(self, node: Any) -> None:
        name, value = fields_of(node, "name", "value")
        if name is None or value is None:
            return
        while value.type in ("await_expression", "as_expression", "satisfies_expression"):
            value = value.named_children[0]
        if _is_function(value):
            self._function(value, text_of(name))
            return
        request = _required(value)
        if name.type == "object_pattern":
            for child in children_of(name) if request else ():
                if child.type == "shorthand_property_identifier_pattern":
                    self.imports[text_of(child)] = f"{request}#{text_of(child)}"
                elif child.type == "pair_pattern":
                    self.imports[field_text(child, "value")] = f"{request}#{field_text(child, 'key')}"
            return
        chain = self.chain(value)
        if request:
            self.imports[text_of(name)] = f"{request}#="
        elif chain[:1] != (text_of(name),):
            self.variables.setdefault(text_of(name), chain)
        if chain[-2:] in _MAKERS or text_of(value).startswith("new Router"):
            self.routers.add(text_of(name))

    def _assignment(self, node: Any) -> None:
        left, right = fields_of(node, "left", "right")
        parts = self.chain(left)
        named = [part for part in parts if part not in _OWNERS]
        if _is_function(right) and named and CALLED not in named:
            owner = ".".join(named[:-1])
            value = self._function(right, named[-1], owner)
            value = () if owner else value
        else:
            value = self.chain(right)
        if parts[:2] == ("module", "exports") or parts[:1] == ("exports",):
            rest = parts[2:] if parts[0] == "module" else parts[1:]
            if rest:
                self.exports[rest[0]] = value or (rest[0],)
            elif right is not None and right.type == "object":
                self._object(right)
            elif _is_function(right):
                self.exports["="] = self._function(right)
            elif value:
                self.exports["="] = value

    def _object(self, node: Any) -> None:
        for member in node.named_children:
            if member.type == "shorthand_property_identifier":
                self.exports[text_of(member)] = (text_of(member),)
            elif member.type == "pair":
                key, value = field_text(member, "key"), member.child_by_field_name("value")
                self.exports[key] = (key,) if _is_function(value) else self.chain(value)
            elif member.type == "method_definition":
                name = field_text(member, "name")
                self.exports[name] = self._function(member, name)

    def _import(self, node: Any) -> None:
        source = string_of(node.child_by_field_name("source")) or ""
        for child in nodes_within(node):
            if child.type == "import_clause":
                for name in children_of(child, "identifier"):
                    self.imports[text_of(name)] = f"{source}#default"
                for name in children_of(child, "namespace_import"):
                    self.imports[text_of(name.named_children[0])] = source
            elif child.type == "import_specifier":
                local = field_text(child, "alias") or field_text(child, "name")
                self.imports[local] = f"{source}#{field_text(child, 'name')}"

    def _export(self, node: Any) -> None:
        value, declared = fields_of(node, "value", "declaration")
        if _is_function(value):
            self.exports["default"] = self._function(value)
        elif chain := self.chain(value):
            self.exports["default"] = chain
        if declared is not None and any(text_of(child) == "default" for child in node.children):
            self.exports["default"] = (field_text(declared, "name"),)
        for inner in nodes_within(node, _CLASSES):
            if inner.type == "export_specifier":
                key = field_text(inner, "alias") or field_text(inner, "name")
                self.exports[key] = (field_text(inner, "name"),)

    def _call(self, node: Any) -> None:
        function, arguments = fields_of(node, "function", "arguments")
        if function is None or arguments is None or function.type != "member_expression":
            return
        method = field_text(function, "property")
        if method not in (*VERBS, "use"):
            return
        values = [child for child in arguments.named_children if child.type != "comment"]
        target, pattern = self._target(function.child_by_field_name("object"))
        if pattern is None:
            first = string_of(values[0]) if values else None
            pattern, values = (first, values[1:]) if first is not None else ("", values)
            if method != "use" and not pattern.startswith(("/", "*")):
                return
        handlers = [chain for child in values for chain in self._handlers(child)]
        if target and handlers:
            self.calls.append(ExpressCall(target, method, pattern, tuple(handlers)))

    def _target(self, node: Any) -> tuple[Chain, str | None]:
        """Return on what a route is added, and the path of ``app.route("/x").get(f).post(g)``."""
        while node is not None and node.type == "call_expression":
            function, arguments = fields_of(node, "function", "arguments")
            if function is None or function.type != "member_expression":
                return self._made(node), None
            owner = function.child_by_field_name("object")
            if field_text(function, "property") == "route":
                return self.chain(owner), string_of(next(iter(children_of(arguments)), None))
            node = owner
        return self.chain(node), None

    def _made(self, node: Any) -> Chain:
        """Return the router that ``Router().use(a).use(b)`` makes: what it is bound to, or exported as."""
        if self.chain(node)[-2:] not in _MAKERS:
            return ()
        while node.parent is not None and node.parent.type in ("member_expression", "call_expression"):
            node = node.parent
        around = node.parent
        if around is not None and around.type == "variable_declarator":
            name = field_text(around, "name")
        elif around is not None and around.type in ("export_statement", "assignment_expression"):
            name = _EXPORTED
            self.variables[name] = ()
            self.exports["="] = self.exports["default"] = (name,)
        else:
            return ()
        self.routers.add(name)
        return (name,)

    def _handlers(self, node: Any) -> list[Chain]:
        """Return what an argument hands over: itself, through wrappers, or each of a list."""
        if _is_function(node):
            return [self._function(node, f"<{line_of(node)}:{node.start_point[1]}>")]
        if node.type == "array":
            return [chain for child in node.named_children for chain in self._handlers(child)]
        chain = self.chain(node)
        if node.type == "call_expression":
            arguments = None if _required(node) else node.child_by_field_name("arguments")
            return [inner for child in children_of(arguments) for inner in self._handlers(child)] or [chain]
        return [chain] if chain else []

    def chain(self, node: Any) -> Chain:
        """Return the chain of a call, a member or a name; empty for others."""
        return read_chain(node, _LINKS, _NAMES, self._module)

    def _module(self, node: Any) -> Chain | None:
        """Return the name under which a module is recorded that ``require`` names."""
        request = _required(node)
        if not request:
            return None
        self.imports[f"require({request})"] = f"{request}#="
        return (f"require({request})",)


def read_javascript(path: str, source: bytes) -> JavaScriptFile:
    """Read a JavaScript or TypeScript file; what is not valid is left out."""
    reader = _Reader(path)
    language = language_of(path)
    assert language is not None
    grammar = GRAMMARS[language.grammar]
    reader.read(parser_of(grammar.package, grammar.entry).parse(source).root_node)
    unit = Unit(
        path,
        path,
        "JavaScript",
        reader.imports,
        reader.functions,
        reader.classes,
        {name: chain for name, chain in reader.variables.items() if name not in reader.imports},
        reader.exports,
    )
    return JavaScriptFile(unit, frozenset(reader.routers), tuple(reader.calls), frozenset(reader.parameters))


def _is_function(node: Any) -> bool:
    return node is not None and node.type in _FUNCTIONS


def _required(node: Any) -> str:
    """Return what ``require("./x")`` names, also where a name of it or a call of it is taken."""
    if node is None or node.type != "call_expression" or field_text(node, "function") != "require":
        return ""
    return string_of(next(iter(children_of(node.child_by_field_name("arguments"))), None)) or ""
