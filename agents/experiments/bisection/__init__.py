"""Bisection of a git repository: builds and measures commits in work trees of their own."""

from agents.experiments.bisection.journal import BisectionTask, Journal
from agents.experiments.bisection.measurement import CommitMeasurement, Reading, reading_of
from agents.experiments.bisection.session import (
    BisectionPlan,
    CommitRange,
    Session,
    bisect_range,
    read_span,
    skipped,
)
from agents.experiments.bisection.suspects import Suspects, read_suspects
from agents.experiments.bisection.workbench import Workbench

__all__ = [
    "Journal",
    "CommitMeasurement",
    "BisectionPlan",
    "Reading",
    "Session",
    "CommitRange",
    "Suspects",
    "BisectionTask",
    "Workbench",
    "bisect_range",
    "read_span",
    "read_suspects",
    "reading_of",
    "skipped",
]
