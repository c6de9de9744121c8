"""``smidgen release requests``: which requests cost more in a new release, from counts and a metric alone."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from agents.commands.release_requests.forests import Forests
from agents.commands.release_requests.mixed_models import MixedModels, too_few
from agents.commands.release_requests.suspects import Finder, SourceRequest
from agents.commands.release_requests.tables import RequestTable, build_releases, slower_types
from pipeline.analysis.published.liao2021.baseline import SlowerType
from pipeline.backtest.seriesfile import read_series
from pipeline.commands.request import argument, json_option, option, takes
from pipeline.commands.tables import Column, print_json, print_table
from pipeline.commands.terminal import print_lines, print_note
from pipeline.releases.requests import (
    BASE,
    EVERY,
    CostChange,
    NotCompared,
    ReleaseComparison,
    Releases,
    RequestCompareConfig,
    compare_releases,
    periods_needed,
    spelt,
)
from pipeline.releases.requests.mixed import mixed_judges

EXIT_CODES = {"steady": 0, "slower": 1, "open": 3}

RISE = 0.02
"""Relative rise of a type's cost for which the number of periods that would show it is printed."""

_SHOWN = 10
"""Most types whose cost is shown."""

_EXAMPLES = """\b
Examples:
  smidgen agent logs access-old.log --service shop --table old.csv
  smidgen agent logs access-new.log --service shop --table new.csv
  smidgen release requests old.csv new.csv --metrics cpu.csv
  smidgen release requests old.csv new.csv --metrics cpu.csv --metric cpu --json
  smidgen release requests old.csv new.csv --metrics cpu.csv --repo . --range v1.4..v1.5
"""


@click.command(name="requests", epilog=_EXAMPLES)
@takes
def compare_requests(
    old: Path = argument(),
    new: Path = argument(),
    metrics: Path | None = option(
        help="Series of the metrics, such as CPU over time, in any format that `smidgen detect` reads.",
    ),
    names: tuple[str, ...] = option(
        flag="--metric",
        metavar="NAME",
        help="Name of a series that is a metric (default: all of --metrics).",
    ),
    alpha: float = option(
        RequestCompareConfig().alpha, above=0, most=0.5, help="Chance that equal releases count as different."
    ),
    seed: int = option(0, least=0, help="Seed of the bootstrap."),
    baseline: bool = option(help="Compare response times too, by Mann and Whitney's test and Cliff's delta."),
    mixed: bool = option(
        help="Fit a mixed linear model too; it decides where there are too few periods for costs."
    ),
    forest: bool = option(
        help="Fit random forests of both releases too (Liao et al.); up to a minute for each metric."
    ),
    *,
    source: SourceRequest,
    as_json: bool = json_option(),
) -> int:
    """Say whether requests cost more in the NEW release than in the OLD one, and which.

    OLD and NEW are tables of periods: a column of time, one of counts for each type of request, and maybe one
    of its response times, as `smidgen agent logs --table` writes them. A metric's points are averaged over
    each period. The releases may have run under different load: what differs is looked for in the cost of a
    request. Load that the old release never saw is left out, and said. Where several types could explain the
    difference, response times say which is the likeliest.

    With --repo and --range, the source of the new release says which handler answers a request that costs
    more, and which commits modify what the handler may run: its suspects, the likeliest first.

    With --mixed, changes of all costs are estimated together, too, which takes fewer periods. With --forest,
    the paper's own method stands beside it, which decides nothing: which types stand for others, the R² of
    the forests' deviance with its chance in equal releases, and what 10 % more requests of a type make of it.

    Exit code: 0 if nothing costs more, 1 if something does, 3 if the releases cannot be compared, 2 on bad
    usage or a bad file.
    """
    if metrics is None and not names:
        raise click.UsageError("say what the metric is: --metrics FILE, or --metric NAME of the tables")
    sides = [RequestTable.read(path) for path in (old, new)]
    extra = read_series(metrics, plain=True) if metrics else ()
    chosen = names or tuple(series.metric for series in extra)
    releases = {name: build_releases(sides, extra, name, chosen) for name in chosen}
    slower = slower_types(sides, alpha) if baseline else []
    config = RequestCompareConfig(alpha, seed)
    models = MixedModels.of(releases, config) if mixed else None
    forests = Forests.of(releases, alpha, seed) if forest else None
    compared = _Compared(
        releases, compare_releases(releases, config), models, forests, alpha, source.finder()
    )
    if as_json:
        beside = {"response_times": [asdict(type_) for type_ in slower]} if baseline else {}
        result = {"state": compared.state, "metrics": compared.to_json(), **beside}
        print_json(result)
    else:
        compared.show()
        if baseline:
            print_table(_RESPONSE_TIMES, slower[:_SHOWN])
    return EXIT_CODES[compared.state]


@dataclass(frozen=True, slots=True)
class _Compared:
    """Comparison of two releases by every metric; by ``models`` and ``forests``, too, if requested."""

    releases: Mapping[str, Releases]
    comparisons: Mapping[str, ReleaseComparison | NotCompared]
    models: MixedModels | None
    forests: Forests | None
    alpha: float
    finder: Finder | None

    @property
    def state(self) -> str:
        """One of EXIT_CODES."""
        slower = [self._slower(name) for name in self.comparisons]
        if any(slower):
            return "slower"
        return "open" if all(verdict is None for verdict in slower) else "steady"

    def _slower(self, name: str) -> bool | None:
        """Return whether a metric says that the new release costs more; None if nothing can be said."""
        comparison = self.comparisons[name]
        if isinstance(comparison, ReleaseComparison):
            return comparison.slower
        return self.models.slower(name) if self.models and too_few(comparison) else None

    def to_json(self) -> dict[str, Any]:
        """Return each metric by its name."""
        metrics = _to_json(self.comparisons, self.alpha, self.finder)
        for name, comparison in self.comparisons.items():
            if self.models:
                metrics[name]["mixed"] = self.models.to_json(name, comparison)
            if self.forests:
                metrics[name]["forests"] = self.forests.to_json(name)
        return metrics

    def show(self) -> None:
        """Print each metric, with tables and suspects."""
        for name, comparison in self.comparisons.items():
            if not self.models and too_few(comparison) and mixed_judges(self.releases[name]):
                print_note(f"{name}: not compared: {comparison}; --mixed takes fewer")
            else:
                _show(name, comparison, self.alpha)
            if self.models:
                self.models.show(name, comparison)
            if self.forests:
                self.forests.show(name)
            if self.finder and isinstance(comparison, ReleaseComparison) and comparison.changed:
                self.finder.show(comparison.costs.changes)


_RESPONSE_TIMES: tuple[Column[SlowerType], ...] = (
    Column("response times of", lambda row: spelt(row.type)),
    Column("Cliff's delta", "delta", "+.2f"),
    Column("p", form=".2g"),
    Column("slower", lambda row: "yes" if row.slower else ""),
)


def _to_json(
    comparisons: Mapping[str, ReleaseComparison | NotCompared], alpha: float, finder: Finder | None
) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for name, comparison in comparisons.items():
        if isinstance(comparison, NotCompared):
            result[name] = {"compared": False, "why": str(comparison)}
            continue
        result[name] = {
            "compared": True,
            "slower": comparison.slower,
            "changed": comparison.changed,
            "p": comparison.p,
            "r_squared": comparison.costs.r_squared,
            "unseen_load": comparison.unseen,
            "new_types": _alone(comparison.compared),
            "warm_up": comparison.costs.warm_up,
            "periods": [len(comparison.compared.old), len(comparison.compared.new)],
            "changes": [
                _change_json(change, finder) for change in comparison.costs.changes if comparison.changed
            ],
            "costs": {spelt(type_): cost for type_, cost in comparison.costs.old.items() if type_ != EVERY},
            f"periods_for_{RISE:.0%}": {
                type_: periods_needed(comparison.costs, len(comparison.compared.new), type_, RISE, alpha)
                for type_ in comparison.costs.old
                if type_ not in (BASE, EVERY)
            },
        }
    return result


def _change_json(change: CostChange, finder: Finder | None) -> dict[str, Any]:
    return {
        "type": spelt(change.type),
        "change": change.change,
        "error": change.error,
        "share": change.share,
        "share_error": change.share_error,
        "p": change.p,
        "likely": {spelt(type_): chance for type_, chance in change.likely.items()},
        **(finder.to_json(change) if finder else {}),
    }


def _show(name: str, result: ReleaseComparison | NotCompared, alpha: float) -> None:
    if isinstance(result, NotCompared):
        print_note(f"{name}: not compared: {result}")
        return
    old, new, costs = len(result.compared.old), len(result.compared.new), result.costs
    verdict = "slower" if result.slower else "changed" if result.changed else "no change"
    periods = f"{old} periods of the old release, {new} of the new"
    print_lines([f"{name}: {verdict}, p {result.p:.2g}; {periods}; costs explain {costs.r_squared:.0%}"])
    if result.unseen:
        print_note(
            f"{result.unseen:.0%} of the new periods have load that the old release never saw: left out"
        )
    if alone := _alone(result.compared):
        print_note(
            f"{alone:.1%} of the new release's requests are of types that the old one never had: not compared"
        )
    if costs.warm_up:
        print_note(
            f"as the new release began, {costs.warm_up:+.1%} of {name}: faded, and no cost of requests"
        )
    if result.changed:
        print_table(_change_columns(costs.old), costs.changes)
    _show_costs(result, alpha)


def _alone(releases: Releases) -> float:
    """Return the share of the new release's requests whose types the old release never had."""
    never = ~(releases.old.counts > 0.0).any(axis=0)
    return float(releases.new.counts[:, never].sum() / releases.new.counts.sum())


def _change_columns(old: Mapping[str, float]) -> tuple[Column[CostChange], ...]:
    def cost(change: CostChange) -> str:
        before = old[change.type]
        relative = f" ({change.change / before:+.1%})" if before > 3.0 * change.error else ""
        return f"{change.change:+.3g}{relative}"

    return (
        Column("request", lambda row: spelt(row.type)),
        Column("of the metric", lambda row: f"{row.share:+.2%} ± {1.96 * row.share_error:.2%}", str),
        Column("cost", cost, str),
        Column("p", form=".2g"),
        Column("or", _alternatives),
    )


def _alternatives(change: CostChange) -> str:
    types = [f"{spelt(name)} {chance:.0%}" for name, chance in change.likely.items() if name != change.type]
    return ", ".join(types[:3]) + (f" and {len(types) - 3} more" if len(types) > 3 else "")


def _show_costs(comparison: ReleaseComparison, alpha: float) -> None:
    """Print the types with the largest parts of the new metric, and the periods that a rise needs."""
    new, costs = comparison.compared.new, comparison.costs
    load = dict(zip(comparison.compared.types, new.counts.mean(axis=0), strict=True))
    level = float(new.metric.mean())
    columns: tuple[Column[str], ...] = (
        Column("request", spelt),
        Column("in a period", load.__getitem__, ",.1f"),
        Column(
            "of the metric", lambda name: costs.old[name] * load[name] / level if level else math.nan, ".1%"
        ),
        Column(
            f"periods for {RISE:.0%} more",
            lambda name: periods_needed(costs, len(new), name, RISE, alpha) or None,
            ",d",
        ),
    )
    print_table(columns, sorted(load, key=lambda name: -costs.old[name] * load[name])[:_SHOWN])
