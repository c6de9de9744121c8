"""Request of a lab: numbers of repeats, trials and requests for each commit."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pipeline.commands.request import FOLDER, option, seed_option


@dataclass(frozen=True, slots=True)
class LabRequest:
    """How much a lab does; both sides start anew for each trial."""

    repeats: int = option(10, least=1, help="Experiments of each commit.")
    bisect: bool = option(False, help="Bisect 16 commits instead, of which one is slower.")
    trials: int = option(24, least=1, help="Trials of each experiment.")
    history: int = option(12, least=2, help="A/A trials before the experiments.")
    requests: int = option(20, least=20, help="Requests that are measured in each trial.")
    rate: float = option(20.0, above=0, most=1000, help="Requests a second.")
    threshold: float = option(0.006, above=0, help="Relative difference that is a regression.")
    seed: int = seed_option(help="Seed of the traffic.")
    keep: Path | None = option(
        None,
        kind=FOLDER,
        metavar="DIR",
        help="New folder that keeps code, recording, trials and logs.",
    )
    warm_up: int = 10
    alpha: float = 0.05
