"""A source tree of Python as route finders ask it: calls, decorators, constants, handlers."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field

from agents.source.python_index import CodeScope, read_statements
from agents.source.routes.mounts import Key
from agents.source.routes.python_source import PythonFile, chain_of
from agents.source.routes.resolve import Entity, Resolver, Scope
from agents.source.routes.route import Route
from agents.source.routes.source import Chain, Class, Unit

VERBS = ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS")

Position = tuple[int, str]
"""Index and keyword of an argument; ``-1`` for one that has only a keyword."""

_DEEPEST = 10


@dataclass(frozen=True, slots=True)
class CallSite:
    """A call, the chain that it calls, and the name that its value is bound to; empty for none."""

    node: ast.Call
    scope: Scope
    chain: Chain
    bound: str = ""

    @property
    def name(self) -> str:
        """The last name of the chain, such as ``get`` of ``app.router.get``."""
        return self.chain[-1] if self.chain else ""


@dataclass(frozen=True, slots=True)
class Decorated:
    """A function or class and one of its decorators."""

    qualified: str
    decorator: ast.expr
    scope: Scope  # around it
    site: CallSite | None = None  # the decorator if it calls a method


@dataclass(frozen=True, slots=True)
class Sites:
    """What one file has for route finders."""

    file: PythonFile
    calls: list[CallSite] = field(default_factory=list)
    decorated: list[Decorated] = field(default_factory=list)
    constants: dict[str, ast.expr] = field(default_factory=dict)  # qualified name → its last value
    assigned: list[tuple[str, ast.expr, Scope]] = field(default_factory=list)  # also by +=


@dataclass(frozen=True, slots=True)
class Handler:
    """Handler of requests: a function, or a class with methods."""

    entity: Entity
    name: str
    path: str
    line: int


class PythonTree:
    """The Python files of a source tree, with what resolves their names."""

    def __init__(self, files: Sequence[PythonFile], resolver: Resolver) -> None:
        self.resolver = resolver
        self._modules = resolver.modules
        self.sites = [_sites_of(file) for file in files]
        self.calls = [site for sites in self.sites for site in sites.calls]
        self._sites = {sites.file.unit.path: sites for sites in self.sites}

    def module(self, dotted: str, scope: Scope) -> Unit | None:
        """Return the module of a whole dotted name."""
        resolved = self._modules.python(dotted, scope.unit)
        return resolved[0] if resolved and not resolved[1] else None

    def decorators(self, unit: Unit, qualified: str) -> list[ast.expr]:
        """Return the decorators of a function or class."""
        sites = self._sites.get(unit.path)
        return (
            [decorated.decorator for decorated in sites.decorated if decorated.qualified == qualified]
            if sites
            else []
        )

    def base_names(self, unit: Unit, type_: Class, depth: int = 0) -> set[str]:
        """Return the names of all base classes, also of those beyond the tree."""
        names = {base[-1] for base in type_.bases}
        for base in self.resolver.bases(unit, type_):
            if base.type and base.unit and depth < _DEEPEST:
                names |= self.base_names(base.unit, base.type, depth + 1)
        return names

    def text(self, node: ast.expr | None, scope: Scope, depth: int = 0) -> str | None:
        """Return the text that an expression has by constants, joins and ``os.environ.get`` defaults."""
        if depth > _DEEPEST:
            return None
        match node:
            case ast.Constant(value=str(value)):
                return value
            case ast.JoinedStr(values=values):
                parts = [self._part(part, scope, depth) for part in values]
                return None if None in parts else "".join(part for part in parts if part)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                first, second = (self.text(item, scope, depth + 1) for item in (left, right))
                return None if first is None or second is None else first + second
            case ast.Call(args=[ast.Constant(value=str(value))]) if chain_of(node.func)[-1:] == ("_",):
                return value  # translated
            case ast.Call(keywords=keywords) if chain_of(node.func)[-1:] == ("Field",):
                default = next((item.value for item in keywords if item.arg == "default"), None)
                return self.text(default or (node.args[0] if node.args else None), scope, depth + 1)
            case ast.Name() | ast.Attribute():
                return self._constant(node, scope, depth)
        return None

    def texts(self, node: ast.expr | None, scope: Scope) -> list[str]:
        """Return the texts of a list, tuple or set."""
        if isinstance(node, ast.List | ast.Tuple | ast.Set):
            return [text for element in node.elts if (text := self.text(element, scope)) is not None]
        resolved = self.expression(node, scope) if node is not None else None
        return self.texts(*resolved) if resolved and resolved[0] is not node else []

    def expression(self, node: ast.expr, scope: Scope) -> tuple[ast.expr, Scope] | None:
        """Return the expression that a name of a module or class was bound to, and where it stands."""
        chain = chain_of(node)
        if not chain:
            return None
        *owner, last = chain
        unit, qualified = scope.unit, last
        if owner:
            entity = self.resolver.entity(tuple(owner), scope)
            if entity is None or entity.unit is None:
                return None
            unit, qualified = entity.unit, f"{entity.type.qualified}.{last}" if entity.type else last
        else:
            local = f"{scope.function.qualified}.{last}" if scope.function else ""
            if local in self._sites[unit.path].constants:
                return self._sites[unit.path].constants[local], scope
            entity = self.resolver.used(chain, scope)[0]
            if entity and entity.unit and entity.variable:
                unit, qualified = entity.unit, entity.variable
        sites = self._sites.get(unit.path)
        value = sites.constants.get(qualified) if sites else None
        return (value, Scope(unit)) if value is not None else None

    def key(self, node: ast.expr | None, scope: Scope) -> Key | None:
        """Return the object that an expression names."""
        chain = chain_of(node)
        if not chain:
            return None
        if scope.function and len(chain) == 1 and chain[0] in scope.function.variables:
            return (scope.unit.path, f"{scope.function.qualified}.{chain[0]}")
        entity = self.resolver.used(chain, scope)[0]
        if entity and entity.unit and entity.variable:
            return (entity.unit.path, entity.variable)
        return (scope.unit.path, ".".join(chain))

    def text_at(self, site: CallSite, position: Position) -> str | None:
        """Return the text of an argument."""
        return self.text(argument(site.node, position), site.scope)

    def texts_at(self, site: CallSite, position: Position) -> list[str]:
        """Return the texts of an argument that is a list."""
        return self.texts(argument(site.node, position), site.scope)

    def key_at(self, site: CallSite, position: Position) -> Key | None:
        """Return the object that an argument names."""
        return self.key(argument(site.node, position), site.scope)

    def handler_at(self, site: CallSite, position: Position) -> Handler | None:
        """Return the handler that an argument names."""
        return self.handler(argument(site.node, position), site.scope)

    def bound_key(self, site: CallSite) -> Key | None:
        """Return the object that a call makes."""
        if not site.bound:
            return None
        function = site.scope.function
        inside = function and "." not in site.bound and site.bound in function.variables
        return (
            site.scope.unit.path,
            f"{function.qualified}.{site.bound}" if function and inside else site.bound,
        )

    def handler(self, node: ast.expr | None, scope: Scope, depth: int = 0) -> Handler | None:
        """Return what an expression of a handler names: through decorators, ``partial`` and ``as_view()``."""
        if depth > _DEEPEST or node is None:
            return None
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute) and node.func.attr in (
                "as_view",
                "as_asgi",
                "as_handler",
            ):
                return self.handler(node.func.value, scope, depth + 1)
            inner = [*node.args, *(keyword.value for keyword in node.keywords)]
            handlers = (self.handler(argument, scope, depth + 1) for argument in inner)
            wrapped = next((argument for argument in handlers if argument), None)
            return wrapped or (
                self.handler(node.func, scope, depth + 1) if isinstance(node.func, ast.Call) else None
            )
        chain = chain_of(node)
        entity = self.resolver.used(chain, scope)[0]
        if entity is None and len(chain) > 1 and scope.function:
            entity = self.resolver.method_beside(scope.unit, chain[-1])
        if entity and entity.variable and entity.unit:
            value = self.expression(node, scope)
            return self.handler(*value, depth + 1) if value else None
        return handler_of(entity)

    def routes_of(
        self, handler: Handler, pattern: str, methods: Sequence[str], framework: str
    ) -> list[Route]:
        """Return the routes of a handler; of a class one for each of its methods that answers a verb."""
        entity = handler.entity
        wanted = tuple(method.upper() for method in methods)
        if entity.type and entity.unit:
            routes = []
            for verb in VERBS:
                method = self.resolver.method(entity.unit, entity.type, verb.lower())
                answers = handler_of(method) if method and method.function else None
                if answers and (not wanted or verb in wanted):
                    routes.append(
                        Route((verb,), pattern, answers.name, answers.path, answers.line, framework)
                    )
            if routes:
                return routes
        return [Route(wanted, pattern, handler.name, handler.path, handler.line, framework)]

    def _part(self, node: ast.expr, scope: Scope, depth: int) -> str | None:
        return self.text(node.value if isinstance(node, ast.FormattedValue) else node, scope, depth + 1)

    def _constant(self, node: ast.expr, scope: Scope, depth: int) -> str | None:
        resolved = self.expression(node, scope)
        return (
            self.text(resolved[0], resolved[1], depth + 1) if resolved and resolved[0] is not node else None
        )


def handler_of(entity: Entity | None) -> Handler | None:
    """Return a function or class as a handler."""
    if entity is None or entity.unit is None:
        return None
    definition = entity.function or entity.type
    return Handler(entity, definition.name, entity.unit.path, definition.line) if definition else None


def decorated_handler(each: Decorated) -> Handler | None:
    """Return the definition under a decorator as a handler."""
    unit = each.scope.unit
    function, type_ = unit.functions.get(each.qualified), unit.classes.get(each.qualified)
    return handler_of(Entity(unit, type_ if function is None else None, function))


def owner_of(node: ast.Call) -> ast.expr | None:
    """Return the object whose method a call is of."""
    return node.func.value if isinstance(node.func, ast.Attribute) else None


def argument(node: ast.Call, position: Position) -> ast.expr | None:
    """Return an argument of a call."""
    index, name = position
    for keyword in node.keywords:
        if keyword.arg == name:
            return keyword.value
    value = node.args[index] if 0 <= index < len(node.args) else None
    return None if isinstance(value, ast.Starred) else value


def _sites_of(file: PythonFile) -> Sites:
    """Return the sites of a file in its order, outer ones first."""
    unit, sites = file.unit, Sites(file)
    around: dict[CodeScope | None, Scope] = {None: Scope(unit)}
    calls: list[tuple[int, CallSite]] = []
    for code in file.scopes:
        outer = around[code.around]
        for decorator in getattr(code.node, "decorator_list", ()):
            site = None
            if isinstance(decorator, ast.Call) and isinstance(func := decorator.func, ast.Attribute):
                site = CallSite(decorator, outer, chain_of(func) or ("", func.attr))
            sites.decorated.append(Decorated(code.qualified, decorator, outer, site))
        function = unit.functions.get(code.qualified)
        scope = Scope(unit, function, outer.owner if function and function.owner else None)
        if isinstance(code.node, ast.ClassDef):
            scope = Scope(unit, owner=unit.classes.get(code.qualified))
        around[code] = scope
        line = 0
        for statement, expressions in read_statements(code.node.body):
            line = getattr(statement, "lineno", line)
            if isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign):
                _assign(sites, statement, scope, code.qualified)
            bound, value = _bound(statement)
            calls += [
                (line, CallSite(node, scope, chain_of(node.func), bound if node is value else ""))
                for node in expressions
                if isinstance(node, ast.Call)
            ]
    sites.calls.extend(site for _, site in sorted(calls, key=lambda pair: pair[0]))
    return sites


def _assign(
    sites: Sites, node: ast.Assign | ast.AnnAssign | ast.AugAssign, scope: Scope, around: str
) -> None:
    if node.value is None:
        return
    for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
        name = ".".join(chain_of(target))
        if not name:
            continue
        qualified = f"{around}.{name}" if around else name
        sites.assigned.append((qualified, node.value, scope))
        if not isinstance(node, ast.AugAssign):
            sites.constants[qualified] = node.value


def _bound(node: ast.AST) -> tuple[str, ast.expr | None]:
    """Return the only name that a statement binds, and the expression that it binds it to."""
    match node:
        case ast.Assign(targets=[target]) | ast.AnnAssign(target=target):
            return ".".join(chain_of(target)), node.value
    return "", None
