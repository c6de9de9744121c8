"""Python source as a unit of the call graph: definitions, imports, and what each function uses."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field

from agents.source.python_syntax import PARSE_ERRORS, Definition, imported_names, parse_python
from agents.source.routes.source import CALLED, Chain, Class, Function, Unit

_MOST_PARTS = 30
"""Longest chain that is followed."""

_SAME_VALUE = ("Optional", "Annotated", "Union", "Type", "ClassVar", "Final", "Required", "NotRequired")
"""Subscripted types of which the first part is the type of the value."""


@dataclass(frozen=True, slots=True)
class PythonFile:
    """A unit with its syntax tree, which route finders read further."""

    unit: Unit
    tree: ast.Module
    package: str  # in which relative imports begin


def read_python(path: str, module: str, source: bytes | str) -> PythonFile:
    """Read a Python file.

    Args:
        path: In the repository; that of a package ends in ``__init__.py``.
        module: As stack frames spell it.
        source: Its text.

    Raises:
        PARSE_ERRORS: it cannot be parsed.
    """
    tree = parse_python(source)
    package = module if path.endswith("__init__.py") else module.rpartition(".")[0]
    reader = _Reader(module, package)
    reader.read(tree.body)
    unit = Unit(
        path,
        module,
        "Python",
        reader.imports,
        reader.functions,
        reader.classes,
        {name: chain for name, chain in reader.variables.items() if name not in reader.functions},
    )
    return PythonFile(unit, tree, package)


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
    """What the statements of one scope use and bind, those of nested scopes aside."""

    uses: dict[Chain, None] = field(default_factory=dict)
    variables: dict[str, Chain] = field(default_factory=dict)
    bound: set[str] = field(default_factory=set)
    returns: Chain = ()
    fields: dict[str, Chain] = field(default_factory=dict)  # of self
    nested: list[Definition | ast.ClassDef] = field(default_factory=list)
    imports: list[ast.Import | ast.ImportFrom] = field(default_factory=list)

    def read(self, nodes: Sequence[ast.AST]) -> None:
        """Read statements or expressions; what a nested function is decorated with is used here, too."""
        left = list(reversed(nodes))
        while left:
            node = left.pop()
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                self.nested.append(node)
                self.bound.add(node.name)
                left += node.decorator_list
                continue
            if isinstance(node, ast.Import | ast.ImportFrom):
                self.imports.append(node)
                continue
            self._bind(node)
            if isinstance(node, ast.Attribute | ast.Call | ast.Name):
                left += self._use(node)
                continue
            left += reversed(list(ast.iter_child_nodes(node)))

    def _use(self, node: ast.Attribute | ast.Call | ast.Name) -> list[ast.AST]:
        """Record a chain, and return what is to be read besides: arguments, and computed beginnings."""
        if not isinstance(node, ast.Name) or isinstance(node.ctx, ast.Load):
            chain = chain_of(node)
            if chain:
                self.uses[chain] = None
        inside: list[ast.AST] = []
        part: ast.expr = node
        while isinstance(part, ast.Attribute | ast.Call | ast.Await):
            if isinstance(part, ast.Call):
                inside += [*part.args, *part.keywords]
                part = part.func
            else:
                part = part.value
        return inside if isinstance(part, ast.Name) else [*inside, part]

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


class _Reader:
    """Collects the definitions of a module, outer ones first."""

    def __init__(self, module: str, package: str) -> None:
        self.functions: dict[str, Function] = {}
        self.classes: dict[str, Class] = {}
        self.imports: dict[str, str] = {}
        self.variables: dict[str, Chain] = {}
        self._module = module
        self._package = package

    def read(self, body: Sequence[ast.stmt]) -> None:
        module_body = _Body()
        module_body.read(body)
        self._import(module_body)
        self.variables = {name: module_body.variables.get(name, ()) for name in sorted(module_body.bound)}
        self._read_nested(module_body, "", "")

    def _read_nested(self, body: _Body, around: str, owner: str) -> None:
        for node in body.nested:
            qualified = f"{around}.{node.name}" if around else node.name
            if isinstance(node, ast.ClassDef):
                self._read_class(node, qualified)
            else:
                self._read_function(node, qualified, owner)

    def _read_class(self, node: ast.ClassDef, qualified: str) -> None:
        class_body = _Body()
        class_body.read([*node.body, *node.decorator_list])
        self._import(class_body)
        self._read_nested(class_body, qualified, qualified)
        fields = dict(class_body.variables)
        for method in (nested for nested in class_body.nested if not isinstance(nested, ast.ClassDef)):
            body, _ = _function_body(method)
            for name, chain in body.fields.items():
                fields.setdefault(name, _of_parameter(chain, body))
        self.classes[qualified] = Class(
            name=f"{self._module}.{qualified}",
            qualified=qualified,
            line=node.lineno,
            bases=tuple(chain for base in node.bases if (chain := chain_of(_unsubscripted(base)))),
            fields=fields,
            attributes=frozenset(class_body.bound - {nested.name for nested in class_body.nested}),
            uses=tuple(class_body.uses),
        )

    def _read_function(self, node: Definition, qualified: str, owner: str) -> None:
        body, parameters = _function_body(node)
        self._import(body)
        returned = type_chain(node.returns) or body.returns
        self.functions[qualified] = Function(
            name=f"{self._module}.{qualified}",
            qualified=qualified,
            owner=owner,
            line=node.lineno,
            end=node.end_lineno or node.lineno,
            uses=tuple(body.uses),
            variables={**dict.fromkeys(body.bound | parameters, ()), **body.variables},
            returns=returned,
        )
        self._read_nested(body, qualified, "")

    def _import(self, body: _Body) -> None:
        for node in body.imports:
            self.imports.update(imported_names(node, self._package))


def _function_body(node: Definition) -> tuple[_Body, set[str]]:
    """Return what a function uses and binds, its decorators and defaults included, and its parameters."""
    arguments = node.args
    every = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    body = _Body()
    for item in every:
        if chain := type_chain(item.annotation):
            body.variables[item.arg] = chain
    annotations = [item.annotation for item in every if isinstance(item.annotation, ast.Subscript)]
    defaults = [item for item in (*arguments.defaults, *arguments.kw_defaults) if item is not None]
    body.read([*node.decorator_list, *annotations, *defaults, *node.body])
    variadic = [item.arg for item in (arguments.vararg, arguments.kwarg) if item]
    return body, {*(item.arg for item in every), *variadic}


def _of_parameter(chain: Chain, body: _Body) -> Chain:
    """Replace a parameter or local name by what it holds: ``self.store = store``."""
    typed = body.variables.get(chain[0], ())
    return (*typed, *chain[1:]) if typed else chain


def _unsubscripted(node: ast.expr) -> ast.expr:
    return node.value if isinstance(node, ast.Subscript) else node
