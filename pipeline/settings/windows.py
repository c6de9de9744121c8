"""Widths of the counted windows: as given, or as fine as the workloads need them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pipeline.model.errors import ConfigError
from pipeline.model.units import format_duration
from pipeline.settings.config import Settings
from pipeline.settings.workloads import Workload


def fitted_windows(settings: Settings, workloads: Sequence[Workload]) -> Settings:
    """Return the settings with windows that suit every workload of gCPU; a width that was given stays.

    Without a given width it is the default one, or the widest part of it that divides what it has to: the
    resolution of each workload, and for stacks how often those workloads scan that would see too little.
    """
    looking = [workload for workload in workloads if workload.series == "gcpu"]
    hurried = [one for one in looking if longest_stack_window_s(one) < settings.stack_window_s]
    fitted: dict[str, float] = {}
    if "window_s" not in settings.model_fields_set:
        fitted["window_s"] = _common_s(settings.window_s, [one.resolution_s for one in looking])
    if "stack_window_s" not in settings.model_fields_set:
        wanted = [min(one.rerun_interval_s, longest_stack_window_s(one)) for one in hurried]
        fitted["stack_window_s"] = _common_s(settings.stack_window_s, wanted)
    return settings.model_copy(update=fitted)


def check_windows(settings: Settings, workloads: Sequence[Workload]) -> None:
    """Check that the counted windows are fine enough for what looks at them.

    Raises:
        ConfigError: a workload would see gaps where there is data, or find no stacks after a change.
    """
    for workload in workloads:
        if workload.series != "gcpu":
            continue
        windows = workload.resolution_s / settings.window_s
        if windows < 1 or windows != round(windows):
            raise ConfigError(
                f"window: {format_duration(settings.window_s)} does not divide the resolution of workload "
                f"{workload.name}, {format_duration(workload.resolution_s)}: leave it out, to fit"
            )
        least_s = longest_stack_window_s(workload)
        if settings.stack_window_s > least_s:
            raise ConfigError(
                f"stack_window: {format_duration(settings.stack_window_s)} is longer than what workload "
                f"{workload.name} may see after a change, {format_duration(least_s)}: leave it out, to fit"
            )


def longest_stack_window_s(workload: Workload) -> float:
    """Return the longest stack window that still leaves a scan some stacks after a change."""
    return 2 * workload.resolution_s + workload.extended_s


def _common_s(width_s: float, spans_s: Sequence[float]) -> float:
    """Return the widest width that divides all of them, to a millisecond."""
    return math.gcd(*(round(1000 * span_s) for span_s in (width_s, *spans_s))) / 1000
