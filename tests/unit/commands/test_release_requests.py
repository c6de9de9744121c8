"""``smidgen release requests``: tables in, a verdict and an exit code out."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import orjson
import pytest
from click.testing import CliRunner, Result

from pipeline.cli import run, smidgen

TYPES = ("GET /cart", "POST /buy")
TIMED = (*TYPES, "GET /a", "GET /b")
BEGAN = 1_760_000_000


def write(path: Path, header: tuple[str, ...], rows: list[tuple[float | str, ...]]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)


def tables(folder: Path, rise: float) -> None:
    """Two releases of 150 periods of 30 s, and a CPU of which each period has two points."""
    rng = np.random.default_rng(1)
    points: list[tuple[float | str, ...]] = []
    for name, start, cost in (("old", BEGAN, 0.01), ("new", BEGAN + 86_400, 0.01 * (1.0 + rise))):
        counts = rng.poisson(rng.lognormal(3.0, 0.4, (150, 2)))
        times = start + 30 * np.arange(150)
        write(
            folder / f"{name}.csv",
            ("time", *TYPES),
            [(int(time), *map(int, row)) for time, row in zip(times, counts, strict=True)],
        )
        cpu = 0.1 + counts @ [cost, 0.02] + 0.01 * rng.standard_normal(150)
        points += [
            (int(time) + after, value) for time, value in zip(times, cpu, strict=True) for after in (5, 20)
        ]
    write(folder / "cpu.csv", ("time", "cpu"), points)


def requests(folder: Path, *arguments: str) -> Result:
    files = [str(folder / "old.csv"), str(folder / "new.csv")]
    return CliRunner().invoke(smidgen, ["release", "requests", *files, *arguments], standalone_mode=False)


def test_the_request_that_costs_more_is_named(tmp_path: Path) -> None:
    tables(tmp_path, 0.2)
    result = requests(tmp_path, "--metrics", str(tmp_path / "cpu.csv"), "--json")
    assert result.return_value == 1, result.output
    found = orjson.loads(result.output)
    cpu = found["metrics"]["cpu"]
    (change,) = cpu["changes"]
    assert (found["state"], cpu["slower"], change["type"]) == ("slower", True, "GET /cart")
    assert change["change"] == pytest.approx(0.002, abs=4 * change["error"])
    assert cpu["costs"]["POST /buy"] == pytest.approx(0.02, rel=0.1)
    assert cpu["periods_for_2%"]["POST /buy"] >= 20
    shown = requests(tmp_path, "--metrics", str(tmp_path / "cpu.csv"))
    assert "cpu: slower, p 0.001" in shown.output
    assert "GET /cart" in shown.output


def test_types_that_only_the_new_release_has_are_said(tmp_path: Path) -> None:
    tables(tmp_path, 0.0)
    (header, *rows) = csv.reader((tmp_path / "new.csv").open())
    write(tmp_path / "new.csv", (*header, "GET /new"), [(*row, row[1]) for row in rows])
    arguments = ["--metrics", str(tmp_path / "cpu.csv")]
    found = orjson.loads(requests(tmp_path, *arguments, "--json").stdout)["metrics"]["cpu"]
    assert found["new_types"] == pytest.approx(1 / 3, abs=0.02)
    assert "of types that the old one never had: not compared" in requests(tmp_path, *arguments).stderr


def test_a_negative_count_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tables(tmp_path, 0.0)
    (header, *rows) = csv.reader((tmp_path / "new.csv").open())
    write(tmp_path / "new.csv", (*header,), [*map(tuple, rows), (BEGAN + 200_000, -1, 3)])
    files = [str(tmp_path / f"{name}.csv") for name in ("old", "new", "cpu")]
    assert run(["release", "requests", *files[:2], "--metrics", files[2]]) == 2
    assert "GET /cart: has a count that is negative" in capsys.readouterr().err


def test_a_metric_of_longer_periods_is_compared_by_those(tmp_path: Path) -> None:
    tables(tmp_path, 0.5)
    (_, *points) = csv.reader((tmp_path / "cpu.csv").open())
    four = [points[row : row + 4] for row in range(0, len(points), 4)]
    means: list[tuple[float | str, ...]] = [
        (int(each[0][0]), sum(float(value) for _, value in each) / 4) for each in four
    ]
    write(tmp_path / "cpu.csv", ("time", "cpu"), means)
    result = requests(tmp_path, "--metrics", str(tmp_path / "cpu.csv"), "--json")
    assert result.stderr.count("cpu has a point each 60 s: 2 periods are one") == 2
    cpu = orjson.loads(result.stdout)["metrics"]["cpu"]
    assert cpu["periods"][0] == 75
    assert [change["type"] for change in cpu["changes"]] == ["GET /cart"]
    assert cpu["costs"]["POST /buy"] == pytest.approx(0.02, rel=0.1)


def with_times(folder: Path, slower: int) -> None:
    """Make both types always come together, and one of them slower; periods without requests have no time."""
    rng = np.random.default_rng(2)
    for name, shift in (("old", 0.0), ("new", 0.3)):
        rows = list(csv.reader((folder / f"{name}.csv").open()))[1:]
        seconds = np.exp(rng.normal(-2.0, 0.1, (len(rows), 4)) + shift * (np.arange(4) == slower))
        write(
            folder / f"{name}.csv",
            ("time", *TYPES, "GET /a", "GET /b", *(f"response_time{{{type_}}}" for type_ in TIMED)),
            [
                (*map(int, (*row, row[1], row[1])), *("" if period == 3 else value for value in each))
                for period, (row, each) in enumerate(zip(rows, seconds.tolist(), strict=True))
            ],
        )


@pytest.mark.parametrize("slower", [0, 2, 3])
def test_response_times_say_which_of_several_it_is(tmp_path: Path, slower: int) -> None:
    tables(tmp_path, 0.2)
    with_times(tmp_path, slower)
    result = requests(tmp_path, "--metrics", str(tmp_path / "cpu.csv"), "--json")
    cpu = orjson.loads(result.output)["metrics"]["cpu"]
    assert cpu["changes"][0]["type"] == TIMED[slower]
    assert not [name for name in cpu["costs"] if "response_time" in name]


def test_response_times_alone_are_the_baseline_beside_it(tmp_path: Path) -> None:
    tables(tmp_path, 0.0)
    with_times(tmp_path, 2)
    arguments = ("--metrics", str(tmp_path / "cpu.csv"), "--baseline")
    first, *others = orjson.loads(requests(tmp_path, *arguments, "--json").output)["response_times"]
    assert (first["type"], first["slower"], first["delta"] > 0.9) == ("GET /a", True, True)
    assert not any(each["slower"] for each in others)
    shown = requests(tmp_path, *arguments)
    assert shown.return_value == 0  # a verdict is by costs alone
    assert "Cliff's delta" in shown.output


def test_the_baseline_needs_response_times(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tables(tmp_path, 0.0)
    files = [str(tmp_path / "old.csv"), str(tmp_path / "new.csv")]
    assert run(["release", "requests", *files, "--metrics", str(tmp_path / "cpu.csv"), "--baseline"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "old.csv: has no response times" in line


def test_equal_releases_are_steady(tmp_path: Path) -> None:
    tables(tmp_path, 0.0)
    result = requests(tmp_path, "--metrics", str(tmp_path / "cpu.csv"))
    assert result.return_value == 0
    assert "cpu: no change" in result.output


def test_a_metric_may_be_a_column_of_the_tables(tmp_path: Path) -> None:
    tables(tmp_path, 0.0)
    result = requests(tmp_path, "--metric", "POST /buy", "--json")
    costs = orjson.loads(result.output)["metrics"]["POST /buy"]["costs"]
    assert list(costs) == ["(without requests)", "GET /cart"]


def test_what_cannot_be_compared_is_open(tmp_path: Path) -> None:
    tables(tmp_path, 0.0)
    rows = (tmp_path / "new.csv").read_text().splitlines()
    (tmp_path / "new.csv").write_text("\n".join(rows[:10]))
    result = requests(tmp_path, "--metrics", str(tmp_path / "cpu.csv"))
    assert result.return_value == 3
    assert "the new release has 9 periods, fewer than 20" in result.output + result.stderr


@pytest.mark.parametrize(
    ("arguments", "content", "problem"),
    [
        ([], None, "say what the metric is"),
        (["--metric", "memory"], None, "no series 'memory'; there are GET /cart, POST /buy"),
        (["--metric", "GET /cart", "--metric", "POST /buy"], None, "has no type of request"),
        (["--metrics", "none.csv"], None, "none.csv: No such file"),
        (["--metric", "GET /cart"], "time,GET /cart\n1760000000,1\n", "has 1 period, and two at least"),
        (["--metric", "GET /cart"], "GET /cart\n1\n2\n", "has no column of times"),
        (["--metric", "GET /cart"], "time,GET /cart\nx,1\n", "not an ISO 8601 time: 'x'"),
    ],
)
def test_mistakes_are_one_line(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    content: str | None,
    problem: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    tables(tmp_path, 0.0)
    if content is not None:
        (tmp_path / "old.csv").write_text(content)
    assert run(["release", "requests", "old.csv", "new.csv", *arguments]) == 2
    error = capsys.readouterr().err.splitlines()
    assert problem in error[-1]
