"""Finds the functions that read a gate in Python source (FBDetect §5.4.9, Figure 15).

Direct reads are calls of a known reader with the gate's name: ``conf.get("new_feature_A")``. The paper found
that most wrappers have one layer, so one is looked through: a function that returns what a reader returned,
of a fixed gate or of the gate that it is given, at once, by way of a name, or as a constant that the reader
chooses. Its callers read the gate too.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

MODULE = "<module>"
"""Name of a module's top-level code, as stack frames spell it."""

_Definition = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Call:
    """One call: what is called, as it is written, and its first argument."""

    target: str  # "self.conf.get"
    text: str | None  # the first argument, where it is a text
    name: str | None  # the first argument, where it is a name
    returned: bool  # whether the function returns it, or what it chooses


@dataclass(frozen=True, slots=True)
class Function:
    """A function, or a module's top-level code, with its own calls; those of nested functions are theirs."""

    module: str
    qualified: str  # Class.method
    parameters: tuple[str, ...] = ()
    calls: tuple[Call, ...] = ()

    @property
    def subroutine(self) -> str:
        """Its name as stack frames spell it."""
        return f"{self.module}.{self.qualified}"


def functions_in(module: str, source: str) -> tuple[Function, ...]:
    """Return the functions of a module that call anything, in the order in which they end.

    Args:
        module: Its dotted name, as stack frames spell it.
        source: Its text.

    Raises:
        SyntaxError: it is not valid Python.
        ValueError, RecursionError, MemoryError: the parser gave up.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such as invalid escapes: not ours to complain about
        tree = ast.parse(source)
    reader = _Reader(module, _constants(tree))
    reader.read(tree)
    return tuple(reader.found)


def map_gates(functions: Iterable[Function], readers: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return gate → the subroutines that read it, both sorted.

    A call goes to a reader if its target is the reader's name or ends with it after a dot. It goes to a
    wrapper of the same name in its own module or class; elsewhere only if no other function has that name.

    Args:
        functions: From ``functions_in``, of all modules.
        readers: Names of functions whose first argument is a gate, such as ``conf.get``.
    """
    functions = tuple(functions)
    fixed: dict[Function, set[str]] = {}  # wrapper → the gates that it returns
    open_ones: set[Function] = set()  # wrappers of the gate that they are given
    found: dict[str, set[str]] = {}
    for function in functions:
        for call in function.calls:
            if not _is_any(call.target, readers):
                continue
            if call.text is not None:
                found.setdefault(call.text, set()).add(function.subroutine)
                if call.returned:
                    fixed.setdefault(function, set()).add(call.text)
            elif call.returned and call.name in function.parameters:
                open_ones.add(function)
    by_name = _by_last_name(functions)
    for function in functions:
        for call in function.calls:
            wrapper = _resolve(function, call.target, by_name)
            if wrapper is None or wrapper is function:
                continue
            gates = set(fixed.get(wrapper, ()))
            if wrapper in open_ones and call.text is not None:
                gates.add(call.text)
            for gate in gates:
                found.setdefault(gate, set()).add(function.subroutine)
    return {gate: tuple(sorted(found[gate])) for gate in sorted(found)}


@dataclass(slots=True)
class _Scope:
    qualified: tuple[str, ...]
    parameters: tuple[str, ...] = ()
    calls: list[Call] = field(default_factory=list)
    names: dict[int, set[str]] = field(default_factory=dict)  # place of a call → names that hold it
    choices: set[int] = field(default_factory=set)  # places of calls by which a constant is returned
    returned: set[str] = field(default_factory=set)  # names that are returned
    only_constants: bool = True  # whether nothing else is returned

    def settled(self) -> tuple[Call, ...]:
        """Return the calls, those that are returned by way of a name or as constants marked as such."""
        chosen = self.choices if self.only_constants else set()
        return tuple(
            replace(call, returned=call.returned or place in chosen or not held.isdisjoint(self.returned))
            for place, call in enumerate(self.calls)
            for held in (self.names.get(place, set()),)
        )


class _Reader(ast.NodeVisitor):
    """Collects the calls of each function."""

    def __init__(self, module: str, constants: Mapping[str, str]) -> None:
        self.found: list[Function] = []
        self._module = module
        self._constants = constants
        self._path: tuple[str, ...] = ()
        self._scope = _Scope((MODULE,))
        self._returning = False

    def read(self, tree: ast.Module) -> None:
        self.generic_visit(tree)
        self._keep(self._scope)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        outer, self._path = self._path, (*self._path, node.name)
        self.generic_visit(node)
        self._path = outer

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._enter(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._enter(node)

    def visit_Return(self, node: ast.Return) -> None:
        self._scope.returned |= _names_in(node.value)
        self._scope.only_constants &= node.value is None or isinstance(node.value, ast.Constant)
        self._returning = True
        self.generic_visit(node)
        self._returning = False

    def visit_If(self, node: ast.If) -> None:
        first = len(self._scope.calls)
        self.visit(node.test)
        if any(_returns_constant(statement) for statement in (*node.body, *node.orelse)):
            self._scope.choices.update(range(first, len(self._scope.calls)))
        for statement in (*node.body, *node.orelse):
            self.visit(statement)

    def visit_Assign(self, node: ast.Assign) -> None:
        self._hold(node, node.targets)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self._hold(node, [node.target])

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self._hold(node, [node.target])

    def _hold(self, node: ast.Assign | ast.AnnAssign | ast.NamedExpr, targets: Sequence[ast.expr]) -> None:
        first, names = len(self._scope.calls), {one.id for one in targets if isinstance(one, ast.Name)}
        self.generic_visit(node)
        for place in range(first, len(self._scope.calls)):
            self._scope.names.setdefault(place, set()).update(names)

    def visit_Call(self, node: ast.Call) -> None:
        target = _dotted(node.func)
        given = node.args[0] if node.args else node.keywords[0].value if node.keywords else None
        if target:
            name = given.id if isinstance(given, ast.Name) else None
            text = given.value if isinstance(given, ast.Constant) and isinstance(given.value, str) else None
            if text is None and name is not None and name not in self._scope.parameters:
                text = self._constants.get(name)
            self._scope.calls.append(Call(target, text, name, self._returning))
        self.generic_visit(node)

    def _enter(self, node: _Definition) -> None:
        arguments = node.args
        names = tuple(one.arg for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs))
        outer = self._scope, self._path, self._returning
        self._path = (*self._path, node.name)
        self._scope, self._returning = _Scope(self._path, names), False
        self.generic_visit(node)
        self._keep(self._scope)
        self._scope, self._path, self._returning = outer

    def _keep(self, scope: _Scope) -> None:
        self.found.append(
            Function(self._module, ".".join(scope.qualified), scope.parameters, scope.settled())
        )


def _names_in(value: ast.expr | None) -> set[str]:
    """Return the names of an expression, but for those that only go into the calls of others than bool."""
    if value is None or (isinstance(value, ast.Call) and _dotted(value.func) != "bool"):
        return set()
    inner = value.args if isinstance(value, ast.Call) else ast.iter_child_nodes(value)
    names = {value.id} if isinstance(value, ast.Name) else set()
    return names.union(*(_names_in(one) for one in inner if isinstance(one, ast.expr)))


def _returns_constant(statement: ast.stmt) -> bool:
    """Tell whether a statement is ``return True`` or of another constant; a bare one only leaves."""
    value = statement.value if isinstance(statement, ast.Return) else None
    return isinstance(value, ast.Constant) and value.value is not None


def _constants(tree: ast.Module) -> dict[str, str]:
    """Return the names at the top of a module that stand for a text: gates are often given one."""
    found = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            for target in node.targets:
                if isinstance(target, ast.Name) and isinstance(node.value.value, str):
                    found[target.id] = node.value.value
    return found


def _dotted(node: ast.expr) -> str:
    """Return a name or attribute as it is written; empty for anything computed, but for its last part."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if isinstance(node, ast.Name):
        parts.append(node.id)
    return ".".join(reversed(parts))


def _is_any(target: str, names: Sequence[str]) -> bool:
    return any(target == name or target.endswith(f".{name}") for name in names)


def _by_last_name(functions: Sequence[Function]) -> dict[str, list[Function]]:
    found: dict[str, list[Function]] = {}
    for function in functions:
        found.setdefault(function.qualified.rpartition(".")[2], []).append(function)
    return found


def _resolve(caller: Function, target: str, by_name: Mapping[str, Sequence[Function]]) -> Function | None:
    """Return the function that a call goes to, None where that is not plain."""
    owner, _, name = target.rpartition(".")
    named = by_name.get(name, ())
    here = [one for one in named if one.module == caller.module]
    if owner in ("self", "cls"):
        around = caller.qualified.rpartition(".")[0]
        here = [one for one in here if one.qualified == f"{around}.{name}"]
    elif not owner:
        here = [one for one in here if one.qualified == name]
    else:
        here = []
    if len(here) == 1:
        return here[0]
    return named[0] if len(named) == 1 else None
