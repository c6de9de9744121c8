"""Fleet whose call tree is a real profile, with realistic movements: the series for timing the detector."""

from __future__ import annotations

from pathlib import Path

from loadgen.fleet.scenario import Scenario
from loadgen.fleet.simulate import simulate
from pipeline.analysis.detect.short_term import WindowIndexes
from pipeline.model import SeriesMatrix

SUBROUTINES = 1250
SAMPLES = 40_000  # of the service in a window


def draw_profile_fleet(profile: Path, windows: WindowIndexes, resolution_s: float) -> SeriesMatrix:
    """Return the series of a simulated service whose stacks are those of a profile.

    Endpoints have daily cycles of their own, stacks wander, and changes lie in the history as well as in the
    analysis window. So a tenth of the series and more pass the screen and need the whole detector.

    Args:
        profile: A file that ``smidgen agent import`` reads.
        windows: Windows of a scan.
        resolution_s: Width of a window.

    Raises:
        ConfigError: the profile cannot be read, or holds no stack.
    """
    of_analysis = (windows.analysis / windows.end, windows.extended / windows.end)
    steps = {"kind": "step", "delta": (0.001, 0.02), "no_culprit": 0.0}
    scenario = Scenario.model_validate(
        {
            "name": "bench-detect",
            "duration": windows.end * resolution_s,
            "window": resolution_s,
            "stack_window": resolution_s,
            "samples_per_minute": SAMPLES / 1000 / (resolution_s / 60),
            "graph": {"subroutines": SUBROUTINES, "endpoints": 10, "profile": str(profile)},
            "servers": {"count": 1000},
            "load": {"mix_daily": 0.25},
            "changes": {"count": 10},
            "inject": [
                {**steps, "count": 4, "between": (0.5, of_analysis[0])},
                {**steps, "name": "now", "count": 4, "between": of_analysis},
                {"kind": "transient", "count": 8, "between": (0.5, 0.99)},
                {"kind": "cost_shift", "count": 8, "between": (0.5, 0.99)},
            ],
        },
        by_alias=True,
        by_name=False,
    )
    drawn = simulate(scenario, seed=1).dataset
    return SeriesMatrix(drawn.start, resolution_s, drawn.kinds, drawn.names, drawn.samples, drawn.totals)
