"""Bisection of a git repository: builds and measures commits in work trees of their own."""

from agents.experiments.bisection.journal import Journal, Task
from agents.experiments.bisection.measurement import Measure, Reading, reading_of
from agents.experiments.bisection.session import Plan, Session, Span, bisect_range, read_span, skipped
from agents.experiments.bisection.suspects import Suspects, read_suspects
from agents.experiments.bisection.workbench import Workbench

__all__ = [
    "Journal",
    "Measure",
    "Plan",
    "Reading",
    "Session",
    "Span",
    "Suspects",
    "Task",
    "Workbench",
    "bisect_range",
    "read_span",
    "read_suspects",
    "reading_of",
    "skipped",
]
