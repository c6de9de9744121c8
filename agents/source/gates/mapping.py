"""The map from gates to the functions that read them (FBDetect §5.4.9, Figure 15).

Direct reads are calls of a known reader with the gate's name: ``conf.get("new_feature_A")``. The paper found
that most wrappers have one layer, so one is looked through: a function that returns what a reader returned,
of a fixed gate or of the gate that it is given, at once, by way of a name, or as a constant that the reader
chooses. Its callers read the gate too. The paper maps the rest by hand, so these reads are listed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from agents.source.gates.source import Argument, Call, Function, Module

_MOST_IMPORTS = 5
"""How often a name is followed to where it was imported from: packages pass on names of their modules."""

_GATE_KEYWORDS = ("name", "key", "gate", "flag", "feature")
"""Endings of the keywords for a gate's name, in clients of feature flags."""

_COMPUTED = Argument()


@dataclass(frozen=True, slots=True)
class GateMap:
    """Gate → the subroutines that read it, both sorted, and the reads whose gate is unknown."""

    subroutines: Mapping[str, tuple[str, ...]]
    unresolved: tuple[tuple[str, int], ...]  # path and line, sorted


def map_gates(modules: Sequence[Module], readers: Sequence[str]) -> GateMap:
    """Map gates to the subroutines that read them.

    A call goes to a reader if its target, as it is written or as it was imported, is the reader's name or
    ends with it after a dot. It goes to a wrapper of the same name in its own module or class, or imported
    from the wrapper's; elsewhere only if no other function has that name.

    Args:
        modules: From ``read_module``, all of a tree.
        readers: Names of functions whose first argument is a gate, such as ``conf.get``.
    """
    search = _Search(modules)
    search.read_directly(readers)
    search.read_by_wrappers()
    subroutines = {gate: tuple(sorted(search.found[gate])) for gate in sorted(search.found)}
    return GateMap(subroutines, tuple(sorted(search.unresolved)))


class _Search:
    """Collects the reads of all modules, first the direct ones, which show the wrappers."""

    def __init__(self, modules: Sequence[Module]) -> None:
        self.found: dict[str, set[str]] = {}
        self.unresolved: list[tuple[str, int]] = []
        self._calls = [
            (m, function, call) for m in modules for function in m.functions for call in function.calls
        ]
        self._names = _Names(modules)
        self._functions = _Functions(
            [definition for module in modules for definition in module.functions], self._names
        )
        self._fixed: dict[Function, set[str]] = {}  # wrapper → the gates that it returns
        self._open: dict[Function, set[str]] = {}  # wrapper → its parameters that are gates

    def read_directly(self, readers: Sequence[str]) -> None:
        """Find the calls of readers; those of other functions are left for wrappers."""
        every, self._calls = self._calls, []
        for module, function, call in every:
            if not any(_is_any(target, readers) for target in self._names.targets(function, call.target)):
                self._calls.append((module, function, call))
                continue
            argument = _gate_argument(call)
            if argument is None:
                continue
            gate = self._names.text(function, argument)
            if gate is not None:
                self._add(gate, function)
                if call.returned:
                    self._fixed.setdefault(function, set()).add(gate)
            elif call.returned and argument.name in function.parameters:
                self._open.setdefault(function, set()).add(argument.name)
            else:
                self.unresolved.append((module.path, call.line))

    def read_by_wrappers(self) -> None:
        """Find the calls of the wrappers that the direct reads showed."""
        for module, function, call in self._calls:
            wrapper = self._functions.called_surely(function, call.target)
            sure = wrapper is not None
            wrapper = wrapper or self._functions.called_perhaps(call.target)
            if wrapper is None or wrapper is function:
                continue
            for fixed in self._fixed.get(wrapper, ()):
                self._add(fixed, function)
            for parameter in self._open.get(wrapper, ()):
                argument = _argument_of(wrapper, parameter, call)
                gate = self._names.text(function, argument)
                if gate is not None:
                    self._add(gate, function)
                elif sure and not argument.is_other:
                    self.unresolved.append((module.path, call.line))

    def _add(self, gate: str, function: Function) -> None:
        self.found.setdefault(gate, set()).add(function.subroutine)


class _Names:
    """Values of the names of all modules: texts, and names of other modules."""

    def __init__(self, modules: Iterable[Module]) -> None:
        self._texts: dict[str, str] = {}
        self._imports: dict[str, str] = {}
        for module in modules:
            self._texts |= module.texts
            self._imports |= module.imports

    def text(self, function: Function, argument: Argument) -> str | None:
        """Return the text that an argument is or names, None where that is unknown."""
        if argument.text is not None or not argument.name or _is_given(function, argument.name):
            return argument.text
        member = argument.name.removesuffix(".value")  # of an enumeration
        for name in self.spellings(function.module, member):
            if name in self._texts:
                return self._texts[name]
        return None

    def targets(self, function: Function, target: str) -> Iterator[str]:
        """Yield what a call's target may be called: as it is written, then as it was imported."""
        yield target
        if not _is_given(function, target):
            yield from self.spellings(function.module, target)

    def spellings(self, module: str, name: str) -> Iterator[str]:
        """Yield the whole names of what a module calls so: its own, then those that it was imported from."""
        whole: str | None = f"{module}.{name}"
        for _ in range(_MOST_IMPORTS):
            if whole is None:
                return
            yield whole
            whole = self._imported(whole)

    def _imported(self, whole: str) -> str | None:
        head, rest = whole, ""
        while head:
            if head in self._imports:
                return self._imports[head] + rest
            head, _, last = head.rpartition(".")
            rest = f".{last}{rest}"
        return None


class _Functions:
    """The functions of all modules, by their names."""

    def __init__(self, functions: Iterable[Function], names: _Names) -> None:
        self._names = names
        self._by_subroutine: dict[str, list[Function]] = {}
        self._by_last_name: dict[str, list[Function]] = {}
        for function in functions:
            self._by_subroutine.setdefault(function.subroutine, []).append(function)
            self._by_last_name.setdefault(function.qualified.rpartition(".")[2], []).append(function)

    def called_surely(self, caller: Function, target: str) -> Function | None:
        """Return the function of the caller's module or class, or imported there, that a call goes to."""
        owner, _, name = target.rpartition(".")
        if owner in ("self", "cls"):
            around = caller.subroutine.rpartition(".")[0]
            return _only(self._by_subroutine.get(f"{around}.{name}", ()))
        for whole in [*self._names.targets(caller, target)][1:]:
            if function := _only(self._by_subroutine.get(whole, ())):
                return function
        return None

    def called_perhaps(self, target: str) -> Function | None:
        """Return the only function of a name, which a call of that name may go to."""
        return _only(self._by_last_name.get(target.rpartition(".")[2], ()))


def _only(functions: Sequence[Function]) -> Function | None:
    return functions[0] if len(functions) == 1 else None


def _is_any(target: str, names: Sequence[str]) -> bool:
    return any(target == name or target.endswith(f".{name}") for name in names)


def _is_given(function: Function, name: str) -> bool:
    """Return whether a name begins with a parameter, which hides what the module calls so."""
    return name.partition(".")[0] in function.parameters


def _gate_argument(call: Call) -> Argument | None:
    """Return a reader's gate; None if none of its arguments can be one, as of another function of its name.

    Readers are known by their names alone, so of several keywords the one called like a gate's counts.
    """
    if call.arguments and not call.arguments[0].keyword:
        return None if call.arguments[0].is_other else call.arguments[0]
    arguments = [
        argument
        for argument in call.arguments
        if not argument.is_other and not argument.keyword.startswith("default")
    ]
    named = [argument for argument in arguments if argument.keyword.endswith(_GATE_KEYWORDS)] or arguments
    if len(named) > 1:
        return _COMPUTED
    return named[0] if named else None


def _argument_of(wrapper: Function, parameter: str, call: Call) -> Argument:
    """Return what a call gives for a parameter; computed if it leaves it out."""
    for argument in call.arguments:
        if argument.keyword == parameter:
            return argument
    given = [name for name in wrapper.parameters if name not in ("self", "cls")]
    placed = [argument for argument in call.arguments if not argument.keyword]
    return dict(zip(given, placed, strict=False)).get(parameter, _COMPUTED)
