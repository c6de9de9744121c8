"""Python source as a unit of the call graph: definitions, imports, and what each function uses."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from agents.source.python_index import (
    PARSE_ERRORS,
    CodeScope,
    Definition,
    imported_names,
    parameters_of,
    parse_python,
    read_statements,
    split_scopes,
)
from agents.source.routes.source import Chain, Class, Function, Unit
from agents.source.syntax_nodes import CALLED

_MOST_PARTS = 30
"""Longest chain that is followed."""

_SAME_VALUE = ("Optional", "Annotated", "Union", "Type", "ClassVar", "Final", "Required", "NotRequired")
"""Subscripted types of which the first part is the type of the value."""


@dataclass(frozen=True, slots=True)
class PythonFile:
    """A unit with its scopes, which route finders read further."""

    unit: Unit
    scopes: list[CodeScope]


def read_python(path: str, module: str, source: bytes | str) -> PythonFile:
    """Read a Python file.

    Args:
        path: In the repository; that of a package ends in ``__init__.py``.
        module: As stack frames spell it.
        source: Its text.

    Raises:
        PARSE_ERRORS: it cannot be parsed.
    """
    scopes = split_scopes(parse_python(source))
    package = module if path.endswith("__init__.py") else module.rpartition(".")[0]
    bodies = {scope: _read_body(scope) for scope in scopes}
    imports = [node for body in bodies.values() for node in body.imports]
    functions = {
        scope.qualified: _function(module, scope, scope.node, body)
        for scope, body in bodies.items()
        if isinstance(scope.node, Definition)
    }
    classes = {
        scope.qualified: _class(module, scope, scope.node, bodies)
        for scope in scopes
        if isinstance(scope.node, ast.ClassDef)
    }
    top = bodies[scopes[0]]
    variables = {name: top.variables.get(name, ()) for name in sorted(top.bound) if name not in functions}
    names = {name: origin for node in imports for name, origin in imported_names(node, package)}
    return PythonFile(Unit(path, module, "Python", names, functions, classes, variables), scopes)


def chain_of(node: ast.expr | None) -> Chain:
    """Return the chain of an expression; empty where its value has no name to begin with.

    >>> chain_of(ast.parse("a.b(1).c", mode="eval").body)
    ('a', 'b', '()', 'c')
    """
    parts: list[str] = []
    while node is not None and len(parts) < _MOST_PARTS:
        match node:
            case ast.Attribute():
                parts.append(node.attr)
                node = node.value
            case ast.Call(func=ast.Name(id="super")):
                return ("super", *reversed(parts))
            case ast.Call():
                parts.append(CALLED)
                node = node.func
            case ast.Await() | ast.NamedExpr():
                node = node.value
            case ast.Name():
                return (node.id, *reversed(parts))
            case _:
                return ("", *reversed(parts)) if parts and parts[-1] != CALLED else ()
    return ()


def type_chain(node: ast.expr | None) -> Chain:
    """Return the chain of the value that an annotation describes: that of its class, called."""
    match node:
        case ast.Constant(value=str(text)):
            try:
                return type_chain(ast.parse(text, mode="eval").body)
            except PARSE_ERRORS:
                return ()
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return type_chain(left) or type_chain(right)
        case ast.Subscript(value=value, slice=inside):
            name = chain_of(value)[-1:]
            first = inside.elts[0] if isinstance(inside, ast.Tuple) and inside.elts else inside
            return type_chain(first) if name and name[0] in _SAME_VALUE else ()
        case ast.Name() | ast.Attribute():
            chain = chain_of(node)
            return (*chain, CALLED) if chain else ()
    return ()


@dataclass(slots=True)
class _Body:
    """What the code of one scope uses and binds."""

    uses: dict[Chain, None] = field(default_factory=dict)
    variables: dict[str, Chain] = field(default_factory=dict)
    bound: set[str] = field(default_factory=set)
    returns: Chain = ()
    fields: dict[str, Chain] = field(default_factory=dict)  # of self
    imports: list[ast.Import | ast.ImportFrom] = field(default_factory=list)

    def read(self, nodes: Sequence[ast.AST]) -> None:
        """Read statements or expressions."""
        inner: set[ast.AST] = set()  # parts of chains
        for statement, expressions in read_statements(nodes):
            if isinstance(statement, ast.Import | ast.ImportFrom):
                self.imports.append(statement)
            for node in (statement, *expressions):
                self._bind(node)
                if isinstance(node, ast.Attribute | ast.Call | ast.Name) and node not in inner:
                    if not isinstance(node, ast.Name) or isinstance(node.ctx, ast.Load):
                        self.uses[chain_of(node)] = None
                    part: ast.expr = node
                    while isinstance(part, ast.Attribute | ast.Call | ast.Await):
                        part = part.func if isinstance(part, ast.Call) else part.value
                        inner.add(part)
        self.uses.pop((), None)

    def _bind(self, node: ast.AST) -> None:
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    self._assign(target, chain_of(value))
            case ast.AnnAssign(target=target, annotation=annotation, value=given):
                self._assign(target, type_chain(annotation) or chain_of(given))
            case ast.NamedExpr(target=target, value=value):
                self._assign(target, chain_of(value))
            case ast.withitem(context_expr=value, optional_vars=ast.Name() as target):
                self._assign(target, chain_of(value))
            case ast.Return(value=value):
                self.returns = self.returns or chain_of(value)

    def _assign(self, target: ast.expr, chain: Chain) -> None:
        match target:
            case ast.Name(id=name):
                self.bound.add(name)
                if chain and chain[0] != name:
                    self.variables.setdefault(name, chain)
            case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name):
                if chain:
                    self.fields.setdefault(name, chain)
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                for element in elements:
                    self._assign(element, ())


def _read_body(scope: CodeScope) -> _Body:
    """Read a scope with its own decorators and defaults; decorators of what is nested are used here, too."""
    body, node = _Body(), scope.node
    nodes: list[ast.AST] = []
    if isinstance(node, Definition):
        for parameter in parameters_of(node):
            if chain := type_chain(parameter.annotation):
                body.variables[parameter.arg] = chain
            if isinstance(parameter.annotation, ast.Subscript):
                nodes.append(parameter.annotation)
        nodes += [value for value in (*node.args.defaults, *node.args.kw_defaults) if value is not None]
    body.bound.update(nested.name for nested in scope.nested)
    decorated = [definition.node for definition in (scope, *scope.nested)]
    decorators = [
        decorator for definition in decorated for decorator in getattr(definition, "decorator_list", ())
    ]
    body.read([*nodes, *node.body, *decorators])
    return body


def _function(module: str, scope: CodeScope, node: Definition, body: _Body) -> Function:
    parameters = (*parameters_of(node), *(item for item in (node.args.vararg, node.args.kwarg) if item))
    names = body.bound.union(item.arg for item in parameters)
    return Function(
        name=f"{module}.{scope.qualified}",
        qualified=scope.qualified,
        owner=scope.around.qualified if scope.around and isinstance(scope.around.node, ast.ClassDef) else "",
        line=node.lineno,
        end=node.end_lineno or node.lineno,
        uses=tuple(body.uses),
        variables={**dict.fromkeys(names, ()), **body.variables},
        returns=type_chain(node.returns) or body.returns,
    )


def _class(module: str, scope: CodeScope, node: ast.ClassDef, bodies: Mapping[CodeScope, _Body]) -> Class:
    body = bodies[scope]
    fields = dict(body.variables)
    for method in [bodies[nested] for nested in scope.nested if isinstance(nested.node, Definition)]:
        for name, chain in method.fields.items():
            fields.setdefault(name, _of_parameter(chain, method))
    return Class(
        name=f"{module}.{scope.qualified}",
        qualified=scope.qualified,
        line=node.lineno,
        bases=tuple(chain for base in node.bases if (chain := chain_of(_unsubscripted(base)))),
        fields=fields,
        attributes=frozenset(body.bound - {nested.name for nested in scope.nested}),
        uses=tuple(body.uses),
    )


def _of_parameter(chain: Chain, body: _Body) -> Chain:
    """Replace a parameter or local name by what it holds: ``self.store = store``."""
    typed = body.variables.get(chain[0], ())
    return (*typed, *chain[1:]) if typed else chain


def _unsubscripted(node: ast.expr) -> ast.expr:
    return node.value if isinstance(node, ast.Subscript) else node
