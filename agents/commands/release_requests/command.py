"""``smidgen release requests``: which requests cost more in a new release, from counts and a metric alone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
import orjson
from rich.box import SIMPLE
from rich.table import Column, Table
from rich.text import Text

from agents.commands.release_requests.forests import Forests
from agents.commands.release_requests.mixed_models import MixedModels, shown_type, too_few
from agents.commands.release_requests.suspects import Finder, SourceRequest
from agents.commands.release_requests.tables import RequestTable, build_releases, slower_types
from pipeline.analysis.published.liao2021.baseline import SlowerType
from pipeline.backtest.seriesfile import read_series
from pipeline.commands.request import argument, json_option, option, takes
from pipeline.commands.terminal import escape_controls, print_note, table_console
from pipeline.releases.requests import (
    BASE,
    EVERY,
    CompareConfig,
    CostChange,
    NotCompared,
    ReleaseComparison,
    Releases,
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
        metavar="FILE",
        help="Series of the metrics, such as CPU over time, in any format that `smidgen detect` reads.",
    ),
    names: tuple[str, ...] = option(
        flag="--metric",
        metavar="NAME",
        help="Which series are metrics (default: all of --metrics). May be repeated.",
    ),
    alpha: float = option(
        CompareConfig().alpha, above=0, most=0.5, help="Chance that equal releases count as different."
    ),
    seed: int = option(0, least=0, help="Of the bootstrap."),
    baseline: bool = option(
        help="Beside it, which types take longer to answer, by Mann and Whitney's test and Cliff's delta."
    ),
    mixed: bool = option(
        help="Beside it, a mixed linear model, which decides where there are too few periods for costs."
    ),
    forest: bool = option(
        help="Beside it, random forests of both releases and what their errors come with (Liao et al.); "
        "up to a "
        "minute for each metric."
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
    config = CompareConfig(alpha, seed)
    models = MixedModels.of(releases, config) if mixed else None
    forests = Forests.of(releases, alpha, seed) if forest else None
    compared = _Compared(
        releases, compare_releases(releases, config), models, forests, alpha, source.finder()
    )
    if as_json:
        beside = {"response_times": [asdict(type_) for type_ in slower]} if baseline else {}
        result = {"state": compared.state, "metrics": compared.to_json(), **beside}
        click.echo(orjson.dumps(result).decode())
    else:
        compared.show()
        if baseline:
            table_console().print(_response_times(slower))
    return EXIT_CODES[compared.state]


@dataclass(frozen=True, slots=True)
class _Compared:
    """Comparison of two releases by every metric; by ``models`` and ``forests``, too, if requested."""

    releases: Mapping[str, Releases]
    found: Mapping[str, ReleaseComparison | NotCompared]
    models: MixedModels | None
    forests: Forests | None
    alpha: float
    finder: Finder | None

    @property
    def state(self) -> str:
        """One of EXIT_CODES."""
        slower = [self._slower(name) for name in self.found]
        if any(slower):
            return "slower"
        return "open" if all(verdict is None for verdict in slower) else "steady"

    def _slower(self, name: str) -> bool | None:
        """Return whether a metric says that the new release costs more; None if nothing can be said."""
        comparison = self.found[name]
        if isinstance(comparison, ReleaseComparison):
            return comparison.slower
        return self.models.slower(name) if self.models and too_few(comparison) else None

    def to_json(self) -> dict[str, Any]:
        """Return each metric by its name."""
        metrics = _to_json(self.found, self.alpha, self.finder)
        for name, comparison in self.found.items():
            if self.models:
                metrics[name]["mixed"] = self.models.to_json(name, comparison)
            if self.forests:
                metrics[name]["forests"] = self.forests.to_json(name)
        return metrics

    def show(self) -> None:
        """Print each metric, with tables and suspects."""
        for name, comparison in self.found.items():
            if not self.models and too_few(comparison) and mixed_judges(self.releases[name]):
                print_note(f"{escape_controls(name)}: not compared: {comparison}; --mixed takes fewer")
            else:
                _show(name, comparison, self.alpha)
            if self.models:
                self.models.show(name, comparison)
            if self.forests:
                self.forests.show(name)
            if self.finder and isinstance(comparison, ReleaseComparison) and comparison.changed:
                self.finder.show(comparison.costs.changes)


def _response_times(rows: Sequence[SlowerType]) -> Table:
    table = Table(
        "response times of",
        Column("Cliff's delta", justify="right"),
        Column("p", justify="right"),
        "slower",
        box=SIMPLE,
    )
    for row in rows[:_SHOWN]:
        table.add_row(
            Text(shown_type(row.type)), f"{row.delta:+.2f}", f"{row.p:.2g}", "yes" if row.slower else ""
        )
    return table


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
    name = escape_controls(name)
    if isinstance(result, NotCompared):
        print_note(f"{name}: not compared: {result}")
        return
    old, new = len(result.compared.old), len(result.compared.new)
    verdict = "slower" if result.slower else "changed" if result.changed else "no change"
    click.echo(
        f"{name}: {verdict}, p {result.p:.2g}; {old} periods of the old release, {new} of the new; "
        f"costs explain {result.costs.r_squared:.0%}"
    )
    if result.unseen:
        print_note(
            f"{result.unseen:.0%} of the new periods have load that the old release never saw: left out"
        )
    if alone := _alone(result.compared):
        print_note(
            f"{alone:.1%} of the new release's requests are of types that the old one never had: not compared"
        )
    if result.costs.warm_up:
        print_note(
            f"as the new release began, {result.costs.warm_up:+.1%} of {name}: faded, and no cost of requests"
        )
    if result.changed:
        table_console().print(_changes(result.costs.changes, result.costs.old))
    table_console().print(_costs(result, alpha))


def _alone(releases: Releases) -> float:
    """Return the share of the new release's requests whose types the old release never had."""
    never = ~(releases.old.counts > 0.0).any(axis=0)
    return float(releases.new.counts[:, never].sum() / releases.new.counts.sum())


def _changes(changes: Sequence[CostChange], old: dict[str, float]) -> Table:
    table = Table(
        "request",
        Column("of the metric", justify="right"),
        Column("cost", justify="right"),
        Column("p", justify="right"),
        "or",
        box=SIMPLE,
    )
    for change in changes:
        alternatives = [
            f"{shown_type(type_)} {chance:.0%}"
            for type_, chance in change.likely.items()
            if type_ != change.type
        ]
        before = old[change.type]
        relative = f" ({change.change / before:+.1%})" if before > 3.0 * change.error else ""
        table.add_row(
            Text(shown_type(change.type)),
            f"{change.share:+.2%} ± {1.96 * change.share_error:.2%}",
            f"{change.change:+.3g}{relative}",
            f"{change.p:.2g}",
            Text(
                ", ".join(alternatives[:3])
                + (f" and {len(alternatives) - 3} more" if len(alternatives) > 3 else "")
            ),
        )
    return table


def _costs(comparison: ReleaseComparison, alpha: float) -> Table:
    """Return the types with the largest parts of the new metric, and the periods that a rise needs."""
    load = dict(zip(comparison.compared.types, comparison.compared.new.counts.mean(axis=0), strict=True))
    level = float(comparison.compared.new.metric.mean())
    heavy = sorted(load, key=lambda type_: -comparison.costs.old[type_] * load[type_])[:_SHOWN]
    table = Table(
        "request",
        Column("in a period", justify="right"),
        Column("of the metric", justify="right"),
        Column(f"periods for {RISE:.0%} more", justify="right"),
        box=SIMPLE,
    )
    for type_ in heavy:
        needed = periods_needed(comparison.costs, len(comparison.compared.new), type_, RISE, alpha)
        share = comparison.costs.old[type_] * load[type_] / level if level else math.nan
        row = (f"{load[type_]:,.1f}", f"{share:.1%}", f"{needed:,}" if needed else "–")
        table.add_row(Text(shown_type(type_)), *row)
    return table
