"""Routes of Express: applications and routers, mounted by ``use``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agents.source.routes.javascript_source import ExpressCall, JavaScriptFile
from agents.source.routes.mounts import Key, Mounts
from agents.source.routes.resolve import Resolver, Scope
from agents.source.routes.route import Route
from agents.source.routes.source import Chain, Unit
from pipeline.counting.routes.patterns import of_colons

FRAMEWORK = "express"


def find_express(files: Sequence[JavaScriptFile], resolver: Resolver) -> Iterator[Route]:
    """Yield the routes of applications and routers; the last of several handlers is the one that answers."""
    mounts = Mounts()
    by_path = {file.unit.path: file for file in files}
    for file in files:
        for name in file.routers:
            mounts.add((file.unit.path, name))
    for file in files:
        for call in file.calls:
            if call.method != "use" or not _is_router(file, call):
                continue
            parent = (file.unit.path, ".".join(call.target))
            for chain in call.handlers:
                child = _router(resolver, by_path, file.unit, chain)
                if child:
                    mounts.mount(parent, child, of_colons(call.pattern))
    for file in files:
        for call in file.calls:
            if call.method != "use" and _is_router(file, call):
                yield from _routes(resolver, mounts, file, call)


def _is_router(file: JavaScriptFile, call: ExpressCall) -> bool:
    """Return whether routes can be added to what is called: an application, a router, or one handed in."""
    return call.target[0] in file.routers or call.target[0] in file.parameters or call.target[0] == "this"


def _router(resolver: Resolver, files: dict[str, JavaScriptFile], unit: Unit, chain: Chain) -> Key | None:
    """Return the router that a chain names, here or in the file that it is imported from."""
    if unit.path in files and chain[0] in files[unit.path].routers:
        return (unit.path, chain[0])
    entity = resolver.used(chain, Scope(unit))[0]
    if entity is None or entity.unit is None:
        return None
    if entity.variable:
        return (entity.unit.path, entity.variable)
    if entity.function or entity.type or entity.unit is unit:
        return None
    routers = files[entity.unit.path].routers
    return (entity.unit.path, next(iter(sorted(routers)))) if routers else None


def _routes(resolver: Resolver, mounts: Mounts, file: JavaScriptFile, call: ExpressCall) -> Iterator[Route]:
    entity = resolver.used(call.handlers[-1], Scope(file.unit))[0]
    entity = resolver.held(entity)
    function = entity.function if entity else None
    if function is None or entity is None or entity.unit is None:
        return
    methods = () if call.method == "all" else (call.method.upper(),)
    for pattern in mounts.paths((file.unit.path, ".".join(call.target)), of_colons(call.pattern)):
        yield Route(methods, pattern, function.name, entity.unit.path, function.line, FRAMEWORK)
