"""Which changes are worth an experiment before their release (ServiceLab §3.1, DiffSuggester)."""

from pipeline.selection.budget import Budget, Worth, worth_of
from pipeline.selection.chance import Chance, Example, learn_chance
from pipeline.selection.impact import EndpointImpact, Impact, impact_of, score_of, touched_share

__all__ = [
    "Budget",
    "Chance",
    "EndpointImpact",
    "Example",
    "Impact",
    "Worth",
    "impact_of",
    "learn_chance",
    "score_of",
    "touched_share",
    "worth_of",
]
