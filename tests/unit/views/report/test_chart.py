"""What ``smidgen why`` draws: the series with its windows, and what the filters see in it."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest

from pipeline.analysis.filters.went_away import Pattern, WentAway
from pipeline.analysis.filters.went_away_terms import PredicateTerm
from pipeline.backtest.dataset import write_dataset
from pipeline.cli import run
from pipeline.messages.ledger import dropped_entries, entry_to_json
from pipeline.model import FloatArray
from pipeline.views.report.chart import describe_study, draw_chart
from pipeline.views.report.study import Study
from pipeline.views.report.windows import DrawnSeries, ScanWindows
from tests.support.fleets import BASE, SLOWER, START, as_dataset, record
from tests.unit.commands.explained import DROPPED, SCAN

WINDOWS = ScanWindows(1.0, START, START + 30, START + 45, START + 50)


def chart(values: FloatArray, width: int = 100, **given: Any) -> list[str]:
    line = DrawnSeries(START + np.arange(len(values), dtype=np.float64), values, ratio=True)
    levels = {"change_time": START + 38, "before": 0.1, "after": 0.2, **given}
    return draw_chart(line, WINDOWS, width=width, **levels)


def test_a_chart_shows_levels_windows_and_the_change_point() -> None:
    rows = chart(np.where(np.arange(50) < 38, 0.1, 0.2))
    high = next(row for row in rows if "•" in row)
    low = [row for row in rows if "•" in row][-1]
    assert rows.index(high) < rows.index(low)
    assert high.rindex("•") > high.index("│") > low.index("•")
    pointer, names = rows[-2:]
    assert pointer.endswith("▲ 2023-11-14 22:13:58 UTC")
    assert pointer.index("▲") == rows[5].index("│")
    assert re.findall(r"\w+ \d+s", names) == ["history 30s", "analysis 15s", "extended 5s"]
    assert rows[0].split()[0] == "20.5"


def test_a_chart_goes_on_as_far_as_there_is_data() -> None:
    values = np.full(70, 0.1)
    values[60:] = np.nan
    assert "later" in chart(values)[-1]
    assert "later" not in chart(values[:50])[-1]


@pytest.mark.parametrize("width", [20, 60, 100, 200])
@pytest.mark.parametrize("windows", [1, 50, 80])
def test_a_chart_fits_any_width(width: int, windows: int) -> None:
    rows = chart(np.full(windows, 0.1), width, change_time=START + 44)
    assert max(map(len, rows[:-2])) <= max(width, 40)
    assert sum("▲" in row for row in rows) == 1


def test_a_chart_of_nothing_says_so() -> None:
    assert chart(np.full(50, np.nan)) == ["no data"]


def test_a_constant_series_has_a_chart() -> None:
    assert sum(row.count("•") for row in chart(np.zeros(50), before=0.0, after=0.0)) > 40


# What the filters see, below the chart


def seen(before: str, after: str, *, block: int = 1, width: float = 0.01) -> Study:
    begins = tuple(range(0, (len(before) + len(after)) * block, block))
    pattern = Pattern(block, 0, len(before) * block, begins, before, after, "bc", 0.1, width)
    term = PredicateTerm(True, 1.0, 0.5)
    return Study(WentAway(0.1, 0.1, pattern, term, term, term, term, None), None, None, (), 0.0123)


def test_sax_sax_letters_trend_and_season_are_reported() -> None:
    assert describe_study(seen("bcb-", "hhh", block=6), ratio=True) == [
        "SAX      bcb- ▲ hhh",
        "         a SAX letter: 6 windows; a: lowest of 20 buckets; valid before: bc",
        "trend    +1.23 points from the change to the end of the scan (Theil-Sen)",
        "season   none found",
    ]
    falling = describe_study(seen("a", "b", width=-0.01), ratio=False)
    assert "a: highest of 20 buckets" in falling[1]
    assert falling[2].startswith("trend    +0.0123 from")


def test_what_is_not_known_is_not_reported() -> None:
    assert describe_study(Study(None, None, None, (), None), ratio=True) == ["season   none found"]


@pytest.mark.parametrize("width", [20, 40, 80, 140])
@pytest.mark.parametrize(("before", "after"), [(3, 3), (3, 900), (900, 3), (900, 900), (0, 0)])
def test_sax_sax_letters_fit_and_those_next_to_the_change_stay(width: int, before: int, after: int) -> None:
    row = describe_study(seen("d" * before, "h" * after), ratio=True, width=width)[0]
    assert len(row) <= max(width, 40)
    left, right = row.removeprefix("SAX      ").split(" ▲ ")
    assert (left[-2:], right[:2], right[-2:]) == ("d" * min(before, 2), *2 * ["h" * min(after, 2)])
    assert ("…" in left, "…" in right) == (before == 900, after == 900)


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A candidate's ledger, its data, and data of the day after: what asks for its story."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    data = as_dataset(record("shop", [(60, BASE), (40, SLOWER)]))
    write_dataset(data, tmp_path / "data")
    write_dataset(replace(data, start=data.start + 86_400, end=data.end + 86_400), tmp_path / "later")
    (entry,) = dropped_entries(SCAN)
    (tmp_path / "ledger.jsonl").write_bytes(orjson.dumps(entry_to_json(entry)))
    own = orjson.dumps({**entry_to_json(entry), "workload": "own"})
    (tmp_path / "own.jsonl").write_bytes(own)
    return ["why", DROPPED, "--ledger", "ledger.jsonl"]


NOTES = {
    "data": (["--data", "data"], ""),
    "data, and a page": (["--data", "data", "-o", "y.html"], ""),
    "no data": ([], ""),
    "no data, but a page": (["-o", "y.html"], "series not drawn: name what was backtested with --data"),
    "another day's": (["--data", "later"], "series not drawn: no data in the scan's windows"),
    "another day's, and a page": (
        ["--data", "later", "-o", "y.html"],
        "series not drawn: no data in the scan's windows",
    ),
}


@pytest.mark.parametrize(("flags", "note"), NOTES.values(), ids=NOTES.keys())
def test_why_says_what_it_does_not_draw(
    ledger: list[str], capsys: pytest.CaptureFixture[str], flags: list[str], note: str
) -> None:
    assert run([*ledger, *flags]) == 0
    output = capsys.readouterr()
    assert output.err == (f"{note}\n" if note else "")
    assert ("▲ 2023-11-14 22:14:18 UTC" in output.out) == ("data" in flags)
    assert ("-o OUT.html draws" in output.out) == (flags == ["--data", "data"])
    if "-o" in flags:
        page = Path("y.html").read_text(encoding="utf-8")
        assert ('id="figure-series"' in page) == (not note)
        assert note[1:].replace("'", "&#39;") in page


def test_a_page_of_an_unknown_workload_is_refused_without_data_too(
    ledger: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*ledger[:-1], "own.jsonl", "-o", "y.html"]) == 2
    assert "workload 'own' is not known" in capsys.readouterr().err
    assert not Path("y.html").exists()
