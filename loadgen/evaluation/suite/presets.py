"""Presets of the simulator, as the accuracy suite divides them."""

from __future__ import annotations

LEFT_OUT = ("tiny",)
"""It is for first tries: its eight days are judged by few scans, and hold three regressions."""

SLOW = ("large", "figure-9")
"""Presets of the long variant only."""

WORLD = (
    "clock-change",
    "elsewhere",
    "gaps",
    "holiday",
    "mass-rename",
    "no-endpoints",
    "own-cycles",
    "part-time",
    "restless",
    "runtime-upgrade",
    "sale-days",
    "shared-library",
    "sparse",
    "templates",
    "weekly-cron",
    "wrapper",
)
"""Presets of what services do besides regressing, apart from the others for their number."""

HOSTS = (
    "autoscaling",
    "clocks-off",
    "drained",
    "experiments",
    "flags",
    "instance-type",
    "late-hosts",
    "rollout-aborted",
    "rollout-blue-green",
    "rollout-canary",
    "rollout-rolling",
    "rollout-staged",
    "sampler-rate",
    "traffic-shift",
)
"""Presets of fleets whose hosts are kept apart: rollouts, and mixes of hosts and of traffic that move."""
