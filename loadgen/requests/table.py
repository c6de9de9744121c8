"""Rates at which changes of requests' costs are seen and named: preset × rise."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from loadgen.harness import mean, median
from loadgen.requests.simulate import PRESETS, ReleasePair, simulate
from pipeline.releases.requests import (
    EVERY,
    NotCompared,
    Releases,
    RequestCompareConfig,
    choose_types,
    compare_releases,
    seen_load,
)

if TYPE_CHECKING:
    from pipeline.analysis.published.liao2021.forest import ForestComparison

PAPER_R_SQUARED = 0.38
"""The least R² that the paper has for a release with a regression (Table 4)."""

COSTS = "costs"
FOREST = "forest, R² ≥ 0.38"
MIXED = "mixed model"


@dataclass(frozen=True, slots=True)
class MethodRow:
    """Result of one method on one preset with one rise.

    Args:
        preset: Name of the preset.
        method: COSTS, FOREST or MIXED.
        share: Rise of the metric at the old release's load; 0 for equal releases.
        found: Share of the cases in which a rise of a type is reported.
        first: Of those, the share in which the true type stands first.
        named: Of those, the share in which it is among those named.
        types: Mean number of types named.
        r_squared: Median of the deviance model's R²; NaN for methods other than FOREST.
        compared: Share of the cases that could be compared.
        seconds: Mean CPU time of a case.
    """

    preset: str
    method: str
    share: float
    found: float
    first: float
    named: float
    types: float
    r_squared: float
    compared: float
    seconds: float


@dataclass(frozen=True, slots=True)
class _Found:
    """Answer of one method for one case: the types named, the likeliest first; none if nothing rose."""

    types: tuple[str, ...]
    r_squared: float = float("nan")


def measure(
    name: str, share: float, cases: int, alpha: float, seed: int, others: Sequence[str] = ()
) -> Iterator[MethodRow]:
    """Yield a row for COSTS, and one for each other method."""
    preset = PRESETS[name]
    methods: dict[str, Callable[[ReleasePair, int], _Found | None]] = {
        COSTS: lambda case, _: _by_costs(case, alpha)
    }
    every = {FOREST: _by_forest, MIXED: lambda case, number: _by_mixed(case, alpha, number)}
    methods |= {method: every[method] for method in others}
    results: dict[str, list[tuple[ReleasePair, _Found | None]]] = {method: [] for method in methods}
    used = dict.fromkeys(methods, 0.0)
    for number in range(cases):
        case = simulate(preset, np.random.default_rng((seed, number)), share)
        for method, judge in methods.items():
            begin = time.process_time()
            results[method].append((case, judge(case, number)))
            used[method] += time.process_time() - begin
    for method, answers in results.items():
        yield _row(name, method, share, answers, used[method] / cases)


def _by_costs(case: ReleasePair, alpha: float) -> _Found | None:
    (compared,) = compare_releases({"cpu": case.releases}, RequestCompareConfig(alpha)).values()
    if isinstance(compared, NotCompared):
        return None
    changes = compared.costs.changes if compared.slower else ()
    rises = [change for change in changes if change.change > 0 and change.type != EVERY]
    return _Found(tuple(rises[0].likely) if rises else ())


def _by_mixed(case: ReleasePair, alpha: float, seed: int) -> _Found | None:
    from pipeline.releases.requests.mixed import compare_mixed

    try:
        mixed = compare_mixed(case.releases.readable(), np.random.default_rng(seed))
    except NotCompared:
        return None
    types = tuple(mixed.likely)
    return _Found(types if mixed.slower(alpha) and types[0] != EVERY else ())


def _by_forest(case: ReleasePair, seed: int) -> _Found | None:
    forests = ask_forests(case.releases, case.type, seed)
    if forests is None:
        return None
    effects = forests.effects if forests.r_squared >= PAPER_R_SQUARED else ()
    return _Found(tuple(effect.type for effect in effects), forests.r_squared)


def ask_forests(releases: Releases, true: str, seed: int) -> ForestComparison | None:
    """Return the answer of the paper's own method; None if the load cannot be compared.

    Types that stand for the true type, which the model left out, get its name: for the model they are the
    same.
    """
    from pipeline.analysis.published.liao2021.forest import ReleaseLoad, compare_forests

    try:
        seen, _ = seen_load(releases)
        selection = choose_types(seen)
    except NotCompared:
        return None
    selected = seen.of_types(selection.kept)
    old, new = (ReleaseLoad(side.counts, side.metric) for side in (selected.old, selected.new))
    forests = compare_forests(selected.types, old, new, seed)
    stands = selection.left_out.get(true, ())
    named = (replace(effect, type=true) if effect.type in stands else effect for effect in forests.effects)
    return replace(forests, effects=tuple(named))


def _row(
    name: str, method: str, share: float, results: list[tuple[ReleasePair, _Found | None]], seconds: float
) -> MethodRow:
    judged = [(case, answer) for case, answer in results if answer is not None]
    risen = [(case, answer) for case, answer in judged if answer.types]
    return MethodRow(
        preset=name,
        method=method,
        share=share,
        found=mean([bool(answer.types) for _, answer in judged]),
        first=mean([answer.types[0] == case.type for case, answer in risen]),
        named=mean([case.type in answer.types for case, answer in risen]),
        types=mean([len(answer.types) for _, answer in risen]),
        r_squared=median([answer.r_squared for _, answer in judged]),
        compared=len(judged) / len(results),
        seconds=seconds,
    )
