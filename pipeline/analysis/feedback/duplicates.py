"""Duplicates by verdict: the event that reported first speaks for all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pipeline.analysis.feedback.state import original_of
from pipeline.analysis.lifecycle import OpenRegression
from pipeline.model import Scan, Verdict


def merge_duplicates(
    followed: Sequence[OpenRegression], states: Mapping[str, Verdict]
) -> list[OpenRegression]:
    """Return open regressions without those that are duplicates of another one of them.

    Their series become members of the original's group, so that their escalations are its updates. A
    duplicate of a regression that is no longer open is followed by itself.

    Args:
        followed: Of one service.
        states: The latest verdicts, by event.
    """
    known = {one.id: one for one in followed}
    originals = _originals(known, states)
    merged = {name: one for name, one in known.items() if name not in originals}
    for event, original in originals.items():
        merged[original] = _joined(merged[original], known[event])
    return list(merged.values())


def follow_originals(scan: Scan, followed: Sequence[OpenRegression], states: Mapping[str, Verdict]) -> Scan:
    """Return a scan whose candidates join the originals of duplicates."""
    originals = _originals({one.id: one for one in followed}, states)
    if not any(one.regression in originals for one in scan.joined):
        return scan
    joined = (replace(one, regression=originals.get(one.regression, one.regression)) for one in scan.joined)
    return replace(scan, joined=tuple(joined))


def _originals(known: Mapping[str, OpenRegression], states: Mapping[str, Verdict]) -> dict[str, str]:
    """Return the id of each open regression's original."""
    found = {name: original_of(name, states) for name in known}
    return {name: original for name, original in found.items() if original != name and original in known}


def _joined(one: OpenRegression, duplicate: OpenRegression) -> OpenRegression:
    series = {each.series for each in (one.candidate, *one.candidate.group)}
    more = [
        replace(each, group=())
        for each in (duplicate.candidate, *duplicate.candidate.group)
        if each.series not in series
    ]
    candidate = replace(one.candidate, group=(*one.candidate.group, *more))
    return replace(one, candidate=candidate, levels={**duplicate.levels, **one.levels})
