"""Choice of fleets whose events and ledgers are recorded: small presets, by what they exercise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from loadgen.fleet.scenario import PRESETS, Scenario
from pipeline.files.validation import read_yaml
from pipeline.model.units import HOUR_S
from pipeline.settings.workloads import Workload, load_workloads

SMALL: Mapping[str, Any] = {
    "duration": "11d",
    "graph": {"subroutines": 80, "endpoints": 6},
    "changes": {"count": 60},
}
"""Every preset is cut to this size; a fleet's own changes come on top."""

FEW_STEPS = {"kind": "step", "count": 4, "delta": [0.004, 0.03], "between": [0.6, 0.93], "no_culprit": 0}


@dataclass(frozen=True, slots=True)
class RecordedFleet:
    """A fleet to simulate and backtest.

    Args:
        name: Name of the record.
        preset: Preset of the simulator.
        seed: Seed of the simulator.
        about: The behaviour that it exercises.
        changes: Keys of the scenario that differ from the preset cut to ``SMALL``; objects are merged.
        workloads: Presets of workloads.
        rerun_interval_s: Interval of scans for workloads with shorter ones; None: that of the preset.
        workload_changes: Fields that differ in every workload.
        is_silenced: Whether people announce the cost of some regressions and mute others.
        has_gates: Whether the worker knows which subroutines each gate switches.
    """

    name: str
    preset: str
    seed: int
    about: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    workloads: tuple[str, ...] = ("frontfaas-small",)
    rerun_interval_s: float | None = 4 * HOUR_S
    workload_changes: Mapping[str, Any] = field(default_factory=dict)
    is_silenced: bool = False
    has_gates: bool = False

    def scenarios(self) -> tuple[Scenario, ...]:
        """Return the scenario of each of its services."""
        raw = _merged(_merged(read_yaml(PRESETS / f"{self.preset}.yaml"), SMALL), self.changes)
        return Scenario.model_validate(raw, by_alias=True, by_name=False).of_each_service()

    def chosen_workloads(self) -> tuple[Workload, ...]:
        """Return the workloads that scan it."""
        return tuple(
            workload.model_copy(
                update={
                    **self.workload_changes,
                    "rerun_interval_s": max(workload.rerun_interval_s, self.rerun_interval_s or 0.0),
                }
            )
            for workload in load_workloads(self.workloads)
        )


def _merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return nested objects with the keys of ``changes`` put over those of ``base``."""
    merged = dict(base)
    for key, value in changes.items():
        old = merged.get(key)
        merged[key] = _merged(old, value) if isinstance(value, dict) and isinstance(old, dict) else value
    return merged


_CAMPAIGN = {
    "samples_per_minute": 6,
    "servers": {"count": 600},
    "noise": {"mix_drift": 0.04, "dispersion": 0.05},
    "load": {"requests": 1000, "shifts": [{"at": 0.8, "share": 0.4, "over": "30m"}]},
    "inject": [{**FEW_STEPS, "between": [0.79, 0.81]}],
}

FLEETS: tuple[RecordedFleet, ...] = (
    RecordedFleet(
        "tiny",
        "tiny",
        1,
        "steps, a cascade, cost shifts, transients and an improvement",
        {"duration": "8d", "graph": {"subroutines": 40, "endpoints": 4}},
    ),
    RecordedFleet(
        "silenced",
        "tiny",
        2,
        "expectations and mutes",
        {
            "duration": "8d",
            "graph": {"subroutines": 40, "endpoints": 4},
            "inject": [{**FEW_STEPS, "count": 10, "between": [0.7, 0.88], "config": 0}],
        },
        is_silenced=True,
    ),
    RecordedFleet("small", "small", 1, "some of everything, scanned every two hours", rerun_interval_s=None),
    RecordedFleet(
        "gradual",
        "gradual",
        2,
        "slow rises",
        {"inject": [{"kind": "gradual", "count": 5, "delta": [0.003, 0.03], "between": [0.3, 0.6]}]},
    ),
    RecordedFleet(
        "cost-shift",
        "cost-shift",
        1,
        "refactorings within cost domains",
        {
            "inject": [
                {"kind": "cost_shift", "count": 14, "delta": [0.002, 0.02], "between": [0.55, 0.93]},
                {**FEW_STEPS, "count": 2},
            ]
        },
    ),
    RecordedFleet(
        "cascade",
        "cascade",
        1,
        "regressions with many callers",
        {"inject": [{"kind": "cascade", "count": 5, "delta": [0.003, 0.02], "between": [0.6, 0.93]}]},
    ),
    RecordedFleet("transients", "transients", 1, "troubles that go away"),
    RecordedFleet("mass-rename", "mass-rename", 1, "series with a former name"),
    RecordedFleet("restless", "restless", 1, "names made anew every day"),
    RecordedFleet("wrapper", "wrapper", 1, "frames put into stacks"),
    RecordedFleet("weekly-cron", "weekly-cron", 1, "jobs of a day or a week"),
    RecordedFleet(
        "shared-library",
        "shared-library",
        1,
        "three services and two libraries",
        {"duration": "9d", "graph": {"subroutines": 40, "endpoints": 4}},
    ),
    RecordedFleet(
        "latency-too",
        "latency-too",
        1,
        "service-level metrics, beside large steps",
        {"duration": "14d", "graph": {"subroutines": 40, "endpoints": 4}},
        workloads=("frontfaas-small", "ct-supply-short", "ct-supply-long", "ct-demand"),
    ),
    RecordedFleet(
        "hit-ratio",
        "hit-ratio",
        1,
        "set-up metrics that explain a rise",
        workloads=("frontfaas-small", "ct-demand"),
    ),
    RecordedFleet("rollout-staged", "rollout-staged", 1, "releases beside each other"),
    RecordedFleet(
        "rollout-canary", "rollout-canary", 2, "releases on one host first", {"graph": {"subroutines": 50}}
    ),
    RecordedFleet(
        "drained",
        "drained",
        2,
        "regions that are drained; steps in one region",
        {
            "inject": [
                {**FEW_STEPS, "only": {"region": "west"}},
                {**FEW_STEPS, "name": "everywhere"},
            ]
        },
    ),
    RecordedFleet(
        "returned",
        "drained",
        1,
        "a region that is slower, is drained, and returns as it was",
        {
            "duration": "12d",
            "graph": {"subroutines": 60, "endpoints": 5},
            "hosts": {"drains": [{"region": "west", "at": 0.88, "length": "1d", "taken": False}]},
            "inject": [
                {
                    **FEW_STEPS,
                    "count": 1,
                    "delta": [0.01, 0.01],
                    "between": [0.8, 0.81],
                    "only": {"region": "west"},
                }
            ],
        },
    ),
    RecordedFleet("traffic-shift", "traffic-shift", 1, "requests that go to another endpoint"),
    RecordedFleet("campaign", "quiet", 1, "another mix of requests, as an access log counts them", _CAMPAIGN),
    RecordedFleet("flags", "flags", 1, "gates that switch on older code", {"hosts": None}, has_gates=True),
    RecordedFleet(
        "kdd2018",
        "small",
        2,
        "the methods of KDD 2018: its detector and exclusive stacks, beside slow rises",
        {"graph": {"subroutines": 50}},
        workload_changes={"detectors": ("kdd2018", "long_term"), "grouping": "kdd2018"},
    ),
    RecordedFleet(
        "published",
        "small",
        2,
        "the published methods: KDD 2018's detector and SOMDedup",
        {"graph": {"subroutines": 50}},
        workload_changes={"detectors": ("short_term", "kdd2018"), "grouping": "som"},
    ),
)
"""All fleets; the first two are quick."""

QUICK: tuple[str, ...] = ("tiny", "silenced")
"""Names of the fleets that every run of the tests compares."""
