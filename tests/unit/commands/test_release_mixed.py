"""``smidgen release requests --mixed``: what a mixed model says beside costs, and where it decides."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import orjson
import pytest

from tests.unit.commands.test_release_requests import BEGAN, requests, write


def many_types(folder: Path, periods: int, rise: float, types: int = 20, columns: int = 1) -> None:
    """Two releases of a few periods, with a CPU for each column, of which the first costs more."""
    rng = np.random.default_rng(3)
    names = tuple(f"GET /{number}" for number in range(types))
    metrics = ("cpu", *(f"cpu{number}" for number in range(1, columns)))
    for name, more in (("old", 0.0), ("new", rise)):
        counts = rng.poisson(rng.lognormal(3.0, 0.5, (periods, types)))
        noise = 1.0 + 0.01 * rng.standard_normal((periods, columns))
        cpu = (0.5 + counts.sum(axis=1) * 0.01)[:, None] * noise
        cpu[:, 0] += more * 0.01 * counts[:, 0]
        rows = np.column_stack([BEGAN + 30 * np.arange(periods), counts, cpu]).tolist()
        write(folder / f"{name}.csv", ("time", *names, *metrics), [tuple(row) for row in rows])


@pytest.mark.parametrize(
    ("periods", "types", "rise", "code", "decides", "slower"),
    [
        pytest.param(30, 20, 1.0, 1, True, True, id="few periods, costlier"),
        pytest.param(30, 20, 0.0, 0, True, False, id="few periods, equal"),
        pytest.param(30, 20, -0.9, 0, True, False, id="few periods, cheaper"),
        pytest.param(150, 2, 1.0, 1, False, True, id="costs decide"),
        pytest.param(40, 1, 1.0, 1, False, True, id="one type only"),
    ],
)
def test_a_mixed_model_decides_where_costs_cannot(
    tmp_path: Path, periods: int, types: int, rise: float, code: int, decides: bool, slower: bool
) -> None:
    many_types(tmp_path, periods, rise, types)
    result = requests(tmp_path, "--metric", "cpu", "--mixed", "--json")
    assert result.return_value == code, result.output
    found = orjson.loads(result.output)
    cpu, mixed = found["metrics"]["cpu"], found["metrics"]["cpu"]["mixed"]
    assert found["state"] == ("slower" if code else "steady")
    assert (cpu["compared"], mixed["decides"], mixed["slower"]) == (not decides, decides, slower)
    if slower:
        (first,) = [each for each in mixed["changes"] if each["type"] == "GET /0"]
        assert first["change"] == pytest.approx(0.01 * rise, abs=4 * first["error"])
        assert first["chance"] == max(each["chance"] for each in mixed["changes"])


def test_both_methods_stand_in_one_table(tmp_path: Path) -> None:
    many_types(tmp_path, 80, 1.0)
    shown = requests(tmp_path, "--metric", "cpu", "--mixed").output
    (row,) = [line for line in shown.splitlines() if "GET /0 " in line and line.count("±") == 2]
    assert row.rstrip().endswith("100%")
    assert "cpu, mixed model: slower, p 0.001" in shown


@pytest.mark.parametrize(
    ("periods", "types", "names_it"),
    [
        pytest.param(30, 20, True, id="enough for a mixed model"),
        pytest.param(19, 20, False, id="fewer than any method takes"),
        pytest.param(25, 45, False, id="fewer than so many types take"),
    ],
)
def test_too_few_periods_name_the_mixed_model_if_it_judges(
    tmp_path: Path, periods: int, types: int, names_it: bool
) -> None:
    many_types(tmp_path, periods, 1.0, types)
    without = requests(tmp_path, "--metric", "cpu")
    assert without.return_value == 3
    (line,) = without.stderr.splitlines()
    assert ("--mixed" in line) == names_it
    assert requests(tmp_path, "--metric", "cpu", "--mixed").return_value == (1 if names_it else 3)


def test_a_constant_metric_has_no_mixed_model(tmp_path: Path) -> None:
    many_types(tmp_path, 30, 0.0)
    header, *rows = (tmp_path / "new.csv").read_text().splitlines()
    constant = [f"{row.rpartition(',')[0]},1" for row in rows]
    (tmp_path / "new.csv").write_text("\n".join([header, *constant]))
    result = requests(tmp_path, "--metric", "cpu", "--mixed")
    assert result.return_value == 3
    assert [line for line in result.stderr.splitlines() if line] == [
        "smidgen: cpu: not compared: the metric is constant in the new release",
        "smidgen: cpu: no mixed model: the metric is constant in the new release",
    ]


def test_a_mixed_model_does_not_judge_load_that_is_new(tmp_path: Path) -> None:
    many_types(tmp_path, 60, 1.0, 3)
    header, *rows = (tmp_path / "new.csv").read_text().splitlines()
    cells = [row.split(",") for row in rows]
    lines = [",".join([time, f"{float(count) * 9}", *others]) for time, count, *others in cells]
    (tmp_path / "new.csv").write_text("\n".join([header, *lines]))
    result = requests(tmp_path, "--metric", "cpu", "--mixed")
    assert result.return_value == 3
    assert "cpu: not judged by the mixed model either" in result.stderr


def test_of_several_metrics_each_has_a_mixed_model(tmp_path: Path) -> None:
    many_types(tmp_path, 30, 1.0, columns=3)
    arguments = [argument for name in ("cpu", "cpu1", "cpu2") for argument in ("--metric", name)]
    found = orjson.loads(requests(tmp_path, *arguments, "--mixed", "--json").output)["metrics"]
    assert {name: each["mixed"]["slower"] for name, each in found.items()} == {
        "cpu": True,
        "cpu1": False,
        "cpu2": False,
    }
    assert found["cpu"]["mixed"]["p"] == pytest.approx(0.003)  # one of a thousand, of three metrics
