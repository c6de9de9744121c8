"""A judging step as the registry declares it: its question, its numbers and its answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from pipeline.model.metric_kind import RegressionKind

Stage = Literal["detect", "releases", "filter", "dedup", "rootcause"]


@dataclass(frozen=True, slots=True)
class Code:
    """One answer of a step, as sentences about a candidate; ``{0}`` is the first subject.

    ``measures`` says what statistic and bound are, where that is not what the step's usually are.
    """

    dropped: str = ""
    passed: str = ""
    measures: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """One judging step: what it asks, what its two numbers mean, and its answers."""

    key: str
    stage: Stage
    asks: str
    source: str = ""  # section of the paper
    measures: str = ""  # what the statistic is, and is held against
    measures_passed: str = ""  # what the statistic of one that passed is, where it is something else
    passes: str = "it passed"  # what it means to pass
    passes_alone: str = ""  # what it means to pass if there was nothing to compare with
    codes: Mapping[str, Code] = field(default_factory=dict)
    kinds: tuple[RegressionKind, ...] = ("short_term", "long_term")  # of candidates that it is asked about
    judges_domains: bool = False  # whether it looks at cost domains, which there may be none of
    drops: bool = True  # whether it drops candidates: a step of the funnel
    ablatable: bool = True
    optional: bool = False  # whether only workloads that name it ask it
    factor: str = ""  # the factor of a suspect's score that it is, as events name it
    event_field: str = ""  # the field of events that lists what it found of a candidate

    @property
    def question(self) -> str:
        """The question with its source."""
        return f"{self.asks} ({self.source})" if self.source else self.asks
