"""Fetches what the cost-shift check needs, user-defined domains included, and runs it on a scan's groups."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache
from importlib.metadata import entry_points

from pipeline.cost_shift import (
    MIN_DAYS,
    CostShiftConfig,
    Domain,
    LabelGroup,
    StackHistory,
    StackSimilarity,
    compare_stacks,
    find_domains,
    find_members,
    find_refactorings,
    judge_cost_shift,
    match_labels,
    stack_history,
)
from pipeline.frames import element
from pipeline.model import Candidate, Change, Decision, DomainDecision, Scan
from pipeline.stacks import Series, StackIndex
from pipeline.stages.gather.evidence import (
    changes_before_each,
    stacks_around,
    stacks_just_before,
    stacks_on_earlier_days,
)
from pipeline.storage.interface import Store
from pipeline.workloads import Workload

log = logging.getLogger(__name__)

ENTRY_POINTS = "smidgen.cost_domains"
"""Group of entry points that find cost domains of a user's own."""

DomainPlugin = Callable[[str, str, Sequence[tuple[str, ...]]], Iterable[tuple[str, Iterable[str]]]]
"""From metric kind, metric and all stacks (root first) to domains: a name, and labels as stacks hold them."""

Plugins = tuple[tuple[str, DomainPlugin], ...]
"""Plug-ins with the names that their entry points have."""

_MOST_CHANGES = 8
"""Domains made of changes, for one candidate: the last ones deployed. Each makes the check stricter."""


_LONGEST_NAME = 200
"""Characters of a plug-in's domain that are told."""


def judge_cost_shifts(
    store: Store,
    scan: Scan,
    cluster: Sequence[Candidate],
    groups: Sequence[Candidate],
    index: StackIndex,
    workload: Workload,
    *,
    plugins: Plugins | None = None,
    config: CostShiftConfig | None = None,
) -> list[tuple[Candidate, Decision]]:
    """Return each group with what its cost domains say, and whether its cost has only moved.

    Args:
        store: Holds stacks of earlier days and the changes deployed.
        scan: The scan that found them.
        cluster: All candidates whose change points are near each other: they say which days are earlier.
        groups: Their representatives.
        index: Of the stacks around the cluster's change points.
        workload: How it was scanned, and domains that its owner defined.
        plugins: Instead of those that are installed.
        config: Settings of the check.

    Raises:
        StoreUnavailable: nothing was decided.
    """
    if not index.stacks:  # service-level metrics, or a workload without stacks
        return [(group, Decision("cost_shift", True)) for group in groups]
    plugins = load_plugins() if plugins is None else plugins
    days = stacks_on_earlier_days(store, scan, cluster, workload)
    history = stack_history(
        index,
        days,
        stacks_around(store, _cut_short(scan, cluster), cluster, workload),
        stacks_just_before(store, scan, cluster, workload) if len(days) < MIN_DAYS else (),
    )
    members, similar = find_members(history.index), compare_stacks(history)
    defined = [
        LabelGroup(f"defined: {setting.name}", match_labels(history.index, setting.subroutines))
        for setting in workload.cost_domains
    ]
    changes = changes_before_each(store, scan, groups, workload)
    judged = []
    for group, deployed in zip(groups, changes, strict=True):
        series: Series = (group.metric_kind, group.metric)
        domains = find_domains(
            history.index,
            members,
            series,
            changes=_modifying(group, deployed),
            groups=[*defined, *_plugged_in(plugins, series, history.index.matrix.stacks)],
        )
        decision, told = _judge(history, similar, element(*series), domains, config)
        judged.append((replace(group, domains=told), decision))
    return judged


def _judge(
    history: StackHistory,
    similar: StackSimilarity,
    label: str,
    domains: Sequence[Domain],
    config: CostShiftConfig | None,
) -> tuple[Decision, tuple[DomainDecision, ...]]:
    return judge_cost_shift(
        history,
        history.index.holding([label]),
        [Domain(domain.name, similar.with_refactored(domain.rows)) for domain in domains],
        find_refactorings(history, similar, label),
        config=config,
    )


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


def _plugged_in(plugins: Plugins, series: Series, stacks: Sequence[tuple[str, ...]]) -> list[LabelGroup]:
    """Return what plug-ins say of one series; one that fails is left out, and each kind told once."""
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
            log.log(level, "cost domains of plug-in %s left out for %s", name, series[1], exc_info=True)
            continue
        found += groups
    return found


def _cut_short(scan: Scan, cluster: Sequence[Candidate]) -> Scan:
    """Return a scan that ends half-way between the last change point and its end."""
    last = max(candidate.change_time for candidate in cluster)
    return replace(scan, end=(last + scan.end) / 2)


def _modifying(candidate: Candidate, changes: Sequence[Change]) -> list[Change]:
    """Return the last changes that modified a candidate."""
    modifying = [change for change in changes if candidate.metric in change.subroutines]
    return sorted(modifying, key=lambda change: (change.time, change.id))[-_MOST_CHANGES:]
