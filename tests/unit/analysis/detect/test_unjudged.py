"""Which series a scan could not judge, and why."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pipeline.analysis.detect.search import SearchConfig, find_change_points
from pipeline.analysis.detect.short_term import WindowIndexes
from pipeline.analysis.detect.unjudged import CODES, Grounds, find_unjudged, merge_unjudged
from pipeline.model import BoolArray, SeriesMatrix, Unjudged
from pipeline.views.report.unjudged import SENTENCES, describe_unjudged
from tests.support.paths import ROOT

WINDOWS = WindowIndexes(240, 264, 276)
CONFIG = SearchConfig(("short_term",), absolute=0.001)


def gcpu(known: BoolArray, total: float = 1000.0) -> SeriesMatrix:
    totals = np.where(known, total, 0.0)
    samples = np.random.default_rng(3).binomial(totals.astype(int), [[0.1], [0.2]]).astype(np.float64)
    return SeriesMatrix(0.0, 60.0, ("subroutine",) * 2, ("a", "b"), samples, totals)


def every(step: int, first: int = 0, last: int = WINDOWS.end) -> BoolArray:
    window = np.arange(WINDOWS.end)
    return np.asarray((window % step == 0) & (window >= first) & (window < last))


@pytest.mark.parametrize(
    ("matrix", "code", "value", "bound"),
    [
        pytest.param(gcpu(every(1)), "", 0.0, 0.0, id="data in all windows"),
        pytest.param(gcpu(every(3)), "", 0.0, 0.0, id="in one of three"),
        pytest.param(gcpu(every(1, first=200)), "no_history", 40 / 240, 0.5 * 40 / 60, id="a young service"),
        pytest.param(gcpu(every(1, last=240)), "windows_empty", 0.0, 3.0, id="silent since"),
        pytest.param(gcpu(every(30)), "windows_empty", 0.0, 3.0, id="in one of thirty"),
        pytest.param(gcpu(every(1), total=0.0), "no_history", 0.0, 0.5, id="no samples"),
    ],
)
def test_codes(matrix: SeriesMatrix, code: str, value: float, bound: float) -> None:
    found = find_change_points(matrix, WINDOWS, CONFIG).unjudged
    if not code:
        assert found == ()
        return
    (one,) = found
    assert (one.code, one.series) == (code, 2)
    assert [one.value, one.bound] == pytest.approx([value, bound])


def test_too_few_samples_for_any_change() -> None:
    matrix = gcpu(every(1), total=1.0)
    lonely = np.zeros_like(matrix.samples)
    lonely[:, [10, 100, 200]] = 1.0  # a sample in twenty windows
    totals = np.where(np.arange(WINDOWS.end) % 20 == 0, 1.0, 0.0)
    found = find_change_points(replace(matrix, samples=lonely * totals, totals=totals), WINDOWS, CONFIG)
    assert {one.code for one in found.unjudged} <= {"windows_empty", "few_samples"}
    assert sum(one.series for one in found.unjudged) == 2


def test_a_scan_without_series_says_so() -> None:
    nothing = SeriesMatrix(0.0, 60.0, (), (), np.zeros((0, WINDOWS.end)), np.zeros(WINDOWS.end))
    assert find_change_points(nothing, WINDOWS, CONFIG).unjudged == (Unjudged("no_data", 0, 0.0, 1.0),)


def grounds(**fields: Any) -> Grounds:
    well = Grounds(
        share=np.ones(4),
        least_share=np.full(4, 0.5),
        windows=np.full(4, 30),
        splits=np.full(4, 20),
        degrees_of_freedom=np.full(4, 12.0),
        least_p=np.zeros(4),
    )
    return replace(well, **fields)


@pytest.mark.parametrize(
    ("lacks", "expected"),
    [
        pytest.param(grounds(), (), id="nothing"),
        pytest.param(
            grounds(share=np.array([0.1, 0.2, 0.3, 1.0])),
            (Unjudged("no_history", 3, 0.2, 0.5),),
            id="history",
        ),
        pytest.param(
            grounds(splits=np.array([0, 0, 1, 1]), windows=np.array([2, 1, 9, 9])),
            (Unjudged("windows_empty", 2, 1.5, 3.0),),
            id="windows",
        ),
        pytest.param(
            grounds(degrees_of_freedom=np.array([1.0, 2.0, 2.0, 2.0])),
            (Unjudged("noise_unknown", 1, 1.0, 1.0),),
            id="noise",
        ),
        pytest.param(
            grounds(least_p=np.array([0.0, 0.0, 0.0, 0.01])),
            (Unjudged("few_samples", 1, 0.01, 0.01),),
            id="samples",
        ),
        pytest.param(
            grounds(share=np.array([0.0, 1.0, 1.0, 1.0]), splits=np.array([0, 0, 1, 1])),
            (Unjudged("no_history", 1, 0.0, 0.5), Unjudged("windows_empty", 1, 30.0, 3.0)),
            id="each by its first code",
        ),
    ],
)
def test_series_by_code(lacks: Grounds, expected: tuple[Unjudged, ...]) -> None:
    assert find_unjudged(lacks, min_points=3, significance=0.01) == expected


def test_parts_of_a_matrix_add_up() -> None:
    parts = [
        Unjudged("few_samples", 2, 0.5, 0.01),
        Unjudged("no_history", 1, 0.1, 0.5),
        Unjudged("no_history", 5, 0.2, 0.5),
    ]
    assert merge_unjudged(parts) == (Unjudged("no_history", 6, 0.2, 0.5), parts[0])


def test_every_code_is_described_and_documented() -> None:
    assert tuple(SENTENCES) == CODES
    page = (ROOT / "docs" / "investigate.md").read_text(encoding="utf-8")
    for code in CODES:
        assert describe_unjudged(Unjudged(code, 3, 0.25, 3.0)).startswith(f"{code}: ")
        assert f"| `{code}` |" in page
    assert describe_unjudged(Unjudged("later", 1, 0.0, 0.0)) == "later"
