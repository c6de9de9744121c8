"""Python source as far as gates need it: the calls of each function, and the values of names."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from agents.source.python_index import (
    CodeScope,
    imported_names,
    parameters_of,
    parse_python,
    read_statements,
    split_scopes,
)
from pipeline.model.frames import MODULE

_CONVERSIONS = ("bool", "int", "float", "str")
_SPELLINGS = ("lower", "upper", "casefold", "strip")
"""Functions and methods of texts after which a value is still the one that was read."""

_BITS = (ast.BitAnd, ast.BitOr, ast.BitXor)


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a call. It is computed if it is neither a text nor a name nor something else."""

    keyword: str = ""  # empty for a positional argument
    text: str | None = None
    name: str = ""  # "Flags.NEW_CART"; of self.NEW_CART too
    is_other: bool = False  # a number, None, or an empty text, none of which is a gate


@dataclass(frozen=True, slots=True)
class Call:
    """One call: its target as it is written, and its arguments."""

    target: str  # "self.conf.get"; begins with a dot if it is an attribute of something computed
    arguments: tuple[Argument, ...]
    line: int
    returned: bool  # whether the function returns it, or what it chooses


@dataclass(frozen=True, slots=True, eq=False)  # equal by identity: it may be defined twice
class Function:
    """A function, or a module's top-level code, with its own calls; those of nested functions are theirs."""

    module: str
    qualified: str  # Class.method
    parameters: tuple[str, ...]
    calls: tuple[Call, ...]

    @property
    def subroutine(self) -> str:
        """Its name as stack frames spell it."""
        return f"{self.module}.{self.qualified}"


@dataclass(frozen=True, slots=True)
class Module:
    """A module: its functions, outer ones first, and what its names stand for."""

    path: str
    functions: tuple[Function, ...]
    texts: Mapping[str, str]  # whole name of a constant, "shop.flags.Flags.NEW_CART" → its text
    imports: Mapping[str, str]  # whole name, "shop.cart.on" → the one that it was imported from


def read_module(path: str, source: str) -> Module:
    """Read a module.

    Args:
        path: Its path from where imports start, with slashes: ``shop/cart.py`` is the module shop.cart.
        source: Its text.

    Raises:
        PARSE_ERRORS: it cannot be parsed.
    """
    reader = _Reader(path)
    for scope in split_scopes(parse_python(source)):
        reader.read(scope)
    texts = {name: text for name, text in reader.texts.items() if text is not None}
    return Module(path, tuple(body.function() for body in reader.bodies), texts, reader.imports)


@dataclass(slots=True)
class _Body:
    """Code of a function, or of a module's top level, with that of the classes in it."""

    module: str
    qualified: str
    parameters: tuple[str, ...]
    calls: list[tuple[ast.Call, str, tuple[Argument, ...]]] = field(default_factory=list)  # and targets
    texts: dict[str, str | None] = field(default_factory=dict)  # local name → the only text that it gets
    held: dict[ast.Call, set[str]] = field(default_factory=dict)  # call → names that hold its value
    returned: list[ast.expr] = field(default_factory=list)  # calls and names that are returned
    choosing: list[ast.expr] = field(default_factory=list)  # those by which a constant is returned
    only_constants: bool = True  # whether nothing else is returned

    def function(self) -> Function:
        """Return the function with its calls, and what the whole of it says of them."""
        returned = {*self.returned, *(self.choosing if self.only_constants else ())}
        names = {expression.id for expression in returned if isinstance(expression, ast.Name)}
        calls = tuple(
            Call(
                target,
                tuple(self._settled(expression) for expression in arguments) if self.texts else arguments,
                node.lineno,
                node in returned or not names.isdisjoint(self.held.get(node, ())),
            )
            for node, target, arguments in self.calls
        )
        return Function(self.module, self.qualified, self.parameters, calls)

    def _settled(self, argument: Argument) -> Argument:
        head, _, rest = argument.name.partition(".")
        if head in self.parameters or head not in self.texts:
            return argument
        return Argument(argument.keyword, None if rest else self.texts[head])


class _Reader:
    """Collects the calls of each function, and the texts and imports of the module."""

    def __init__(self, path: str) -> None:
        self.bodies: list[_Body] = []
        self.texts: dict[str, str | None] = {}  # None where a name has several, or something else
        self.imports: dict[str, str] = {}
        parts = path.removesuffix(".py").split("/")
        self._package = ".".join(parts[:-1])
        self._module = ".".join(parts[:-1] if parts[-1] == "__init__" and self._package else parts)
        self._read: dict[CodeScope, tuple[_Body, str]] = {}  # with the class itself, or around

    def read(self, scope: CodeScope) -> None:
        """Read a scope, after the one around it."""
        self._scope = scope
        if isinstance(scope.node, ast.ClassDef) and scope.around:
            self._body, self._class = self._read[scope.around][0], scope.qualified
        else:
            names = tuple(parameter.arg for parameter in parameters_of(scope.node))
            self._body = _Body(self._module, scope.qualified or MODULE, names)
            self._class = self._read[scope.around][1] if scope.around else ""
            self.bodies.append(self._body)
        self._read[scope] = self._body, self._class
        targets: set[ast.expr] = set()  # whose names _hold binds
        for statement, expressions in read_statements([scope.node]):
            for node in (statement, *expressions):
                match node:
                    case ast.Import() | ast.ImportFrom():
                        for name, origin in imported_names(node, self._package):
                            self.imports[f"{self._module}.{name}"] = origin
                    case ast.Assign():
                        targets.update(node.targets)
                        self._hold(node.targets, node.value)
                    case ast.AnnAssign():
                        targets.add(node.target)
                        self._annotated(node)
                    case ast.NamedExpr():
                        targets.add(node.target)
                        self._hold([node.target], node.value)
                    case ast.Name(ctx=ast.Store()) if node not in targets:
                        self._bind(node.id, None)
                    case _:
                        self._use(node)

    def _use(self, node: ast.AST) -> None:
        match node:
            case ast.Return(value=value):
                self._body.returned += _values(value)
                self._body.only_constants &= value is None or isinstance(value, ast.Constant)
            case ast.If() if any(_returns_constant(statement) for statement in (*node.body, *node.orelse)):
                self._body.choosing += _values(node.test)
            case ast.Attribute(ctx=ast.Store()) if _dotted(node.value) in ("self", "cls") and self._class:
                self._record(self._class, node.attr, None)
            case ast.Call(func=func) if target := _dotted(func):
                arguments = [self._argument("", argument) for argument in node.args]
                arguments += [self._argument(word.arg or "**", word.value) for word in node.keywords]
                self._body.calls.append((node, target, tuple(arguments)))

    def _argument(self, keyword: str, value: ast.expr) -> Argument:
        if isinstance(value, ast.Constant):
            return Argument(keyword, _text(value), is_other=_text(value) is None)
        name = _dotted(value)
        owner, _, rest = name.partition(".")
        if owner in ("self", "cls") and rest and self._class:
            name = f"{self._class}.{rest}"
        return Argument(keyword, name="" if name.startswith(".") else name)

    def _annotated(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            # In a class, what is annotated and not in capitals is as often a field of its instances.
            in_class = isinstance(self._scope.node, ast.ClassDef)
            is_field = in_class and isinstance(node.target, ast.Name) and not node.target.id.isupper()
            self._hold([node.target], node.value, is_constant=not is_field)

    def _hold(self, targets: Sequence[ast.expr], value: ast.expr, *, is_constant: bool = True) -> None:
        names = {expression.id for expression in targets if isinstance(expression, ast.Name)}
        for expression in _values(value):
            if isinstance(expression, ast.Call):
                self._body.held.setdefault(expression, set()).update(names)
        for name in names:
            self._bind(name, _text(value) if is_constant else None)

    def _bind(self, name: str, text: str | None) -> None:
        if isinstance(self._scope.node, ast.Module | ast.ClassDef):
            self._record(self._scope.qualified, name, text)
        else:
            texts = self._body.texts
            texts[name] = text if texts.get(name, text) == text else None

    def _record(self, owner: str, name: str, text: str | None) -> None:
        whole = ".".join(part for part in (self._module, owner, name) if part)
        self.texts[whole] = text if self.texts.get(whole, text) == text else None


def _values(node: ast.expr | None) -> Iterator[ast.expr]:
    """Yield the calls and names whose value an expression has, perhaps through logic and conversions.

    What goes into another call is computed from, so that its value is no longer the one that was read.
    """
    if isinstance(node, ast.Name | ast.Call):
        yield node
    for part in _parts(node):
        yield from _values(part)


def _parts(node: ast.expr | None) -> Sequence[ast.expr]:
    match node:
        case ast.Call(func=ast.Name(id=name)) if name in _CONVERSIONS:
            return node.args[:1]
        case ast.Call(func=ast.Attribute(value=value, attr=name)) if name in _SPELLINGS:
            return [value]
        case ast.BoolOp(values=values):
            return values
        case ast.Compare(left=left, comparators=others):
            return [left, *others]
        case ast.BinOp(left=left, op=op, right=right) if isinstance(op, _BITS):
            return [left, right]
        case ast.IfExp(test=test, body=ast.Constant(), orelse=ast.Constant()):
            return [test]
        case ast.IfExp(body=body, orelse=orelse):
            return [body, orelse]
        case ast.UnaryOp(operand=value):
            return [value]
        case ast.Await() | ast.NamedExpr() | ast.Attribute() | ast.Subscript():
            return [node.value]
    return []


def _text(node: ast.expr) -> str | None:
    """Return a text that can be a gate's name, None for anything else."""
    return node.value or None if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _returns_constant(statement: ast.stmt) -> bool:
    """Return whether a statement is ``return True`` or of another constant; a bare one only leaves."""
    value = statement.value if isinstance(statement, ast.Return) else None
    return isinstance(value, ast.Constant) and value.value is not None


def _dotted(node: ast.expr) -> str:
    """Return a name or attribute as it is written; of anything computed only a dot and what follows it."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if isinstance(node, ast.Name):
        parts.append(node.id)
    elif parts:
        parts.append("")
    return ".".join(reversed(parts))
