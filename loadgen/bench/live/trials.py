"""Trials on simulated processes: steps that are reported in time, and events of steady processes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from loadgen.bench.live.simulation import Process, Slowdown, SlowerFunction, simulate, standard_error
from pipeline.backtest.run import run_backtest
from pipeline.messages.events import DETECTED
from pipeline.model.clock import from_iso
from pipeline.settings.workloads import Workload

IN_TIME_S = 60.0
"""A step is to be reported within a minute."""

_LEAD_S = (60, 300)  # of history before a step
_APART_S = 20.0  # between a step and the change time of its event
HOUR_S = 3600


@dataclass(frozen=True, slots=True)
class LiveTrial:
    """Result for one step."""

    step: SlowerFunction
    lead_s: int  # history before it
    delay_s: float | None  # from the step to the end of the scan that reported it; None if none did
    others: int  # other events


def try_step(workload: Workload, process: Process, errors: float, seed: int) -> LiveTrial:
    """Simulate and backtest a process with a step of ``errors`` standard errors."""
    rng = np.random.default_rng([seed, 17])
    lead_s = int(rng.integers(*_LEAD_S))
    seconds = lead_s + int(IN_TIME_S) + process.interval_s
    slowdown = Slowdown(lead_s, lambda share: errors * standard_error(share, process.rate_hz))
    dataset, step = simulate(process, seconds, rng, slowdown)
    assert step is not None
    events = _detected(run_backtest(dataset, [workload]).events)
    delays = []
    for event in events:
        if _is_of(event["data"], step):
            delays.append(from_iso(event["data"]["detected_time"]) + workload.wait_s - step.time)
    timely = [delay for delay in delays if delay <= IN_TIME_S]
    return LiveTrial(step, lead_s, min(timely, default=None), len(events) - len(delays))


def steady_events(workload: Workload, process: Process, hours: float, seed: int) -> list[dict[str, Any]]:
    """Return the events of a process that did not change for ``hours``: all of them are false."""
    dataset, _ = simulate(process, round(hours * HOUR_S), np.random.default_rng([seed, 18]))
    return _detected(run_backtest(dataset, [workload]).events)


def _detected(events: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [event for event in events if event["type"] == DETECTED]


def _is_of(data: dict[str, Any], step: SlowerFunction) -> bool:
    """Return whether an event reports a step: the step's function or its caller, at the step's time."""
    named = {data["metric"], *(member["metric"] for member in data["group"])}
    caller = step.subroutine.rpartition(".")[0]
    near = abs(from_iso(data["change_time"]) - step.time) <= _APART_S
    return near and bool(named & {step.subroutine, caller})
