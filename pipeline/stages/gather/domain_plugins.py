"""Plug-ins that find cost domains of a user's own; one that fails is left out."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from importlib.metadata import entry_points

from pipeline.analysis.cost_shift.domains import LabelGroup
from pipeline.model import SeriesKey
from pipeline.model.frames import element

log = logging.getLogger(__name__)

ENTRY_POINTS = "smidgen.cost_domains"
"""Group of entry points that find cost domains of a user's own."""

DomainPlugin = Callable[[str, str, Sequence[tuple[str, ...]]], Iterable[tuple[str, Iterable[str]]]]
"""From metric kind, metric and all stacks (root first) to domains: a name, and labels as stacks hold them."""

Plugins = tuple[tuple[str, DomainPlugin], ...]
"""Plug-ins with the names that their entry points have."""


_LONGEST_NAME = 200
"""Characters of a plug-in's domain that are shown."""


@cache
def load_plugins() -> Plugins:
    """Load the installed plug-ins, once; one that cannot be loaded is logged and left out."""
    loaded: list[tuple[str, DomainPlugin]] = []
    for point in sorted(entry_points(group=ENTRY_POINTS), key=lambda point: point.name):
        try:
            loaded.append((point.name, point.load()))
        except Exception:  # somebody else's code: without it the worker still does all the rest
            log.exception("cost domains of plug-in %s left out: it cannot be loaded", point.name)
    return tuple(loaded)


_failures: set[tuple[str, type[Exception]]] = set()
"""How plug-ins have failed in this process: one that is broken is for every series of every scan."""


def _is_new(failure: tuple[str, type[Exception]]) -> bool:
    known = failure in _failures
    _failures.add(failure)
    return not known


def plugged_in(plugins: Plugins, series: SeriesKey, stacks: Sequence[tuple[str, ...]]) -> list[LabelGroup]:
    """Return what plug-ins say of one series; one that fails is left out, and each kind logged once."""
    found = []
    for name, plugin in plugins:
        try:
            groups = [
                LabelGroup(
                    f"{name}: {domain}"[:_LONGEST_NAME], frozenset(map(str, labels)) | {element(*series)}
                )
                for domain, labels in plugin(*series, stacks)
            ]
        except Exception as error:  # likewise
            level = logging.ERROR if _is_new((name, type(error))) else logging.DEBUG
            log.log(level, "cost domains of plug-in %s left out for %s", name, series.name, exc_info=True)
            continue
        found += groups
    return found
