"""Cost shifts among the regressions of a cluster, by the stacks around them (FBDetect §5.4.6)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pipeline.analysis.cost_shift.decision import CostShiftConfig, judge_cost_shift
from pipeline.analysis.cost_shift.domains import (
    Domain,
    LabelGroup,
    Members,
    find_domains,
    find_members,
    match_labels,
)
from pipeline.analysis.cost_shift.refactorings import StackSimilarity, compare_stacks, find_refactorings
from pipeline.analysis.cost_shift.stack_history import StackHistory, stack_history
from pipeline.analysis.stacks import CarriedOver, StackIndex, share_changes
from pipeline.model import Candidate, Change, Decision, SeriesKey, StackMatrix
from pipeline.model.frames import element

LabelGroups = Callable[[SeriesKey, Sequence[tuple[str, ...]]], Sequence[LabelGroup]]
"""Cost domains of a user's own, by the series and all stacks, root first."""

_MOST_CHANGES = 8
"""Domains made of changes, for one candidate: the last ones deployed. Each makes the check stricter."""


@dataclass(frozen=True, slots=True, eq=False)
class StackEvidence:
    """Stacks around the change points of a cluster, and what they are compared with."""

    index: StackIndex  # before the first and after the last change point
    days: Sequence[StackMatrix] = ()  # the same hours of earlier days, the nearest first
    nearer: StackMatrix | None = None  # shorter spans before and after
    earlier: Sequence[StackMatrix] = ()  # spans that follow each other, all before the change

    def history(self, carried: CarriedOver | None = None) -> StackHistory:
        """Return the stacks on one list, with the cost before in the stacks that each became."""
        if carried is None or not carried.frames:
            return stack_history(self.index, self.days, self.nearer, self.earlier)
        matrix = carried.spread(self.index.matrix, after=False)
        return stack_history(
            replace(self.index, matrix=matrix, rise=share_changes(matrix)),
            [carried.spread(day) for day in self.days],
            None if self.nearer is None else carried.spread(self.nearer, after=False),
            [carried.spread(span) for span in self.earlier],
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Comparison:
    """Stacks with what is known of all of them at once."""

    history: StackHistory
    members: Members
    similar: StackSimilarity

    @classmethod
    def of(cls, history: StackHistory) -> _Comparison:
        return cls(history, find_members(history.index), compare_stacks(history))


def judge_cost_shifts(
    stacks: StackEvidence,
    groups: Sequence[Candidate],
    deployed: Sequence[Sequence[Change]],
    *,
    carried: CarriedOver | None = None,
    history: StackHistory | None = None,
    defined: Sequence[tuple[str, Sequence[str]]] = (),
    label_groups: LabelGroups | None = None,
    config: CostShiftConfig | None = None,
) -> list[tuple[Candidate, Decision]]:
    """Return each candidate with what its cost domains say, and whether its cost has only moved.

    Args:
        stacks: Around the cluster's change points.
        groups: Candidates of the cluster.
        deployed: (groups,) the changes just before each.
        carried: The stacks that each became by frames inserted or taken out.
        history: The stacks on one list, where that is known already.
        defined: Domains that the service's owner defined: a name and patterns of subroutines.
        label_groups: Finds further domains.
        config: Settings of the check.
    """
    if not stacks.index.stacks:  # service-level metrics, or a workload without stacks
        return [(group, Decision("cost_shift", True)) for group in groups]
    frames = carried.frames if carried else frozenset()
    labels = [element(*group.series) for group in groups]
    compared = plain = _Comparison.of(history or stacks.history(carried))
    if frames.intersection(labels):
        # An inserted frame took its cost from stacks that are taken for its own once they are carried over.
        plain = _Comparison.of(stacks.history())
    owned = [
        LabelGroup(f"defined: {name}", match_labels(compared.history.index, tuple(patterns)))
        for name, patterns in defined
    ]
    judged = []
    for group, label, changes in zip(groups, labels, deployed, strict=True):
        comparison = plain if label in frames else compared
        history, similar = comparison.history, comparison.similar
        more = label_groups(group.series, history.index.matrix.stacks) if label_groups else ()
        domains = find_domains(
            history.index,
            comparison.members,
            group.series,
            changes=_modifying(group, changes),
            groups=[*owned, *more],
        )
        decision, said = judge_cost_shift(
            history,
            history.index.holding([label]),
            [Domain(domain.name, similar.with_refactored(domain.rows)) for domain in domains],
            find_refactorings(history, similar, label, inserted=label in frames),
            config=config,
        )
        judged.append((replace(group, domains=said), decision))
    return judged


def _modifying(candidate: Candidate, changes: Sequence[Change]) -> list[Change]:
    """Return the last changes that modified a candidate."""
    modifying = [change for change in changes if candidate.metric in change.subroutines]
    return sorted(modifying, key=lambda change: (change.time, change.id))[-_MOST_CHANGES:]
