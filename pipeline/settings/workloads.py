"""Workloads, the rows of FBDetect's Table 3: presets and workload files."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, ClassVar, Literal, get_args

from pydantic import BeforeValidator, Field, field_validator, model_validator

from pipeline.analysis.dedup.rules import Between, Feature, MergeRule, PairwiseConfig
from pipeline.analysis.detect.metric_direction import Worse
from pipeline.analysis.published.kdd2018.setups import TEAMS, lacks_weeks
from pipeline.counting.names.patterns import REGEX, compile_pattern
from pipeline.files.validation import StrictModel, read_yaml, validate
from pipeline.model import Detector, Direction, Scan
from pipeline.model.errors import ConfigError
from pipeline.model.steps import OPTIONAL
from pipeline.model.units import DAY_S, WEEK_S, format_duration, parse_duration_s

PRESETS_PATH = Path(__file__).with_name("workloads.yaml")

Seconds = Annotated[float, BeforeValidator(parse_duration_s)]
OptionalSeconds = Annotated[
    float | None, BeforeValidator(lambda value: None if value is None else parse_duration_s(value))
]
Similarity = Annotated[float, Field(gt=0, le=1)] | None
"""The least similarity that a rule requires; None requires nothing."""

Kdd2018Setup = Literal[
    "efficiency_infra", "efficiency_infra_median", "core_data", "instagram", "instagram_median"
]
"""Teams of KDD 2018 §2.4; the statistic is divided by the mean, or by the median (§2.1)."""

log = logging.getLogger(__name__)

_WITHOUT_STACKS: tuple[Feature, ...] = ("correlation", "metric_id", "onset")
"""Features that can be similar if one of two regressions is of a service-level metric."""


class Threshold(StrictModel):
    """The least change that is reported: exactly one of absolute and relative (FBDetect Table 3)."""

    absolute: float | None = Field(default=None, gt=0)
    relative: float | None = Field(default=None, gt=0)

    @model_validator(mode="after")
    def _one_of_two(self) -> Threshold:
        if (self.absolute is None) == (self.relative is None):
            raise ValueError("give either absolute or relative")
        return self


class SimilarityRule(StrictModel):
    """Lower bounds on similarities: two regressions that reach all of them are merged (FBDetect §5.4.8)."""

    between: Between = "any"
    cause: Similarity = None
    caller: Similarity = None
    release: Similarity = None
    stacks: Similarity = None
    correlation: Similarity = None
    metric_id: Similarity = None
    onset: Similarity = None

    @model_validator(mode="after")
    def _can_hold(self) -> SimilarityRule:
        if not self.bounds:
            raise ValueError(f"give at least one of {', '.join(get_args(Feature))}")
        needy = [feature for feature in self.bounds if feature not in _WITHOUT_STACKS]
        if needy and self.between in ("service", "mixed"):
            raise ValueError(
                f"{', '.join(needy)} can never hold with between: {self.between}, since "
                f"service-level metrics have no stacks; give {' or '.join(_WITHOUT_STACKS)}"
            )
        return self

    @property
    def bounds(self) -> dict[Feature, float]:
        """The least similarity by feature."""
        least: dict[Feature, float | None] = {
            feature: getattr(self, feature) for feature in get_args(Feature)
        }
        return {feature: bound for feature, bound in least.items() if bound is not None}


class CostDomain(StrictModel):
    """A cost domain of the user's: subroutines between which cost may move (FBDetect §5.4.6).

    A pattern is a glob, or ``re:`` and a regular expression. It has to match a whole element of a stack: a
    subroutine, or an annotation such as ``endpoint=/checkout``.
    """

    name: str = Field(min_length=1, max_length=100)
    subroutines: tuple[str, ...] = Field(min_length=1)

    @field_validator("subroutines")
    @classmethod
    def _patterns(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        for pattern in patterns:
            if not pattern.removeprefix(REGEX).strip():
                raise ValueError("a pattern is empty")
            compile_pattern(pattern)
        return patterns


class Workload(StrictModel):
    """One row of FBDetect's Table 3: windows in seconds, threshold, re-run interval.

    ``follows`` is True if the levels of later scans show whether a regression has gone.
    """

    follows: ClassVar[bool] = True

    name: str = Field(pattern=r"^[A-Za-z0-9._-]{1,100}$")
    series: Literal["gcpu", "service"] = "gcpu"
    resolution_s: Seconds = Field(alias="resolution", gt=0)
    rerun_interval_s: Seconds = Field(alias="rerun_interval", gt=0)
    historical_s: Seconds = Field(alias="historical", gt=0)
    analysis_s: Seconds = Field(alias="analysis", gt=0)
    historical_most_s: OptionalSeconds = Field(alias="historical_most", default=None)
    resolution_most_s: OptionalSeconds = Field(alias="resolution_most", default=None)
    extended_s: Annotated[float, BeforeValidator(lambda v: 0.0 if v is None else parse_duration_s(v))] = (
        Field(alias="extended", default=0.0)
    )
    threshold: Threshold
    detectors: tuple[Detector, ...] = Field(default=("short_term",), min_length=1)
    kdd2018: Kdd2018Setup | None = None  # the first
    direction: Direction = "up"
    metrics: tuple[str, ...] | None = None  # of series: service; see looks_at
    opposite: tuple[str, ...] = ()  # names of metrics that get worse the other way; see looks_at
    lateness_s: OptionalSeconds = Field(alias="lateness", default=None)
    change_lookback_s: OptionalSeconds = Field(alias="change_lookback", default=None)
    grouping: Literal["explained", "cause", "som", "kdd2018"] = "explained"
    merge_rules: tuple[SimilarityRule, ...] | None = None
    steps: tuple[str, ...] = ()  # keys of optional steps that are asked, too
    cost_domains: tuple[CostDomain, ...] = ()

    @field_validator("cost_domains")
    @classmethod
    def _names_differ(cls, domains: tuple[CostDomain, ...]) -> tuple[CostDomain, ...]:
        names = [domain.name for domain in domains]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"two of the name {name!r}")
        return domains

    @field_validator("steps")
    @classmethod
    def _optional_steps(cls, steps: tuple[str, ...]) -> tuple[str, ...]:
        for step in steps:
            if step not in OPTIONAL:
                raise ValueError(f"{step}: no optional step; there are {', '.join(OPTIONAL)}")
        return steps

    @model_validator(mode="after")
    def _windows_fit(self) -> Workload:
        for key in ("rerun_interval", "historical", "analysis", "extended"):
            value = getattr(self, f"{key}_s")
            windows = value / self.resolution_s
            if abs(windows - round(windows)) > 1e-6:
                raise ValueError(
                    f"{key} of {format_duration(value)} is not a whole number of "
                    f"resolution {format_duration(self.resolution_s)}"
                )
        return self

    @model_validator(mode="after")
    def _bounds_fit(self) -> Workload:
        for key in ("historical", "resolution"):
            least, most = getattr(self, f"{key}_s"), getattr(self, f"{key}_most_s")
            if most is not None and not least <= most < WEEK_S:
                raise ValueError(f"{key}_most should be from {key} to less than a week")
        return self

    @field_validator("opposite")
    @classmethod
    def _opposite_patterns(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        if not all(pattern.strip() for pattern in patterns):
            raise ValueError("a pattern is empty")
        return patterns

    @field_validator("metrics")
    @classmethod
    def _metric_patterns(cls, patterns: tuple[str, ...] | None) -> tuple[str, ...] | None:
        if patterns is not None and not patterns:
            raise ValueError("give at least one pattern, or leave the key out")
        if not all(pattern.removeprefix("!").strip() for pattern in patterns or ()):
            raise ValueError("a pattern is empty")
        return patterns

    @model_validator(mode="after")
    def _settings_apply(self) -> Workload:
        if self.metrics is not None and self.series != "service":
            raise ValueError("metrics chooses service-level metrics; it needs series: service")
        if self.opposite and self.series != "service":
            raise ValueError("opposite names service-level metrics; it needs series: service")
        if self.kdd2018 is not None and "kdd2018" not in self.detectors:
            raise ValueError("kdd2018 sets up a detector that detectors does not name")
        return self

    def looks_at(self, metric: str, worse: Worse | None = None) -> bool:
        """Return whether a scan looks at the service-level metric of that name.

        The name must match no glob in ``metrics`` that begins with ``!``. If other globs are given, it must
        match one of them. Otherwise the metric must get worse in the workload's direction, by its metadata,
        or without metadata by matching no glob in ``opposite``. Case is ignored.

        Args:
            metric: Name of the metric.
            worse: Direction in which it gets worse, by its metadata; None if they have none.
        """
        patterns, name = [pattern.lower() for pattern in self.metrics or ()], metric.lower()
        wanted = [pattern for pattern in patterns if not pattern.startswith("!")]
        if any(fnmatchcase(name, pattern[1:]) for pattern in patterns if pattern.startswith("!")):
            return False
        if wanted:
            return any(fnmatchcase(name, pattern) for pattern in wanted)
        if worse is not None:
            return worse == self.direction
        return not any(fnmatchcase(name, pattern.lower()) for pattern in self.opposite)

    @property
    def span_s(self) -> float:
        """Length of a scan's windows together, in seconds."""
        return self.historical_s + self.analysis_s + self.extended_s

    @property
    def is_fitted(self) -> bool:
        """True if a scan's windows depend on the times at which its service has data."""
        return self.historical_most_s is not None or self.resolution_most_s is not None

    def widened(self, times: int) -> Workload:
        """Return the workload with all spans ``times`` as long, and as many windows."""
        spans = ("resolution_s", "historical_s", "analysis_s", "extended_s", "change_lookback_s")
        wider = {span: times * value for span in spans if (value := getattr(self, span)) is not None}
        return self.model_copy(update=wider)

    def with_history(self, historical_s: float) -> Workload:
        """Return the workload with a history of another length."""
        return self.model_copy(update={"historical_s": historical_s})

    def as_scanned(self, scan: Scan) -> Workload:
        """Return the workload with the windows that a scan had."""
        if not self.is_fitted:
            return self
        times = round((scan.resolution_s or self.resolution_s) / self.resolution_s)
        return self.widened(times).with_history(scan.analysis_start - scan.start)

    @property
    def lead_s(self) -> float:
        """Seconds before its history that a scan for steps reads: a week if the history is about a week.

        Otherwise nothing could be compared with last week's baseline, and each weekend would be a change.
        """
        if not WEEK_S <= self.historical_s < WEEK_S + DAY_S:
            return 0.0
        return math.ceil(WEEK_S / self.resolution_s) * self.resolution_s

    @property
    def wait_s(self) -> float:
        """Seconds after a window's end that a scan waits for late data; one window by default."""
        return self.resolution_s if self.lateness_s is None else self.lateness_s

    @property
    def least_s(self) -> float:
        """Seconds of data that a scan needs: half of the history, and all windows after it."""
        return self.historical_s / 2 + self.analysis_s + self.extended_s

    @property
    def pairwise(self) -> PairwiseConfig:
        """The rules by which regressions are merged: the default ones unless the workload has its own."""
        if self.merge_rules is None:
            return PairwiseConfig()
        return PairwiseConfig(rules=tuple(MergeRule(rule.bounds, rule.between) for rule in self.merge_rules))

    @property
    def lookback_s(self) -> float:
        """Seconds before a change point in which a change may be deployed; the analysis window by default."""
        return self.analysis_s if self.change_lookback_s is None else self.change_lookback_s


class _OwnLoad(Workload):
    """A workload whose levels depend on a release's load: a lower level under another load is no return."""

    follows: ClassVar[bool] = False


RELEASE_COSTS = _OwnLoad.model_validate(
    {
        **{"name": "release-costs", "series": "service", "resolution": "1s", "resolution_most": "1h"},
        **{"rerun_interval": "1s", "historical": "1d", "historical_most": "6d", "analysis": "48s"},
        **{"change_lookback": "12s", "threshold": {"relative": 0.005}},
    }
)
"""The workload of the looks of ``releases``, for the stages after it.

A look determines the length of its windows; all other times are multiples of it."""


def unknown_direction(metric: str, workloads: Sequence[Workload]) -> bool:
    """Return whether the direction in which a metric gets worse remains unknown by names.

    It does if workloads of both directions guess by names, and both of them or neither would look at the
    metric: then neither should. A workload without one of the other direction looks at it.
    """
    guessing = [workload for workload in workloads if workload.opposite]
    directions = {workload.direction for workload in guessing}
    looking = {workload.direction for workload in guessing if workload.looks_at(metric)}
    return len(directions) > 1 and len(looking) != 1


def workload_of(scan: Scan, workloads: Mapping[str, Workload]) -> Workload | None:
    """Return the workload of a scan, with the scan's windows; None if it is unknown."""
    workload = workloads.get(scan.workload)
    return workload.as_scanned(scan) if workload else None


def known_workloads(chosen: Sequence[str]) -> dict[str, Workload]:
    """Return workloads by their names: those chosen, the presets, and RELEASE_COSTS.

    Raises:
        ConfigError: as ``load_workloads``.
    """
    every = (*_presets().values(), RELEASE_COSTS, *load_workloads(chosen))
    return {workload.name: workload for workload in every}


def load_workloads(chosen: Sequence[str]) -> tuple[Workload, ...]:
    """Resolve workloads, each the name of a preset or the path of a workload file.

    Raises:
        ConfigError: an unknown name, or a file's wrong key; two workloads of one name.
    """
    presets = _presets()
    workloads: dict[str, Workload] = {}
    for name in chosen:
        for workload in [presets[name]] if name in presets else _from_path(name, presets):
            if workload.name in workloads:
                raise ConfigError(f"workload {workload.name!r} is given twice")
            workloads[workload.name] = workload
            _warn_of_weeks(workload)
    return tuple(workloads.values())


def read_workload_file(path: Path) -> tuple[Workload, ...]:
    """Read one workload or a list of them from YAML.

    Raises:
        ConfigError: the file, position and key that is wrong.
    """
    raw = read_yaml(path)
    rows = raw if isinstance(raw, list) else [raw]
    if not rows:
        raise ConfigError(f"{path}: holds no workload")
    return tuple(
        validate(Workload, row, f"{path}: {row.get('name', number) if isinstance(row, dict) else number}")
        for number, row in enumerate(rows, start=1)
    )


def _presets() -> dict[str, Workload]:
    return {workload.name: workload for workload in read_workload_file(PRESETS_PATH)}


def _warn_of_weeks(workload: Workload) -> None:
    seen_s = workload.historical_s + workload.analysis_s
    setup = workload.kdd2018
    if setup and lacks_weeks(TEAMS[setup], seen_s):
        log.warning(
            "workload %s: kdd2018 %s takes out no weekly cycle: history and analysis are %s, not 14d",
            workload.name,
            setup,
            format_duration(seen_s),
        )


def _from_path(name: str, presets: dict[str, Workload]) -> tuple[Workload, ...]:
    path = Path(name)
    if not path.exists():
        raise ConfigError(f"no workload file or preset {name!r}; presets are {', '.join(presets)}")
    return read_workload_file(path)
