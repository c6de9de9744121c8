"""The windows of a scan, and the settings of the short-term detector."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from pipeline.analysis.detect.expected import NormaliseConfig
from pipeline.analysis.detect.noise.shared_prior import SharedPriorConfig
from pipeline.model.units import DAY_S


@dataclass(frozen=True, slots=True)
class WindowIndexes:
    """Windows of a matrix (FBDetect Figure 11), as indexes of columns."""

    analysis: int  # the historical window ends, the analysis window begins
    extended: int  # the analysis window ends, the extended window begins; equals ``end`` without one
    end: int
    history: int = 0  # the historical window begins: what lies before is there to be compared with last week


@dataclass(frozen=True, slots=True)
class ScanConfig:
    """Settings of the short-term detector."""

    significance: float = 0.01  # FBDetect §5.4.2
    min_points: int = 3  # on either side; two points fit nearly any level
    min_history: float = 0.5  # share of the history with data, see has_history: before, a service starts up
    baseline: float = 4.0  # times what follows it: a longer one lowers the error by a tenth, and may be stale
    week_before: bool = True  # whether what happened a week earlier is taken out
    week_doubt: float = (
        2.0  # of a change at this time last week, see pipeline.analysis.detect.seasonal.weekly
    )
    placement: float = 6.635  # likelihood ratio by which a split elsewhere must be better (99 %)
    count_likelihood: bool = True  # of counts; else they are tested as values are
    shared_prior: SharedPriorConfig = field(default_factory=SharedPriorConfig)
    normalise: NormaliseConfig = field(default_factory=NormaliseConfig)


def baseline_start(windows: WindowIndexes, resolution_s: float, config: ScanConfig) -> int:
    """Return the first window of the baseline: whole days, where the history has as many."""
    length = math.ceil(config.baseline * (windows.end - windows.analysis))
    day = max(1, round(DAY_S / resolution_s))
    if length > day:
        length = -(-length // day) * day
    start = max(0, windows.analysis - length)
    # Last week's change is taken from as long a baseline, so that both hold the same days of the week.
    return max(start, 7 * day) if 8 * day <= windows.analysis else start
