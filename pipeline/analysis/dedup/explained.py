"""Grouping by the explanation: what one cause makes rise is one regression; rules judge the rest.

Where stacks say that cost moved or that an entry has more traffic, they may be wrong: a stage of every
request looks like an entry, and what got dearer as its neighbour got cheaper like a move. So nothing is
dropped for that alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pipeline.analysis.dedup.evidence import Cluster
from pipeline.analysis.dedup.links import Link
from pipeline.analysis.explain.explanation import Explanation
from pipeline.analysis.explain.verdict import STEP, judge
from pipeline.analysis.stacks import Group, mean_depths
from pipeline.model import Candidate, Decision
from pipeline.model.frames import element
from pipeline.model.metric_kind import is_gcpu

_HAS_CAUSE = ("own", "through")
"""What is said of candidates that rise by a cause."""


@dataclass(frozen=True, slots=True)
class ExplainedGroups:
    """Candidates of a cluster as the explanation has them."""

    candidates: Sequence[Candidate]  # those that it names a cause for
    groups: Sequence[tuple[Group, Sequence[Link]]]  # rows of these
    left: Sequence[Candidate]  # of which it names none: rules decide


def group_explained(cluster: Cluster) -> ExplainedGroups:
    """Return what the explanation makes of a cluster's candidates, each with its decision.

    Candidates belong together if the same cause is most of their rise.
    """
    try:
        return _explained(cluster)
    except (ArithmeticError, LookupError, ValueError) as error:
        failed = Decision(STEP, True, code="failed", subjects=(f"{type(error).__name__}: {error}",))
        return ExplainedGroups((), (), [_noted(candidate, failed) for candidate in cluster.candidates])


def _explained(cluster: Cluster) -> ExplainedGroups:
    explanation = cluster.explanation
    if explanation is None:
        return ExplainedGroups((), (), cluster.candidates)
    caused: list[Candidate] = []
    shares: list[float] = []
    left: list[Candidate] = []
    by_cause: dict[int, list[int]] = {}
    for candidate in cluster.candidates:
        if not is_gcpu(candidate.metric_kind):
            left.append(candidate)
            continue
        label = element(*candidate.series)
        decision = judge(explanation, label)
        if decision.code not in _HAS_CAUSE:
            left.append(_noted(candidate, decision))
            continue
        cause, share = _main_cause(explanation, label)
        by_cause.setdefault(cause, []).append(len(caused))
        shares.append(share)
        caused.append(_noted(candidate, decision))
    return ExplainedGroups(
        caused, [_group(cluster, caused, shares, rows) for rows in by_cause.values()], left
    )


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
