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
    by_id = {regression.id: regression for regression in followed}
    originals = _originals(by_id, states)
    merged = {name: regression for name, regression in by_id.items() if name not in originals}
    for event, original in originals.items():
        merged[original] = _joined(merged[original], by_id[event])
    return list(merged.values())


def follow_originals(scan: Scan, followed: Sequence[OpenRegression], states: Mapping[str, Verdict]) -> Scan:
    """Return a scan whose candidates join the originals of duplicates."""
    originals = _originals({entry.id: entry for entry in followed}, states)
    if not any(entry.regression in originals for entry in scan.joined):
        return scan
    joined = (
        replace(entry, regression=originals.get(entry.regression, entry.regression)) for entry in scan.joined
    )
    return replace(scan, joined=tuple(joined))


def _originals(regressions: Mapping[str, OpenRegression], states: Mapping[str, Verdict]) -> dict[str, str]:
    """Return the id of each open regression's original."""
    originals = {name: original_of(name, states) for name in regressions}
    return {
        name: original for name, original in originals.items() if original != name and original in regressions
    }


def _joined(original: OpenRegression, duplicate: OpenRegression) -> OpenRegression:
    series = {series_candidate.series for series_candidate in (original.candidate, *original.candidate.group)}
    more = [
        replace(series_candidate, group=())
        for series_candidate in (duplicate.candidate, *duplicate.candidate.group)
        if series_candidate.series not in series
    ]
    candidate = replace(original.candidate, group=(*original.candidate.group, *more))
    return replace(original, candidate=candidate, levels={**duplicate.levels, **original.levels})
