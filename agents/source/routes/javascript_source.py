"""JavaScript and TypeScript source as a unit of the call graph, with what Express is asked to do."""

from __future__ import annotations

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

GRAMMARS = {
    **dict.fromkeys((".js", ".mjs", ".cjs", ".jsx"), ("tree_sitter_javascript", "language")),
    **dict.fromkeys((".ts", ".mts", ".cts"), ("tree_sitter_typescript", "language_typescript")),
    ".tsx": ("tree_sitter_typescript", "language_tsx"),
}
"""Suffix → the grammar of a file."""

VERBS = ("get", "post", "put", "delete", "patch", "options", "head", "all")

_FUNCTIONS = ("arrow_function", "function_expression", "generator_function")
_CLASSES = ("class_declaration", "class", "abstract_class_declaration")
_OWNERS = {"this", "prototype", "exports", "module", "window", "globalThis"}
_MOST_PARTS = 30

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
                    self._function(node, field_text(node, "name"), "")
                case "class_declaration" | "class" | "abstract_class_declaration":
                    self._class(node)
                case "pair" if _is_function(node.child_by_field_name("value")):
                    self._function(
                        node.child_by_field_name("value"), field_text(node, "key").strip("'\""), ""
                    )
                case "assignment_expression":
                    self._assignment(node)
                case "import_statement":
                    self._import(node)
                case "export_statement":
                    self._export(node)
                case "call_expression":
                    self._call(node)

    def _function(self, node: Any, name: str, owner: str) -> None:
        qualified = f"{owner}.{name}" if owner else name
        variables: dict[str, Chain] = dict.fromkeys(self._parameters(node), ())
        uses: dict[Chain, None] = {}
        body = node.child_by_field_name("body")
        for inner in nodes_within(body, _CLASSES) if body is not None else ():
            if inner.type == "variable_declarator":
                named = inner.child_by_field_name("name")
                chain = self.chain(inner.child_by_field_name("value"))
                if named is not None and named.type == "identifier" and chain[:1] != (text_of(named),):
                    variables[text_of(named)] = chain
            chain = self.chain(inner)
            if chain:
                uses[chain] = None
        if body is not None and (chain := self.chain(body)):
            uses[chain] = None
        variables = {key: chain for key, chain in variables.items() if key not in self.imports}
        self.functions.setdefault(
            qualified,
            Function(
                qualified if not name.startswith("<") else f"{self.path}:{line_of(node)}",
                qualified,
                owner,
                line_of(node),
                last_line_of(node),
                tuple(uses),
                variables,
            ),
        )

    def _parameters(self, node: Any) -> set[str]:
        parameters = node.child_by_field_name("parameters") or node.child_by_field_name("parameter")
        names = (
            {
                text_of(identifier)
                for identifier in nodes_within(parameters)
                if identifier.type == "identifier"
            }
            if parameters
            else set()
        )
        if parameters is not None and parameters.type == "identifier":
            names.add(text_of(parameters))
        self.parameters |= names
        return names

    def _class(self, node: Any) -> None:
        name = field_text(node, "name")
        body = node.child_by_field_name("body")
        fields: dict[str, Chain] = {}
        for member in body.named_children if body is not None else ():
            if member.type == "method_definition":
                self._function(member, field_text(member, "name"), name)
                for inner in nodes_within(member):
                    if inner.type == "assignment_expression":
                        left = self.chain(inner.child_by_field_name("left"))
                        if left[:1] == ("this",) and len(left) == 2:
                            fields[left[1]] = self.chain(inner.child_by_field_name("right"))
            elif member.type in ("field_definition", "public_field_definition"):
                value = member.child_by_field_name("value")
                key = field_text(member, "property") or field_text(member, "name")
                if _is_function(value):
                    self._function(value, key, name)
                elif value is not None:
                    fields[key] = self.chain(value)
        heritage = next((child for child in node.named_children if child.type == "class_heritage"), None)
        bases = (
            [self.chain(child) for child in nodes_within(heritage) if child.type == "identifier"]
            if heritage
            else []
        )
        self.classes[name] = Class(name, name, line_of(node), tuple(base for base in bases if base), fields)

    def _declarator(self, node: Any) -> None:
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        if name is None or value is None:
            return
        while value.type in ("await_expression", "as_expression", "satisfies_expression"):
            value = value.named_children[0]
        if _is_function(value):
            self._function(value, text_of(name), "")
            return
        request = _required(value)
        if name.type == "object_pattern":
            for child in name.named_children:
                if request and child.type == "shorthand_property_identifier_pattern":
                    self.imports[text_of(child)] = f"{request}#{text_of(child)}"
                elif request and child.type == "pair_pattern":
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
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        parts = self.chain(left)
        named = [part for part in parts if part not in _OWNERS]
        if _is_function(right) and named and CALLED not in named:
            owner = ".".join(named[:-1])
            self._function(right, named[-1], owner)
            value: Chain = tuple(named) if not owner else ()
        else:
            value = self.chain(right)
        if parts[:2] == ("module", "exports") or parts[:1] == ("exports",):
            rest = parts[2:] if parts[0] == "module" else parts[1:]
            if rest:
                self.exports[rest[0]] = value or (rest[0],)
            elif right is not None and right.type == "object":
                self._object(right)
            elif _is_function(right):
                self._function(right, f"<{line_of(right)}>", "")
                self.exports["="] = (f"<{line_of(right)}>",)
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
                self._function(member, field_text(member, "name"), "")
                self.exports[field_text(member, "name")] = (field_text(member, "name"),)

    def _import(self, node: Any) -> None:
        source = string_of(node.child_by_field_name("source")) or ""
        for child in nodes_within(node):
            if child.type == "import_clause":
                for name in child.named_children:
                    if name.type == "identifier":
                        self.imports[text_of(name)] = f"{source}#default"
                    elif name.type == "namespace_import":
                        self.imports[text_of(name.named_children[0])] = source
            elif child.type == "import_specifier":
                local = field_text(child, "alias") or field_text(child, "name")
                self.imports[local] = f"{source}#{field_text(child, 'name')}"

    def _export(self, node: Any) -> None:
        value = node.child_by_field_name("value")
        if _is_function(value):
            self._function(value, f"<{line_of(value)}>", "")
            self.exports["default"] = (f"<{line_of(value)}>",)
        elif value is not None and (chain := self.chain(value)):
            self.exports["default"] = chain
        declared = node.child_by_field_name("declaration")
        if declared is not None and any(text_of(child) == "default" for child in node.children):
            self.exports["default"] = (field_text(declared, "name"),)
        for inner in nodes_within(node, _CLASSES):
            if inner.type == "export_specifier":
                key = field_text(inner, "alias") or field_text(inner, "name")
                self.exports[key] = (field_text(inner, "name"),)

    def _call(self, node: Any) -> None:
        function = node.child_by_field_name("function")
        arguments = node.child_by_field_name("arguments")
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
            function = node.child_by_field_name("function")
            if function is None or function.type != "member_expression":
                return self._made(node), None
            if field_text(function, "property") == "route":
                values = node.child_by_field_name("arguments").named_children
                return self.chain(function.child_by_field_name("object")), string_of(
                    values[0]
                ) if values else None
            node = function.child_by_field_name("object")
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
            name = f"<{line_of(node)}:{node.start_point[1]}>"
            self._function(node, name, "")
            return [(name,)]
        if node.type == "array":
            return [chain for child in node.named_children for chain in self._handlers(child)]
        if node.type == "call_expression":
            if _required(node):
                return [self.chain(node)]
            arguments = node.child_by_field_name("arguments")
            inner = [chain for child in arguments.named_children for chain in self._handlers(child)]
            return inner or [self.chain(node)]
        chain = self.chain(node)
        return [chain] if chain else []

    def chain(self, node: Any) -> Chain:
        """Return the chain of a call, a member or a name; empty for others."""
        parts: list[str] = []
        for _ in range(_MOST_PARTS):
            if node is None:
                break
            match node.type:
                case "call_expression" if request := _required(node):
                    self.imports[f"require({request})"] = f"{request}#="
                    return (f"require({request})", *reversed(parts))
                case "call_expression":
                    parts.append(CALLED)
                    node = node.child_by_field_name("function")
                case "new_expression":
                    parts.append(CALLED)
                    node = node.child_by_field_name("constructor")
                case "member_expression":
                    parts.append(field_text(node, "property"))
                    node = node.child_by_field_name("object")
                case "await_expression" | "parenthesized_expression" | "non_null_expression":
                    node = node.named_children[0] if node.named_children else None
                case "identifier" | "this" | "super":
                    return (text_of(node), *reversed(parts))
                case _:
                    return ("", *reversed(parts)) if parts and parts[-1] != CALLED else ()
        return ()


def read_javascript(path: str, suffix: str, source: bytes) -> JavaScriptFile:
    """Read a JavaScript or TypeScript file; what is not valid is left out."""
    reader = _Reader(path)
    reader.read(parser_of(*GRAMMARS[suffix]).parse(source).root_node)
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
    arguments = node.child_by_field_name("arguments").named_children
    return (string_of(arguments[0]) if arguments else None) or ""
