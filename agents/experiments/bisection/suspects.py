"""Suspects of a regression as weights of commits: from an event, `smidgen benchmarks watch`, or a list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from pipeline.model.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Suspects:
    """Weights of commits by id, perhaps abbreviated, and their range ``A..B`` if it is known."""

    weights: Mapping[str, float]
    range: str | None = None

    def of(self, shas: Sequence[str]) -> dict[str, float]:
        """Return the weights by the full ids of ``shas``; weights of other commits are left out."""
        weights: dict[str, float] = {}
        for name, weight in self.weights.items():
            sha = next((commit for commit in shas if commit.startswith(name)), None)
            if sha:
                weights[sha] = weights.get(sha, 0.0) + weight
        return weights


def read_suspects(content: bytes, name: str) -> Suspects:
    """Read suspects: the first line, or the whole file, as JSON.

    An event has ``data.root_causes``, whose changes are commits by their ids; `smidgen benchmarks watch
    --json` has ``suspects`` and their ``range``; a list has objects with ``commit`` and,
    perhaps, ``weight``.

    Raises:
        ConfigError: it is none of these.
    """
    try:
        document = _first(content)
        suspects = suspects_of(document)
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError):
        suspects = None
    if suspects is None or any(
        not key or not 0.0 <= weight < 1e300 for key, weight in suspects.weights.items()
    ):
        raise ConfigError(f"{name}: no event, no change of smidgen benchmarks watch, and no list of commits")
    return suspects


def suspects_of(document: Any) -> Suspects | None:
    """Return the suspects of a document; None if it has none."""
    if isinstance(document, list):
        return Suspects({str(entry["commit"]): float(entry.get("weight", 1.0)) for entry in document})
    if not isinstance(document, dict):
        return None
    if "suspects" in document:
        weights = {str(entry["commit"]): float(entry["posterior"]) for entry in document["suspects"]}
        return Suspects(weights, str(document["range"]))
    causes = document["data"]["root_causes"]
    return Suspects({str(entry["change"]["id"]): float(entry["score"]) for entry in causes})


def _first(content: bytes) -> Any:
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError:
        return orjson.loads(content.split(b"\n", 1)[0])
