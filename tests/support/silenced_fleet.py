"""Knowledge of people about a simulated fleet: silences of its regressions, and the code of its gates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipeline.backtest.dataset import Dataset
from pipeline.model import Silence
from pipeline.model.units import DAY_S, HOUR_S


def silences_of(dataset: Dataset) -> tuple[Silence, ...]:
    """Return silences of a fleet's regressions, in five forms by turns.

    Costs are announced high enough, too low, and high enough but withdrawn; mutes last, and end.
    """
    silences = []
    regressions = [row for row in dataset.truth if row["kind"] == "regression"]
    for number, row in enumerate(regressions):
        at, delta = float(row["start"]), float(row["delta"])
        common: dict[str, Any] = {
            "service": dataset.service,
            "time": at - DAY_S,
            "owner": "grace",
            "reason": "planned",
        }
        name = f"silence-{number}"
        cost: dict[str, Any] = {
            **common,
            "change": row["change"] or "",
            "start": at - HOUR_S,
            "end": at + DAY_S,
        }
        series = row["subroutines"][0]
        form = number % 5
        if form < 3:
            factor = (2.0, 0.2, 2.0)[form]
            removed = at + 20 * HOUR_S if form == 2 else None
            silences.append(Silence(name, kind="expected", cost=factor * delta, removed=removed, **cost))
        else:
            end = at + (30 * DAY_S if form == 3 else 16 * HOUR_S)
            silences.append(
                Silence(name, kind="muted", start=at - DAY_S, end=end, subroutine=series, **common)
            )
    return tuple(silences)


def gates_of(dataset: Dataset) -> Mapping[str, tuple[str, ...]]:
    """Return gate → subroutines of the code behind it."""
    return {
        gate: change.subroutines for change in dataset.changes if change.subroutines for gate in change.gates
    }
