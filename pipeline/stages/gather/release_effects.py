"""What releases make of candidates, as their decisions carry it from the detector to the stages after it."""

from __future__ import annotations

from dataclasses import replace

from pipeline.analysis.mix.releases import KEY, Effects, ReleaseEffect
from pipeline.model import Candidate, Decision, Scan
from pipeline.model.clock import from_iso, to_iso

_SEEN, _BROUGHT = "side_by_side", "brought"


def release_decision(effect: ReleaseEffect, since: float | None = None) -> Decision:
    """Return what says that a release changes a candidate's series.

    Args:
        effect: Of the release.
        since: When the first host had it, where the candidate is dated when others did.
    """
    if since is None:
        return Decision(KEY, True, effect.ratio, effect.p_value, _SEEN, (effect.release,))
    subjects = (effect.release, to_iso(since))
    return Decision(KEY, True, effect.ratio, effect.p_value, _BROUGHT, subjects)


def effects_of(scan: Scan) -> Effects:
    """Return what releases make of a scan's candidates that are dated as if each had come at once."""
    found = {}
    for candidate in scan.candidates:
        effects = tuple(
            ReleaseEffect(one.subjects[0], one.statistic, one.bound)
            for one in candidate.passed
            if one.step == KEY and one.code == _SEEN
        )
        if effects:
            found[candidate.series] = effects
    return found


def dated_by_releases(scan: Scan, resolution_s: float) -> Scan:
    """Return a scan whose candidates are dated when the first host had the release that brought them.

    Those who look for change points and those who ask whether they last need the time at which the series
    of all hosts rose; those who look for causes, and for regressions that are one, the first host's.
    """
    return replace(scan, candidates=tuple(_dated(one, resolution_s) for one in scan.candidates))


def _dated(candidate: Candidate, resolution_s: float) -> Candidate:
    for number, one in enumerate(candidate.passed):
        if one.step == KEY and one.code == _BROUGHT:
            start = from_iso(one.subjects[1])
            passed = [*candidate.passed]
            passed[number] = replace(one, code=_SEEN, subjects=one.subjects[:1])
            around = (start - resolution_s, start + resolution_s)
            return replace(candidate, change_time=start, change_time_interval=around, passed=tuple(passed))
    return candidate
