"""Verdicts of three methods on each release: Tables 3, 4 and 5 of Liao et al., and a fourth method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from agents.logs import RequestTypes
from loadgen.applications.catalogue import CatalogueApplication, Position
from loadgen.applications.drive import CPU, Injection, Recorded
from loadgen.requests.table import ask_forests
from pipeline.analysis.published.liao2021.baseline import compare_response_times
from pipeline.model import FloatArray, is_time_column
from pipeline.releases.requests import NotCompared, RequestCompareConfig, compare_releases
from pipeline.releases.requests.periods import ReleasePeriods, Releases, joined


@dataclass(frozen=True, slots=True)
class ReleaseRow:
    """One release against the one before it.

    Args:
        application: Which.
        kind: Of the regression; empty of an equal release.
        position: Name of the position; empty of an equal release.
        added: What the regression adds to the CPU time, relative; 0 of an equal release.
        compared: Whether the load could be compared.
        p: Of the costs model; NaN if it was not compared.
        found: Whether the costs model says slower.
        rank: Of the true type among those that the costs model names; 0 if it does not name it.
        named: How many types that names.
        r_squared: Of the forests' model of deviance; NaN if forests were not asked.
        forest_rank: Of the true type among the forests' effects; 0 if it has none.
        effect: Of the true type, by the forests.
        highest_other: Effect of another type, by the forests.
        baseline: How many types have slower response times.
        baseline_right: Whether the true one is among them.
    """

    application: str
    kind: str
    position: str
    added: float
    compared: bool
    p: float
    found: bool
    rank: int
    named: int
    r_squared: float
    forest_rank: int
    effect: float
    highest_other: float
    baseline: int
    baseline_right: bool


@dataclass(frozen=True, slots=True)
class _Forests:
    r_squared: float = float("nan")
    rank: int = 0
    effect: float = float("nan")
    highest_other: float = float("nan")


def judge(
    application: CatalogueApplication,
    old: Recorded,
    new: Recorded,
    injected: tuple[Position, Injection] | None,
    alpha: float,
    *,
    forest: bool,
) -> ReleaseRow:
    """Compare two releases by each method."""
    types = RequestTypes()
    types.learn([line for recorded in (old, new) for line in recorded.durations])
    releases = _releases(old.counted(types), new.counted(types))
    true, added = _truth(new, types, injected) if injected else ("", 0.0)
    (compared,) = compare_releases({CPU: releases}, RequestCompareConfig(alpha)).values()
    named: tuple[str, ...] = ()
    if not isinstance(compared, NotCompared) and compared.slower:
        named = tuple(next(change for change in compared.costs.changes if change.change > 0).likely)
    slower = _slower(old, new, types, alpha)
    forests = _forests(releases, true) if forest else _Forests()
    return ReleaseRow(
        application=application.name,
        kind=injected[1].kind if injected else "",
        position=injected[0].name if injected else "",
        added=added,
        compared=not isinstance(compared, NotCompared),
        p=float("nan") if isinstance(compared, NotCompared) else compared.p,
        found=bool(named),
        rank=_rank(named, true) if injected else 0,
        named=len(named),
        r_squared=forests.r_squared,
        forest_rank=forests.rank,
        effect=forests.effect,
        highest_other=forests.highest_other,
        baseline=len(slower),
        baseline_right=true in slower,
    )


def _truth(new: Recorded, types: RequestTypes, injected: tuple[Position, Injection]) -> tuple[str, float]:
    """Return the type that the regression is in, and what it adds to the CPU time, relative."""
    position, injection = injected
    lines = [line for line, key in new.keys.items() if key == position.asked]
    (type_,) = {types.of(line) for line in lines}
    extra_s = injection.milliseconds / 1e3 * sum(len(new.durations[line]) for line in lines)
    return type_, extra_s / (float(new.cpu.sum()) - extra_s)


def _releases(old: Mapping[str, FloatArray], new: Mapping[str, FloatArray]) -> Releases:
    names = tuple(
        name for name in dict.fromkeys((*old, *new)) if name not in ("time", CPU) and not is_time_column(name)
    )
    sides: list[ReleasePeriods] = [joined(side["time"], side, side[CPU], names) for side in (old, new)]
    return Releases(names, *sides)


def _rank(named: Sequence[str], true: str) -> int:
    return named.index(true) + 1 if true in named else 0


def _slower(old: Recorded, new: Recorded, types: RequestTypes, alpha: float) -> list[str]:
    """Return the types whose response times are slower, by the paper's baseline (§2)."""
    before, after = (_by_type(recorded, types) for recorded in (old, new))
    return [
        comparison.type for comparison in compare_response_times(before, after, alpha) if comparison.slower
    ]


def _by_type(recorded: Recorded, types: RequestTypes) -> dict[str, FloatArray]:
    durations_by_type: dict[str, list[float]] = {}
    for line, durations in recorded.durations.items():
        durations_by_type.setdefault(types.of(line), []).extend(durations)
    return {type_: np.asarray(durations) for type_, durations in durations_by_type.items()}


def _forests(releases: Releases, true: str) -> _Forests:
    forests = ask_forests(releases, true, seed=1)
    if forests is None:
        return _Forests()
    right = [number for number, effect in enumerate(forests.effects) if effect.type == true]
    other_effects = [effect.effect for effect in forests.effects if effect.type != true]
    return _Forests(
        forests.r_squared,
        right[0] + 1 if right else 0,
        forests.effects[right[0]].effect if right else float("nan"),
        max(other_effects, default=float("nan")),
    )
