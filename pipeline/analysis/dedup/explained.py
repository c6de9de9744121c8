"""Grouping by the explanation: what one cause makes rise is one regression, what only moved is none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pipeline.analysis.dedup.evidence import Cluster
from pipeline.analysis.dedup.links import Link
from pipeline.analysis.explain.explanation import Explanation
from pipeline.analysis.explain.verdict import STEP, judge
from pipeline.analysis.stacks import Group, mean_depths
from pipeline.model import Candidate, Decision, Dropped
from pipeline.model.frames import element
from pipeline.model.metric_kind import is_gcpu

_HAS_CAUSE = ("own", "through")
"""What is said of candidates that rise by a cause."""

_COSTS_NOTHING = ("moved", "entry")
"""What is said of candidates that cost the whole nothing more."""


@dataclass(frozen=True, slots=True)
class ExplainedGroups:
    """Candidates of a cluster as the explanation has them."""

    candidates: Sequence[Candidate]  # those that it names a cause for
    groups: Sequence[tuple[Group, Sequence[Link]]]  # rows of these
    left: Sequence[Candidate]  # of which it says nothing: rules decide
    dropped: Sequence[Dropped]


def group_explained(cluster: Cluster) -> ExplainedGroups:
    """Return what the explanation makes of a cluster's candidates, each with its decision.

    Candidates belong together if the same cause is most of their rise.
    """
    try:
        explanation = cluster.explanation
    except (ArithmeticError, LookupError, ValueError) as error:
        failed = Decision(STEP, True, code="failed", subjects=(f"{type(error).__name__}: {error}",))
        return ExplainedGroups((), (), [_noted(candidate, failed) for candidate in cluster.candidates], ())
    if explanation is None:
        return ExplainedGroups((), (), cluster.candidates, ())
    caused: list[Candidate] = []
    shares: list[float] = []
    left: list[Candidate] = []
    dropped: list[Dropped] = []
    by_cause: dict[int, list[int]] = {}
    for candidate in cluster.candidates:
        if not is_gcpu(candidate.metric_kind):
            left.append(candidate)
            continue
        label = element(*candidate.series)
        decision = judge(explanation, label)
        if decision.code in _HAS_CAUSE:
            cause, share = _main_cause(explanation, label)
            by_cause.setdefault(cause, []).append(len(caused))
            shares.append(share)
            caused.append(_noted(candidate, decision))
        elif decision.code in _COSTS_NOTHING:
            dropped.append(Dropped(candidate, replace(decision, passed=False)))
        else:
            left.append(_noted(candidate, decision))
    groups = [_group(cluster, caused, shares, rows) for rows in by_cause.values()]
    return ExplainedGroups(caused, groups, left, dropped)


def is_caused(candidate: Candidate) -> bool:
    """Return whether the explanation named a cause of a candidate's rise."""
    return any(decision.step == STEP and decision.code in _HAS_CAUSE for decision in candidate.passed)


def _noted(candidate: Candidate, decision: Decision) -> Candidate:
    return replace(candidate, passed=(*candidate.passed, decision))


def _main_cause(explanation: Explanation, label: str) -> tuple[int, float]:
    """Return the cause that is most of a label's rise, and the share of the rise that it is."""
    parts = explanation.of(label)
    moved = np.array([cause.moved_from is not None for cause in explanation.causes])
    cause = int(np.argmax(np.where(moved, -np.inf, parts.causes)))
    return cause, min(float(parts.causes[cause]) / parts.rise, 1.0)


def _group(
    cluster: Cluster, caused: Sequence[Candidate], shares: Sequence[float], rows: Sequence[int]
) -> tuple[Group, Sequence[Link]]:
    """Return a group, for which the one stands whose own cost the cause is, else the deepest."""
    some = [caused[row] for row in rows]
    own = np.array([candidate.passed[-1].code == "own" for candidate in some])
    depths = mean_depths(cluster.index, [candidate.series for candidate in some])
    sizes = np.abs([candidate.delta for candidate in some])
    order = np.lexsort((np.array(rows), -sizes, -depths, ~own))
    members = tuple(row for row in rows if row != rows[order[0]])
    links = [Link("cause", shares[row], 0.0) for row in members]
    return Group(rows[order[0]], members, tuple(shares[row] for row in members)), links
