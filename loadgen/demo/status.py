"""State of the demo while it runs, for its display."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from loadgen.demo.comparison import DemoDeployment
from pipeline.model import Scan


@dataclass
class Status:
    """Counters and latest state of each part; written by the run, read by the display."""

    started: float
    step: str = "starting"
    dashboard: str = ""  # its address
    deployments: list[DemoDeployment] = field(default_factory=list)
    planned: int = 0
    stages: dict[str, bool] = field(default_factory=dict)  # name → alive
    requests: int = 0
    scans: dict[str, int] = field(default_factory=dict)  # topic → scans seen on it
    candidates: dict[str, int] = field(default_factory=dict)  # topic → candidates seen on it
    scanned_until: dict[str, float] = field(default_factory=dict)  # topic → end of the latest scan
    ledger: list[Scan] = field(default_factory=list)  # of topic unique, those with a candidate at any step
    unique_offsets: dict[int, int] = field(default_factory=dict)  # partition → next offset of topic unique
    dead_letters: list[str] = field(default_factory=list)  # reasons
    events: list[Mapping[str, Any]] = field(default_factory=list)
