"""Cost domains: groups of subroutines within which cost is likely to move (FBDetect §5.4.6).

A domain is a set of stacks: those of the candidate, and those that may have given it their cost. The ones
here are the paper's: upstream callers, the enclosing class and module, metadata or endpoints of one prefix,
all that one change modified, and what a user names. ``refactorings`` adds those that stacks themselves show.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from pipeline.analysis.stacks import StackIndex
from pipeline.counting.names import forms_of, owner_of
from pipeline.counting.names.patterns import compile_pattern
from pipeline.model import BoolArray, Change, SeriesKey
from pipeline.model.frames import element, series_of

_ENDS_OF_PREFIXES = {"endpoint": ("/", "."), "metadata": ("/", ".", "=", ":")}
"""Where a prefix of an annotation may end: ``/cart/`` of ``/cart/add``, ``tier=`` of ``tier=gold``."""

_NAMED = 3
"""Labels that a domain is named by; of more there is a number."""


@dataclass(frozen=True, slots=True, eq=False)
class Domain:
    """A cost domain: its name for people, and the stacks that it is made of.

    ``gone`` says that the candidate stands where vanished labels stood, or in stacks that are gone without
    it, which is no chance by itself.
    """

    name: str
    rows: BoolArray  # (stacks,)
    gone: bool = False


@dataclass(frozen=True, slots=True)
class LabelGroup:
    """Labels that belong together by somebody's word: a user's domain, as stacks spell its members."""

    name: str
    labels: frozenset[str]


Members = Mapping[tuple[str, str], Sequence[str]]
"""Every class, module and prefix of annotations, by kind and name, with the labels that are its members."""


def find_members(index: StackIndex) -> Members:
    """Return every class, module and prefix of endpoints or metadata with its members."""
    members: dict[tuple[str, str], list[str]] = {}
    for label in index.names:
        for owner in _owners(label):
            members.setdefault(owner, []).append(label)
    return members


def find_domains(
    index: StackIndex,
    members: Members,
    series: SeriesKey,
    *,
    changes: Sequence[Change] = (),
    groups: Sequence[LabelGroup] = (),
) -> list[Domain]:
    """Return the domains that the paper names of one series.

    Args:
        index: The stacks.
        members: Of their classes, modules and prefixes, from ``find_members``.
        series: The candidate.
        changes: Changes deployed just before; each that modified the candidate makes a domain.
        groups: Domains of the user's; each that holds the candidate makes one.
    """
    label = element(*series)
    callers = _callers(index, label)
    found = [Domain(named("callers", callers), index.holding(callers))] if callers else []
    for kind, name in _owners(label):
        found.append(Domain(f"{kind}: {name}", index.holding(members.get((kind, name), ()))))
    found += [
        Domain(f"change: {change.id}", index.holding(_forms(change)))
        for change in changes
        if series.kind == "subroutine" and _modifies(change, series.name)
    ]
    found += [Domain(group.name, index.holding(group.labels)) for group in groups if label in group.labels]
    return found


def _modifies(change: Change, name: str) -> bool:
    """Return whether a change modified a subroutine, which Go spells with brackets where it is generic."""
    return name in change.subroutines or ("[...]" in name and name in _forms(change))


def _forms(change: Change) -> set[str]:
    return {form for name in change.subroutines for form in forms_of(name)}


def match_labels(index: StackIndex, patterns: Iterable[str]) -> frozenset[str]:
    """Return the labels that any of the patterns matches whole."""
    compiled = [compile_pattern(pattern) for pattern in patterns]
    return frozenset(label for label in index.names if any(p.fullmatch(label) for p in compiled))


def named(kind: str, labels: Sequence[str]) -> str:
    """Return a domain's name: its kind and the first of its labels."""
    more = f" and {len(labels) - _NAMED} more" if len(labels) > _NAMED else ""
    return f"{kind}: {', '.join(labels[:_NAMED])}{more}"


@lru_cache(maxsize=2**16)  # the same names come with every scan
def _owners(label: str) -> tuple[tuple[str, str], ...]:
    """Return what a label is a member of: (kind, name), the nearest first."""
    kind, name = series_of(label)
    if kind != "subroutine":
        prefix = name[: max(map(name.rfind, _ENDS_OF_PREFIXES[kind])) + 1]
        return ((f"{kind} prefix", prefix),) if prefix.strip("".join(_ENDS_OF_PREFIXES[kind])) else ()
    owner = owner_of(name)
    if not owner:
        return ()
    module = owner_of(owner) or owner.rpartition("/")[0]
    # A class is spelt with a capital by the conventions of nearly every language; Go has (*Cart).
    if not owner[len(module) :].lstrip("/.:\\#(*")[:1].isupper():
        return (("module", owner),)
    return (("class", owner), ("module", module)) if module else (("class", owner),)


def _callers(index: StackIndex, label: str) -> list[str]:
    """Return the direct callers of a label by name; annotations and its own recursion are passed over."""
    positions = index.positions(label)
    if not len(positions):
        return []
    passed_over = ~index.subroutine
    passed_over[index.labels[label]] = True
    first = index.starts[index.stack[positions]]
    above = positions - 1
    while len(again := np.flatnonzero((above >= first) & passed_over[index.label[above]])):
        above[again] -= 1
    return sorted(index.names[number] for number in np.unique(index.label[above[above >= first]]).tolist())
