"""Score of groupings by cause, pair by pair, against the truth of simulated fleets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from loadgen.evaluation.grouping.cases import GroupedFleet, GroupingCase
from loadgen.evaluation.matching import explain_cost
from loadgen.evaluation.model import ScoredEvent, TruthRow
from loadgen.evaluation.rates import Rate
from pipeline.analysis.stacks import Group
from pipeline.model import Candidate, Scan

Rows = Mapping[str, float]
"""Ids of the truth rows that explain a candidate, each with how badly."""


@dataclass(frozen=True, slots=True)
class GroupingScore:
    """Counts of pairs of candidates of one scan; add scores to pool fleets.

    A pair in one group is right if some row explains both, and does not count if no row explains one of them.
    A pair belongs together if the same row explains both best.
    """

    right: Rate = Rate(0, 0)  # of pairs in one group
    together: Rate = Rate(0, 0)  # of pairs that belong together
    unexplained: int = 0  # pairs in one group with a candidate that no row explains
    groups: int = 0
    causes: Rate = Rate(0, 0)  # causes by scan, of the groups that hold any of their candidates
    nearest: Rate = Rate(0, 0)  # groups of several whose representative is nearest their row's cause
    split: Counter[str] = field(default_factory=Counter)  # pairs in two groups, by the row's kind
    merged: Counter[str] = field(default_factory=Counter)  # wrong pairs in one group, by both kinds

    def __add__(self, other: GroupingScore) -> GroupingScore:
        """Return the sum of both scores."""
        return GroupingScore(
            self.right + other.right,
            self.together + other.together,
            self.unexplained + other.unexplained,
            self.groups + other.groups,
            self.causes + other.causes,
            self.nearest + other.nearest,
            self.split + other.split,
            self.merged + other.merged,
        )

    @property
    def groups_per_cause(self) -> float | None:
        """Return the mean number of groups per cause in a scan."""
        return self.causes.of / self.causes.hits if self.causes.hits else None


def score_grouping(
    fleet: GroupedFleet, groupings: Sequence[Sequence[Group]], *, tolerance_s: float
) -> GroupingScore:
    """Score the groups of each of a fleet's cases.

    Args:
        fleet: The cases.
        groupings: (cases,) their groups.
        tolerance_s: How far a candidate's change point may be from a row's onset.
    """
    by_scan: dict[tuple[float, float], list[tuple[GroupingCase, Sequence[Group]]]] = {}
    for case, groups in zip(fleet.cases, groupings, strict=True):
        by_scan.setdefault((case.scan.start, case.scan.end), []).append((case, groups))
    rows = {row.id: row for row in fleet.truth if row.series}
    scores = [_score_scan(cases, rows, tolerance_s) for cases in by_scan.values()]
    return sum(scores, GroupingScore())


def rows_behind(
    candidate: Candidate, scan: Scan, truth: Sequence[TruthRow], *, tolerance_s: float
) -> dict[str, float]:
    """Return the rows that explain a candidate by its own series, as scoring explains an event."""
    event = ScoredEvent(
        id="",
        service=scan.service,
        workload=scan.workload,
        metric_kind=candidate.metric_kind,
        metric=candidate.metric,
        kind=candidate.kind,
        change_time=candidate.change_time,
        detected_time=scan.end,
        before=candidate.before,
        after=candidate.after,
        delta=candidate.delta,
        p_value=candidate.p_value,
    )
    costs = {row.id: explain_cost(row, event, tolerance_s) for row in truth}
    return {row: cost for row, cost in costs.items() if cost < float("inf")}


def _score_scan(
    cases: Sequence[tuple[GroupingCase, Sequence[Group]]], rows: Mapping[str, TruthRow], tolerance_s: float
) -> GroupingScore:
    items: list[tuple[int, Rows]] = []
    nearest = Rate(0, 0)
    number = 0
    for case, groups in cases:
        behind = [
            rows_behind(candidate, case.scan, list(rows.values()), tolerance_s=tolerance_s)
            for candidate in case.candidates
        ]
        for group in groups:
            everyone = (group.representative, *group.members)
            items += [(number, behind[i]) for i in everyone]
            nearest += _is_nearest(
                [case.candidates[i] for i in everyone], [behind[i] for i in everyone], rows
            )
            number += 1
    held = {(best, group) for group, explaining in items if (best := _best(explaining))}
    causes = Rate(len({best for best, _ in held}), len(held))
    return _score_pairs(items, rows) + GroupingScore(groups=number, causes=causes, nearest=nearest)


def _score_pairs(items: Sequence[tuple[int, Rows]], rows: Mapping[str, TruthRow]) -> GroupingScore:
    right = wrong = together = apart = unexplained = 0
    split: Counter[str] = Counter()
    merged: Counter[str] = Counter()
    for (group, causes), (other_group, other_causes) in combinations(items, 2):
        same_group = group == other_group
        best, other_best = _best(causes), _best(other_causes)
        if best and best == other_best:
            together, apart = together + same_group, apart + (not same_group)
            split[rows[best].kind] += not same_group
        if same_group and not (best and other_best):
            unexplained += 1
        elif same_group and causes.keys() & other_causes.keys():
            right += 1
        elif same_group:
            wrong += 1
            merged[" + ".join(sorted((rows[best].kind, rows[other_best].kind)))] += 1
    return GroupingScore(
        right=Rate(right, right + wrong),
        together=Rate(together, together + apart),
        unexplained=unexplained,
        split=+split,
        merged=merged,
    )


def _is_nearest(
    candidates: Sequence[Candidate], behind: Sequence[Rows], rows: Mapping[str, TruthRow]
) -> Rate:
    """Return whether a group's first candidate is the nearest to the cause of most of the group."""
    votes = Counter(best for causes in behind if (best := _best(causes)))
    if len(candidates) < 2 or not votes:
        return Rate(0, 0)
    series = rows[min(votes, key=lambda row: (-votes[row], row))].series
    positions = [series.index(c.metric) if c.metric in series else len(series) for c in candidates]
    return Rate(int(positions[0] == min(positions)), 1)


def _best(causes: Rows) -> str:
    return min(causes, key=lambda row: (causes[row], row), default="")
