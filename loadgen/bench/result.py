"""What a benchmark reports."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Result:
    """One line of a report: figures by unit, such as ``{"messages/s": 1200.0}``, and what was measured."""

    name: str
    figures: dict[str, float]
    setup: dict[str, float] = field(default_factory=dict)
