"""Refactorings of any size: names and frames of a part of the service or all of it change; work does not."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from loadgen.fleet.callgraph import Stack, endpoint_index, endpoint_of
from loadgen.fleet.changes import refactor
from loadgen.fleet.inject.effects import Injected, MoveEffect, Renamed, ReshapeEffect
from loadgen.fleet.inject.order import Order, truth_row
from loadgen.fleet.inject.site import NothingFits, Site
from loadgen.fleet.names import owner_of
from pipeline.model import FloatArray
from pipeline.model.frames import series_of
from pipeline.model.units import DAY_S

Form = Callable[[Stack], Stack]


@dataclass(frozen=True, slots=True)
class _Phase:
    """Form of stacks while ``profile`` is 1, and the renames behind it, if it is renamed."""

    form: Form
    profile: FloatArray
    names: Mapping[str, str]


def inject_refactoring(order: Order, site: Site) -> Injected:
    """Rename or wrap a share of the service, as the order's type says, from a release on.

    The change describes itself, but lists few modified subroutines: those of a tracer, or none if a build
    tool or a runtime changed the names.
    """
    share, (at, _) = order.size(), order.deployed(site.timeline)
    phases = _TYPES[order.type](order, site, share, at)
    reshaped = [
        MoveEffect(stack, goal, 1.0, phases[-1].profile)
        for stack in site.graph.stacks
        if (goal := phases[-1].form(stack)) != stack
    ]
    if not reshaped:
        raise NothingFits
    acting = sorted(site.acting(moves=reshaped), key=lambda item: item[1] < 0)
    cause = refactor(order.rng, site.service, at, [max(acting, key=lambda item: abs(item[1]))[0][1]])
    row = truth_row(
        order,
        site,
        "cost_shift",
        acting,
        start=at,
        cause=cause,
        main=max(acting, key=lambda item: item[1])[0],
        subkind=order.type,
        share=share,
    )
    in_source = order.type != "restless"
    return Injected(
        (row,),
        reshapes=tuple(ReshapeEffect(phase.form, phase.profile) for phase in phases),
        changes=cause.changes,
        renamed=tuple(Renamed(at, phase.names, in_source) for phase in phases if phase.names),
    )


def _modules(order: Order, site: Site, share: float, at: float) -> list[_Phase]:
    """Move a share of the modules to another package."""
    chosen = _some(order, sorted({owner_of(name) for name in _names(site)}), share)
    moved = {name: f"moved.{name}" for name in _names(site) if owner_of(name) in chosen}
    return _renaming(site, moved, at)


def _package(order: Order, site: Site, share: float, at: float) -> list[_Phase]:
    """Prefix every name, including those of other packages, whatever the requested share."""
    prefixed = {name: f"monorepo.{name}" for name in _names(site)}
    moved = {f"moved.{name}": f"monorepo.moved.{name}" for name in _names(site)}
    return _renaming(site, prefixed | moved, at)


def _runtime(order: Order, site: Site, share: float, at: float) -> list[_Phase]:
    """Upgrade the runtime: a share of the names with many callers is spelt differently."""
    shared = [name for name in _names(site) if len(site.rows(name)) > 2]
    chosen = _some(order, shared, share)
    return _renaming(site, {name: f"{owner_of(name)}.rt311.{name.rpartition('.')[2]}" for name in chosen}, at)


def _wrapper(order: Order, site: Site, share: float, at: float) -> list[_Phase]:
    """Wrap a share of the endpoints in the frame of a tracer, at the root."""
    return _wrapping(order, site, share, at, "tracing.Tracer.call", 1)


def _middleware(order: Order, site: Site, share: float, at: float) -> list[_Phase]:
    """Put a middleware's frame around the handlers of a share of the endpoints."""
    return _wrapping(order, site, share, at, "middleware.Limits.handle", None)


def _restless(order: Order, site: Site, share: float, at: float) -> list[_Phase]:
    """Rename a share of the subroutines with every daily restart, from the first day on."""
    free = [name for name in site.subroutines if site.is_free([name], ())]
    chosen = sorted(_some(order, free, share))
    site.take(chosen, ())
    timeline, phases = site.timeline, []
    for day in range(int((timeline.end - timeline.start) // DAY_S) + 1):
        begin = timeline.start + day * DAY_S
        profile = timeline.shape([(begin, 0.0), (begin, 1.0), (begin + DAY_S, 1.0), (begin + DAY_S, 0.0)])
        names = {}
        for name in chosen:
            number, address = int(order.rng.integers(10, 999)), int(order.rng.integers(2**30, 2**31))
            owner, _, method = name.rpartition(".")
            names[name] = f"{owner}$$Lambda${number}/0x{address:08x}.{method}"
        phases.append(_Phase(_with(names), profile, names))
    return phases


_TYPES: Mapping[str, Callable[[Order, Site, float, float], list[_Phase]]] = {
    "modules": _modules,
    "package": _package,
    "wrapper": _wrapper,
    "middleware": _middleware,
    "runtime": _runtime,
    "restless": _restless,
}


def _names(site: Site) -> list[str]:
    """Return every subroutine, including the root and the handlers, sorted."""
    labels = {label for stack in site.graph.stacks for label in stack}
    return sorted(label for label in labels if series_of(label)[0] == "subroutine")


def _some(order: Order, names: Sequence[str], share: float) -> set[str]:
    count = max(1, round(share * len(names)))
    return {names[int(i)] for i in order.rng.permutation(len(names))[:count]}


def _with(names: Mapping[str, str]) -> Form:
    return lambda stack: tuple(names.get(label, label) for label in stack)


def _renaming(site: Site, names: Mapping[str, str], at: float) -> list[_Phase]:
    return [_Phase(_with(names), site.timeline.step(at), names)]


def _wrapping(
    order: Order, site: Site, share: float, at: float, frame: str, index: int | None
) -> list[_Phase]:
    chosen = _some(order, site.graph.endpoints, share)

    def wrapped(stack: Stack) -> Stack:
        if endpoint_of(stack) not in chosen or frame in stack:
            return stack
        position = endpoint_index(stack) + 1 if index is None else index
        return (*stack[:position], frame, *stack[position:])

    return [_Phase(wrapped, site.timeline.step(at), {})]
