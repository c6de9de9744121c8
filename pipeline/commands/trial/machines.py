"""``smidgen trial machines`` and ``smidgen trial match``: machines that resemble each other, and pairs."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

from pipeline.backtest.seriesfile.content import read_content
from pipeline.backtest.tables import Columns, parse_table
from pipeline.commands.request import argument, json_option, option, takes
from pipeline.commands.tables import Column, print_json, print_table
from pipeline.commands.terminal import escape_controls, print_lines, print_note
from pipeline.commands.trial.options import Pair
from pipeline.experiments.trials.machine_spread import Level, spread_of_levels, spreads
from pipeline.experiments.trials.machines import (
    MOST_FACTORS,
    Explained,
    Results,
    choose_factors,
    match_machines,
)
from pipeline.files.listing import listed
from pipeline.model import FloatArray, IntArray
from pipeline.model.errors import ConfigError

VALUE, METRIC, MACHINE = "value", "metric", "machine"

MOST_LEVELS = 4000
"""Most levels of all factors together; more would take minutes and gigabytes."""

_EXAMPLES = """\b
Examples:
  smidgen trial machines results.csv
  smidgen trial machines results.csv --metric cpu --factor type,arch,kernel --json
"""
_MATCH_EXAMPLES = """\b
Examples:
  smidgen trial match machines.csv --factor type,arch,kernel --pairs 20
  smidgen trial match machines.csv --factor type,arch --avoid kernel=5.6 --json
"""


class _Names(click.ParamType):
    """Names, comma-separated."""

    name = "NAME,…"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...]:
        """Split the names."""
        if isinstance(value, tuple):
            return value
        names = tuple(dict.fromkeys(name.strip() for name in str(value).split(",")))
        if "" in names:
            self.fail(f"{value!r}: holds an empty name", param, ctx)
        return names


@click.command(name="machines", epilog=_EXAMPLES)
@takes
def machines(
    path: Path = argument(metavar="FILE"),
    metric: str | None = option(
        metavar="NAME", help="Metric whose results are used, where the file has several."
    ),
    factors: tuple[str, ...] = option(
        (),
        flag="--factor",
        kind=_Names(),
        multiple=False,
        help="Columns that are factors (default: all but value, metric and machine).",
    ),
    tolerance: float = option(
        0.02,
        least=0,
        most=1,
        help="Share of the variance that the chosen factors may leave unexplained, beside all factors.",
    ),
    ratio: float = option(
        1.5,
        least=1,
        help="Spread, as a multiple of the other machines' spread, above which machines are to be avoided.",
    ),
    as_json: bool = json_option(),
) -> None:
    """Say which factors of machines explain how results differ, and which machines to avoid.

    FILE is CSV or Parquet with a column value and one for each factor: type, architecture, kernel, turbo,
    region, …; a row a result. A column metric names the metric of each, a column machine shows how one
    machine's results spread.

    Factors are compared by analysis of variance. The fewest that explain nearly as much as all are those by
    which machines of an experiment should match. Exit code: 0, or 2 on bad usage or a bad file.
    """
    columns, names = _read(path, factors, (VALUE, METRIC, MACHINE))
    if len(names) > MOST_FACTORS:
        raise ConfigError(f"{path}: {len(names)} factors, more than {MOST_FACTORS}; choose with --factor")
    rows = _rows_of(columns, metric)
    values = columns.numbers(VALUE)[rows]
    if not (len(values) and (values > 0).all()):
        raise ConfigError(f"{columns.path}: values should be more than 0: costs, times and rates are")
    results = Results(values, names, *_coded(columns, names, rows))
    chosen, upper = choose_factors(results, tolerance)
    levels = spread_of_levels(results, chosen.factors, ratio=ratio)
    like = _quantiles(spreads(values, results.cells(chosen.factors)))
    same = (
        _quantiles(spreads(values, columns.texts(MACHINE).codes[rows])) if MACHINE in columns.names else None
    )
    if as_json:
        print_json(_to_json(chosen, upper, levels, like, same))
    else:
        _show(chosen, upper, levels, like, same)


@click.command(name="match", epilog=_MATCH_EXAMPLES)
@takes
def match(
    path: Path = argument(metavar="FILE"),
    factors: tuple[str, ...] = option(
        flag="--factor",
        kind=_Names(),
        multiple=False,
        required=True,
        help="Columns in which machines must match.",
    ),
    avoided: tuple[tuple[str, str], ...] = option(
        flag="--avoid", kind=Pair("FACTOR=LEVEL"), help="Level whose machines are left out."
    ),
    pairs: int = option(1, least=1, help="Number of pairs."),
    seed: int | None = option(least=0, help="Seed of the draw: the same seed draws the same pairs."),
    as_json: bool = json_option("a pair"),
) -> int:
    """Draw pairs of machines for trials: they match in the factors, sides are drawn by chance.

    FILE is CSV or Parquet with a column machine and one for each factor; a row a machine. Exit code: 0, 1 if
    there are fewer pairs than asked for, 2 on bad usage or a bad file.
    """
    wanted = tuple(dict.fromkeys((*factors, *(factor for factor, _ in avoided))))
    columns, names = _read(path, wanted, (MACHINE,))
    machine = columns.texts(MACHINE)
    _check_once(columns, machine.codes)
    mask = np.ones(len(machine.codes), bool)
    for factor, level in avoided:
        texts = columns.labels(factor)
        if level not in texts.values:
            raise ConfigError(
                f"--avoid {factor}={level}: no such level; there are {listed(texts.values, level)}"
            )
        mask &= texts.codes != texts.values.index(level)
    rows = np.flatnonzero(mask)
    codes, levels = _coded(columns, names, rows)
    cells = Results(np.ones(len(rows)), names, codes, levels).cells(factors)
    matched = match_machines(cells, pairs, np.random.default_rng(seed))
    for a, b in rows[matched].tolist():
        sides = {"a": machine.values[machine.codes[a]], "b": machine.values[machine.codes[b]]}
        if as_json:
            print_json(sides)
        else:
            click.echo("\t".join(map(escape_controls, sides.values())))
    if len(matched) < pairs:
        print_note(f"only {len(matched)} pairs of {len(rows)} machines match in {listed(factors)}")
    return 0 if len(matched) == pairs else 1


Quantiles = tuple[float, float] | None
"""P50 and P99 of the spread of groups; None if no group has two results."""


def _read(path: Path, factors: tuple[str, ...], others: Sequence[str]) -> tuple[Columns, tuple[str, ...]]:
    """Return a file's columns, and the names of its factors: texts, whatever they look like."""
    content = read_content(path)
    name = Path(content.name)
    if not factors:
        columns = parse_table(io.BytesIO(content.data), name).names
        factors = tuple(column for column in columns if column not in others)
        if not factors:
            raise ConfigError(f"{name}: no column is a factor; it has {listed(columns)}")
    return parse_table(io.BytesIO(content.data), name, (*factors, METRIC, MACHINE)), factors


def _rows_of(columns: Columns, metric: str | None) -> IntArray:
    """Return the rows of a metric, or of the only one."""
    if METRIC not in columns.names:
        if metric:
            raise ConfigError(f"--metric {metric}: {columns.path} has no column metric")
        return np.arange(columns.table.num_rows)
    texts = columns.texts(METRIC)
    if metric is None and len(texts.values) > 1:
        raise ConfigError(f"{columns.path}: several metrics: choose with --metric: {listed(texts.values)}")
    wanted = metric or next(iter(texts.values), "")
    if wanted not in texts.values:
        raise ConfigError(f"--metric {wanted}: {columns.path} has {listed(texts.values, wanted)}")
    return np.flatnonzero(texts.codes == texts.values.index(wanted))


def _coded(
    columns: Columns, factors: tuple[str, ...], rows: IntArray
) -> tuple[IntArray, tuple[tuple[str, ...], ...]]:
    """Return the levels of rows as numbers, and their names; a missing level counts as one, too."""
    texts = [columns.labels(name) for name in factors]
    total = sum(len(text.values) for text in texts)
    if total > MOST_LEVELS:
        most = max(zip(texts, factors, strict=True), key=lambda text: len(text[0].values))
        raise ConfigError(
            f"{columns.path}: factors have {total:,} levels, more than {MOST_LEVELS:,}; "
            f"{most[1]} has {len(most[0].values):,}"
        )
    return np.stack([text.codes[rows] for text in texts], axis=1), tuple(text.values for text in texts)


def _check_once(columns: Columns, codes: IntArray) -> None:
    _, first = np.unique(codes, return_index=True)
    if len(first) < len(codes):
        columns.refuse(int(np.setdiff1d(np.arange(len(codes)), first)[0]), MACHINE, "stands twice")


def _quantiles(spreads: FloatArray) -> Quantiles:
    return (float(np.median(spreads)), float(np.quantile(spreads, 0.99))) if len(spreads) else None


def _written(quantiles: Quantiles) -> str:
    return (
        f"{quantiles[0]:.1%} in the median, {quantiles[1]:.1%} at P99"
        if quantiles
        else "no two results to compare"
    )


_COLUMNS: tuple[Column[Level], ...] = (
    Column("factor"),
    Column("level"),
    Column("results", form=",d"),
    Column("spread", form=".1%"),
    Column("of matching", "matched", ".1%"),
    Column("", lambda level: "avoid" if level.avoid else ""),
)


def _show(chosen: Explained, upper: Explained, levels: list[Level], like: Quantiles, same: Quantiles) -> None:
    names = ", ".join(chosen.factors)
    match = f"machines should match in {names}, which explain {chosen.share:.1%} of the variance"
    print_lines(
        (
            match if names else "no factor explains how results differ: any machines match",
            f"all factors explain {upper.share:.1%}",
            f"spread among machines that match: {_written(like)}",
            *([f"spread of one machine: {_written(same)}"] if same else ()),
        )
    )
    factors = upper.factors
    print_table(_COLUMNS, sorted(levels, key=lambda level: (factors.index(level.factor), -level.spread)))


def _to_json(
    chosen: Explained, upper: Explained, levels: list[Level], like: Quantiles, same: Quantiles
) -> dict[str, Any]:
    """Return the whole result as one object; an unknown figure is null."""
    return {
        "factors": chosen.factors,
        "explained": chosen.share,
        "explained_by_all": upper.share,
        "spread_of_matching": like,
        "spread_of_one_machine": same,
        "levels": [
            {name: _known(getattr(level, name)) for name in Level.__dataclass_fields__} for level in levels
        ],
    }


def _known(figure: Any) -> Any:
    return None if isinstance(figure, float) and not np.isfinite(figure) else figure
