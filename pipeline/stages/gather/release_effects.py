"""Effects of releases on candidates, carried in decisions from the detector to later stages."""

from __future__ import annotations

from dataclasses import replace

from pipeline.analysis.mix.releases import KEY, Effects, ReleaseEffect
from pipeline.model import Candidate, Decision, Scan
from pipeline.model.clock import from_iso, to_iso

_SEEN, _BROUGHT = "side_by_side", "brought"


def release_decision(effect: ReleaseEffect, since: float | None = None) -> Decision:
    """Return the decision that a release changes a candidate's series.

    Args:
        effect: Effect of the release.
        since: Time at which the first host had the release, if the candidate is dated later.
    """
    if since is None:
        return Decision(KEY, True, effect.ratio, effect.p_value, _SEEN, (effect.release,))
    subjects = (effect.release, to_iso(since))
    return Decision(KEY, True, effect.ratio, effect.p_value, _BROUGHT, subjects)


def effects_of(scan: Scan) -> Effects:
    """Return the effects of releases on the candidates whose decisions have no time of a first host."""
    by_series = {}
    for candidate in scan.candidates:
        effects = tuple(
            ReleaseEffect(decision.subjects[0], decision.statistic, decision.bound)
            for decision in candidate.passed
            if decision.step == KEY and decision.code == _SEEN
        )
        if effects:
            by_series[candidate.series] = effects
    return by_series


def dated_by_releases(scan: Scan, resolution_s: float) -> Scan:
    """Return a scan whose candidates are dated by the first host with the release that brought them.

    Detectors and the went-away step need the time at which the series of all hosts rose; deduplication and
    root-cause analysis need the time of the first host.
    """
    return replace(scan, candidates=tuple(_dated(one, resolution_s) for one in scan.candidates))


def _dated(candidate: Candidate, resolution_s: float) -> Candidate:
    for number, decision in enumerate(candidate.passed):
        if decision.step == KEY and decision.code == _BROUGHT:
            start = from_iso(decision.subjects[1])
            passed = [*candidate.passed]
            passed[number] = replace(decision, code=_SEEN, subjects=decision.subjects[:1])
            around = (start - resolution_s, start + resolution_s)
            return replace(candidate, change_time=start, change_time_interval=around, passed=tuple(passed))
    return candidate
