"""Settings of the KDD 2018 detector, among them those of the paper's three teams (§2.4)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

from pipeline.model.units import DAY_S, HOUR_S, WEEK_S


@dataclass(frozen=True, slots=True)
class FourierConfig:
    """Settings of the regression."""

    max_daily: int = 6  # K: cycles down to four hours
    max_weekly: int = 3  # N: beyond that, days of the week are distinguished by single days of data
    min_weeks: float = 2.0  # of data for weekly terms; KDD 2018 §2.4.2 fits on two weeks
    huber: float = 1.345  # standard deviations; 95 % efficient with normal noise (Huber 1981)
    rounds: int = 5
    smoothing: float = 2 / 3  # of the days that LOESS looks at; Cleveland 1979


@dataclass(frozen=True, slots=True)
class Kdd2018Config:
    """Settings of the detector, by default those of the Efficiency Infra team (KDD 2018 §2.4.1)."""

    cusum_s: float = 3 * DAY_S  # the first pass
    scan_s: float = 4 * HOUR_S  # where change points are looked for
    fit_s: float = 3 * DAY_S  # the input window (§4.1): cycles are fitted to it
    scale: Literal["mean", "median"] = "mean"  # §2.1
    low_pass: bool = True
    cutoff_s: float = DAY_S  # §2.2.2
    order: int = 1  # §2.2.2
    cycles: bool = False  # Fourier regression where there are any
    log: bool = False
    second_pass: bool = True  # on the original series, over what is scanned
    truncate: bool = True  # before a large change point downward
    significance: float = 0.01  # FBDetect §5.4.2; the paper tunes its threshold by hand
    second_significance: float = 0.05  # less strict: it only keeps slow trends out
    fourier: FourierConfig = field(default_factory=FourierConfig)


EFFICIENCY_INFRA = Kdd2018Config()
"""KDD 2018 §2.4.1: noise is the challenge."""

CORE_DATA = Kdd2018Config(
    cusum_s=5 * DAY_S,
    scan_s=5 * DAY_S,
    fit_s=14 * DAY_S,
    low_pass=False,
    cycles=True,
    log=True,
    second_pass=False,
    truncate=False,
)
"""KDD 2018 §2.4.2: cycles and variance that grows with the level."""

INSTAGRAM = Kdd2018Config(
    cusum_s=3 * DAY_S,
    scan_s=3 * DAY_S,
    fit_s=14 * DAY_S,
    low_pass=False,
    cycles=True,
    second_pass=False,
    truncate=False,
)
"""KDD 2018 §2.4.3: as Core Data Demand, without the logarithm and over three days."""

TEAMS = {
    "efficiency_infra": EFFICIENCY_INFRA,
    "efficiency_infra_median": replace(EFFICIENCY_INFRA, scale="median"),
    "core_data": CORE_DATA,  # logarithms are relative as they are: nothing divides them
    "instagram": INSTAGRAM,
    "instagram_median": replace(INSTAGRAM, scale="median"),
}
"""By the names that workloads give them."""


def lacks_weeks(config: Kdd2018Config, span_s: float) -> bool:
    """Say whether a set-up that takes cycles out of so long a span never takes out weekly ones."""
    return config.cycles and min(span_s, config.fit_s) < config.fourier.min_weeks * WEEK_S
