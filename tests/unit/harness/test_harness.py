"""The harness of the benches, by a bench that is one module and one entry of the catalogue."""

from __future__ import annotations

import math
import sys
import types
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import orjson
import pytest
from click.testing import CliRunner

from loadgen.bench.command import OF_THEIR_OWN
from loadgen.harness import (
    Experiment,
    bench,
    mean,
    mean_of,
    measured,
    median,
    ratio_of,
    results_of_workers,
    table,
)
from pipeline.cli import smidgen
from pipeline.commands.request import option
from pipeline.commands.tables import Column


@dataclass(frozen=True, slots=True)
class Request:
    sizes: tuple[int, ...] = option((1, 2), flag="--size")


@dataclass(frozen=True, slots=True)
class Row:
    size: int
    square: float


def squares(size: int) -> Iterator[Row]:
    yield Row(size, float(size**2) if size else math.nan)


@bench(json="one JSON object a size")
def dummy(request: Request) -> Experiment[Row]:
    """Square sizes."""
    columns: tuple[Column[Row], ...] = (Column("size", form="d"), Column("squared", "square", ".1f"))
    return Experiment(
        *measured(request.sizes, squares),
        table(columns, lambda rows: [f"{len(rows)} rows"]),
        passed=lambda row: row.size < 3,
    )


@pytest.fixture(autouse=True)
def catalogue(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("dummy_bench")
    module.dummy = dummy  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "dummy_bench", module)
    monkeypatch.setitem(OF_THEIR_OWN, "dummy", ("dummy_bench", "Squares of sizes."))


def test_a_bench_prints_its_columns_and_a_summary() -> None:
    result = CliRunner().invoke(smidgen, ["bench", "dummy", "--size", "0", "--size", "2"])
    assert result.output == "| size | squared |\n| ---: | ---: |\n| 0 | – |\n| 2 | 4.0 |\n2 rows\n"


def test_a_bench_prints_all_fields_as_json() -> None:
    result = CliRunner().invoke(smidgen, ["bench", "dummy", "--json"])
    assert [orjson.loads(line) for line in result.output.splitlines()] == [
        {"size": 1, "square": 1.0},
        {"size": 2, "square": 4.0},
    ]


@pytest.mark.parametrize(("size", "code"), [("2", 0), ("3", 1)])
def test_the_exit_code_says_whether_all_rows_passed(size: str, code: int) -> None:
    given = ["bench", "dummy", "--size", "1", "--size", size]
    assert CliRunner().invoke(smidgen, given, standalone_mode=False).return_value == code


def test_workers_answer_in_the_order_of_their_tasks() -> None:
    done: list[None] = []
    assert results_of_workers(math.sqrt, [4.0, 1.0, 9.0], 2, lambda: done.append(None)) == [2.0, 1.0, 3.0]
    assert len(done) == 3


def test_statistics_of_nothing_are_no_number() -> None:
    assert all(map(math.isnan, (mean([]), median([]), ratio_of(1, 0))))
    assert mean_of([None]) is None


def test_an_interval_of_a_mean_holds_it_as_often_as_it_says() -> None:
    rng = np.random.default_rng(1)
    means = [mean_of(rng.normal(size=5).tolist()) for _ in range(400)]
    held = [one.low <= 0 <= one.high for one in means if one and one.low is not None and one.high is not None]
    assert np.mean(held) == pytest.approx(0.95, abs=0.03)
