"""SameRegressionMerger: one regression that shows up in several overlapping windows (FBDetect Table 5).

A change point stays in sight of every scan whose windows hold it: first in the analysis window, later in
the historical one, where the mixture of old and new level makes what follows look like a rise again.
"""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.filters.verdict import Verdict
from pipeline.model import Candidate


def judge_same_regression(
    candidate: Candidate,
    known: Sequence[Candidate],
    *,
    recent: float,
    analysis_s: float,
    absolute: float | None,
    relative: float | None,
) -> Verdict:
    """Drop a candidate that does not go beyond a regression of the same series that was passed on before.

    A known regression counts only where the candidate can be its echo: its change point lies within an
    analysis window of the candidate's, or the series still stood at its level just before the candidate.
    One that was rolled back in between and comes back is a new regression. Beyond means by the detection
    threshold at least, and by half of the candidate's own change, since both levels are estimates.

    Args:
        candidate: A change point of this scan.
        known: Regressions of the same series from earlier scans whose change point this scan still sees.
        recent: Level of the series over an analysis window just before the candidate's change point.
        analysis_s: Length of the analysis window.
        absolute: The workload's absolute threshold, or None.
        relative: The workload's relative threshold, or None.
    """
    echoed = [
        k
        for k in known
        if (k.delta > 0) == (candidate.delta > 0)
        and (
            abs(k.change_time - candidate.change_time) <= analysis_s
            or abs(recent - k.after) < abs(recent - k.before)
        )
    ]
    if not echoed:
        return Verdict(True, 0.0, 0.0)
    sign = 1.0 if candidate.delta > 0 else -1.0
    reported = max((k.after for k in echoed), key=lambda level: sign * level)
    threshold = absolute if absolute is not None else (relative or 0.0) * abs(reported)
    bound = max(threshold, abs(candidate.delta) / 2)
    beyond = sign * (candidate.after - reported)
    return Verdict(beyond >= bound, beyond, bound, "same regression as in an earlier scan")
