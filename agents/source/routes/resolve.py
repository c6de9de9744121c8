"""Resolution of the chains of a source tree: to functions, classes, variables of modules.

Names are resolved by scopes, imports, ``self``, base classes, and the types that assignments of calls,
annotations and declarations give. A method on a value of unknown type is resolved if exactly one
method of the whole tree has that name, and no built-in type has one.
"""

from __future__ import annotations

import builtins
import io
import posixpath
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from agents.source.routes.modules import Modules
from agents.source.routes.source import Chain, Class, Function, Unit
from agents.source.syntax_nodes import CALLED
from pipeline.model.frames import MODULE

_DEEPEST = 12
"""Most names that are followed from one to the next: imports, variables, results."""

_IMPLICIT = (
    *("__init__", "__new__", "__post_init__", "__call__", "__enter__", "__exit__", "__aenter__"),
    *("__aexit__", "__iter__", "<init>", "constructor"),
)
"""Methods that run when a class is used without being named."""

_COMMON = (
    frozenset(
        name
        for type_ in (str, bytes, list, dict, set, tuple, int, float, io.TextIOWrapper, io.BytesIO)
        for name in dir(type_)
    )
    | {"add", "all", "delete", "equals", "execute", "filter", "first", "forEach", "json", "length", "log"}
    | {
        *("map", "next", "of", "put", "reduce", "run", "save", "send", "set", "size", "then", "toString"),
    }
)
"""Methods of common types: a call of such a name is not resolved by the name alone."""

_SELF = ("self", "cls", "this", "super")


@dataclass(frozen=True, slots=True)
class Scope:
    """Scope of a chain: a function, a class body, or a module's top level."""

    unit: Unit
    function: Function | None = None
    owner: Class | None = None


@dataclass(frozen=True, slots=True)
class Entity:
    """Entity that a name stands for. A module has only a unit; an entity outside the tree has none."""

    unit: Unit | None = None
    type: Class | None = None
    function: Function | None = None
    variable: str = ""
    instance: bool = False

    @property
    def external(self) -> bool:
        """True if the entity is outside the tree."""
        return self.unit is None


EXTERNAL = Entity()


class Resolver:
    """Resolves chains of a source tree."""

    def __init__(self, modules: Modules) -> None:
        self.modules = modules
        self._methods: dict[str, list[tuple[Unit, Function]]] = defaultdict(list)
        self._bases: dict[tuple[str, str], list[Entity]] = {}
        self._subclasses: dict[str, list[tuple[Unit, Class]]] = defaultdict(list)
        for unit in modules.units.values():
            for function in unit.functions.values():
                if function.owner:
                    self._methods[function.qualified.rpartition(".")[2]].append((unit, function))
        for unit in modules.units.values():
            for class_ in unit.classes.values():
                for base in self.bases(unit, class_):
                    if base.type:
                        self._subclasses[base.type.name].append((unit, class_))

    def scopes(self) -> Iterator[tuple[str, Scope, tuple[Chain, ...]]]:
        """Yield each subroutine of the tree with its scope and what it uses."""
        for unit in self.modules.units.values():
            for function in unit.functions.values():
                owner = unit.classes.get(function.owner)
                yield function.name, Scope(unit, function, owner), function.uses
            for class_ in unit.classes.values():
                yield class_.name, Scope(unit, owner=class_), class_.uses

    def used(self, chain: Chain, scope: Scope) -> tuple[Entity | None, list[str]]:
        """Return what a chain ends in, and every subroutine that it runs or names on the way."""
        return self._walk(chain, scope, 0)

    def entity(self, chain: Chain, scope: Scope) -> Entity | None:
        """Return what a chain stands for, None where that is not known."""
        resolved = self._walk(chain, scope, 0)[0]
        return self._value(resolved, 0) if resolved else None

    def held(self, entity: Entity | None) -> Entity | None:
        """Return what a variable of a module holds; anything else is what it is."""
        return self._value(entity, 0)

    def bases(self, unit: Unit, each: Class) -> list[Entity]:
        """Return the base classes that are in the tree or beyond it."""
        key = (unit.path, each.qualified)
        if key not in self._bases:
            entities = (self._walk(base, Scope(unit), 0)[0] for base in each.bases)
            self._bases[key] = [base for base in entities if base]
        return self._bases[key]

    def method_beside(self, unit: Unit, name: str) -> Entity | None:
        """Return the one method of a name in a unit's folder: ``handlers.show`` of an object handed in."""
        folder = posixpath.dirname(unit.path)
        methods = [
            method for method in self._methods.get(name, ()) if posixpath.dirname(method[0].path) == folder
        ]
        return Entity(methods[0][0], function=methods[0][1]) if len(methods) == 1 else None

    def method(self, unit: Unit, each: Class, name: str) -> Entity | None:
        """Return a method of a class or of its bases."""
        return self._member_of_class(unit, each, name, 0)

    def _walk(self, chain: Chain, scope: Scope, depth: int) -> tuple[Entity | None, list[str]]:
        if not chain or depth > _DEEPEST:
            return None, []
        touched: list[str] = []
        entity = self._first(chain[0], scope, depth) if chain[0] else None
        touched += self._names(entity)
        for index, part in enumerate(chain[1:], 1):
            if part == CALLED:
                if entity and entity.type and not entity.instance:
                    touched += self._constructors(entity)
                entity = self._result(entity, depth)
            else:
                called = chain[index + 1 : index + 2] == (CALLED,)
                if entity and entity.type and part in entity.type.attributes:
                    touched.append(entity.type.name)
                entity = self._member(entity, part, depth, guess=called)
                touched += self._names(entity)
                if entity and entity.function and entity.function.owner:
                    touched += self._overrides(entity)
        return entity, touched

    def _first(self, name: str, scope: Scope, depth: int) -> Entity | None:
        unit, function, owner = scope.unit, scope.function, scope.owner
        if name in _SELF and owner:
            if name == "super":
                return next(iter(self.bases(unit, owner)), None)
            return Entity(unit, owner, instance=True)
        if function:
            if function.variables.get(name):
                return self._walk(function.variables[name], scope, depth + 1)[0]
            around = function.qualified
            while around:
                if f"{around}.{name}" in unit.functions:
                    return Entity(unit, function=unit.functions[f"{around}.{name}"])
                around = around.rpartition(".")[0]
            if name in function.variables:
                return None
        if owner and unit.language == "Java":
            member = self._member_of_class(unit, owner, name, depth)
            if member:
                return member
        return self._of_unit(unit, name, depth) or self._elsewhere(unit, name, depth)

    def _of_unit(self, unit: Unit, name: str, depth: int) -> Entity | None:
        if name in unit.classes:
            return Entity(unit, unit.classes[name])
        if name in unit.functions:
            return Entity(unit, function=unit.functions[name])
        if name in unit.variables:
            return Entity(unit, variable=name)
        if name in unit.imports and depth <= _DEEPEST:
            return self._imported(unit, unit.imports[name], depth + 1)
        return None

    def _elsewhere(self, unit: Unit, name: str, depth: int) -> Entity | None:
        """Return what a name stands for that the unit itself does not define."""
        if unit.language == "Java":
            packages = [unit.module, *(origin for key, origin in unit.imports.items() if key.startswith("*"))]
            for package in packages:
                unit_and_type = self.modules.classes.get(f"{package}.{name}".lstrip("."))
                if unit_and_type:
                    return Entity(*unit_and_type)
            return EXTERNAL if name[:1].isupper() else None
        for key, origin in unit.imports.items():
            if key.startswith("*") and depth <= _DEEPEST:
                module = self._imported(unit, origin, depth + 1)
                if module and module.unit and module.unit is not unit:
                    found_there = self._of_unit(module.unit, name, depth + 1)
                    if found_there:
                        return found_there
        return EXTERNAL if hasattr(builtins, name) else None

    def _imported(self, unit: Unit, target: str, depth: int) -> Entity | None:
        if unit.language == "Java":
            found_class = self.modules.classes.get(target)
            return Entity(*found_class) if found_class else EXTERNAL
        if unit.language == "JavaScript":
            request, _, name = target.partition("#")
            module = self.modules.javascript(request, unit)
            if module is None:
                return EXTERNAL
            return self._exported(module, name, depth) if name else Entity(module)
        resolved = self.modules.python(target, unit)
        if resolved is None:
            return EXTERNAL
        entity: Entity | None = Entity(resolved[0])
        for part in resolved[1]:
            entity = self._member(entity, part, depth)
        return entity

    def _exported(self, unit: Unit, name: str, depth: int) -> Entity | None:
        """Return what a module of JavaScript exports under a name."""
        if depth > _DEEPEST:
            return None
        chain = unit.exports.get(name)
        if chain:
            return self._walk(chain, Scope(unit), depth + 1)[0]
        if whole := unit.exports.get("=") or unit.exports.get("default"):
            entity = self._walk(whole, Scope(unit), depth + 1)[0]
            return entity if name in ("=", "default") else self._member(entity, name, depth + 1)
        return Entity(unit) if name in ("=", "default") else self._of_unit(unit, name, depth)

    def _member(self, entity: Entity | None, name: str, depth: int, *, guess: bool = False) -> Entity | None:
        entity = self._value(entity, depth)
        if entity is None:
            return self._guessed(name) if guess else None
        if entity.external:
            return EXTERNAL
        assert entity.unit is not None
        if entity.type:
            return self._member_of_class(entity.unit, entity.type, name, depth)
        if entity.function or depth > _DEEPEST:
            return None
        if entity.unit.language == "JavaScript":
            return self._exported(entity.unit, name, depth)
        member = self._of_unit(entity.unit, name, depth)
        if member is None:
            module = self.modules.python(f"{_import_name(entity.unit)}.{name}", entity.unit)
            member = Entity(module[0]) if module and not module[1] else None
        return member

    def _value(self, entity: Entity | None, depth: int) -> Entity | None:
        """Return what a variable holds; anything else is what it is."""
        if entity is None or not entity.variable or depth > _DEEPEST:
            return entity
        assert entity.unit is not None
        chain = entity.unit.variables.get(entity.variable, ())
        value = self._walk(chain, Scope(entity.unit), depth + 1)[0] if chain else None
        return self._value(value, depth + 1)

    def _member_of_class(self, unit: Unit, class_: Class, name: str, depth: int) -> Entity | None:
        if depth > _DEEPEST:
            return None
        qualified = f"{class_.qualified}.{name}"
        if qualified in unit.functions:
            return Entity(unit, function=unit.functions[qualified])
        if qualified in unit.classes:
            return Entity(unit, unit.classes[qualified])
        if class_.fields.get(name):
            return self._walk(class_.fields[name], Scope(unit, owner=class_), depth + 1)[0]
        external = False
        for base in self.bases(unit, class_):
            if base.external or not base.type or not base.unit or base.type is class_:
                external |= base.external
                continue
            member = self._member_of_class(base.unit, base.type, name, depth + 1)
            if member:
                return member
        return EXTERNAL if external else None

    def _result(self, entity: Entity | None, depth: int) -> Entity | None:
        """Return what a call of something returns."""
        entity = self._value(entity, depth)
        if entity is None or entity.external:
            return entity
        assert entity.unit is not None
        if entity.type:
            return Entity(entity.unit, entity.type, instance=True) if not entity.instance else None
        function = entity.function
        if function is None or not function.returns or depth > _DEEPEST:
            return None
        owner = entity.unit.classes.get(function.owner)
        return self._walk(function.returns, Scope(entity.unit, function, owner), depth + 1)[0]

    def _guessed(self, name: str) -> Entity | None:
        """Return the one method of that name in the tree, if no common type has one."""
        methods = self._methods.get(name, ())
        return (
            Entity(methods[0][0], function=methods[0][1])
            if len(methods) == 1 and name not in _COMMON
            else None
        )

    def _names(self, entity: Entity | None) -> list[str]:
        """Return the subroutines that an entity itself stands for."""
        if entity is None or entity.unit is None:
            return []
        if entity.function:
            return [entity.function.name]
        if entity.type:
            return [entity.type.name] if not entity.instance else []
        # A constant is code of its module; an object made by a call is only configured there.
        constant = entity.variable and not entity.unit.variables.get(entity.variable)
        return [f"{entity.unit.module}.{MODULE}"] if constant else []

    def _constructors(self, entity: Entity) -> Iterator[str]:
        assert entity.unit is not None
        assert entity.type is not None
        for name in _IMPLICIT:
            constructor = self._member_of_class(entity.unit, entity.type, name, 0)
            if constructor and constructor.function:
                yield constructor.function.name

    def _overrides(self, entity: Entity) -> Iterator[str]:
        """Yield the methods of subclasses that may run instead."""
        assert entity.unit is not None
        assert entity.function is not None
        name = entity.function.qualified.rpartition(".")[2]
        owner = entity.unit.classes.get(entity.function.owner)
        left, seen = [owner.name] if owner else [], set()
        while left:
            parent = left.pop()
            for unit, subclass in self._subclasses.get(parent, ()):
                if subclass.name not in seen:
                    seen.add(subclass.name)
                    left.append(subclass.name)
                    if override := unit.functions.get(f"{subclass.qualified}.{name}"):
                        yield override.name


def _import_name(unit: Unit) -> str:
    return unit.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
