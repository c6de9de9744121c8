"""The chart of a series: what is laid out, and what a person with a browser does with it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipeline.model import FloatArray
from pipeline.views.report.page import environment
from pipeline.views.report.series_chart import (
    HEIGHT,
    WIDTH,
    ChartShift,
    SeriesChart,
    Sign,
    StudyCurve,
    series_chart,
)
from pipeline.views.report.windows import DrawnSeries, ScanWindows
from tests.support.axe import audit
from tests.support.browser import CHROMIUM, DESKTOP, PHONE, chromium

START = 1_700_006_400.0  # midnight
PAGE = """{% extends "layout.html" %}{% block title %}A series{% endblock %}{% block content %}
<h1>A series</h1>{% set label = "Line chart" %}{% include "series.html" %}{% endblock %}"""


def windows_over(points: int) -> ScanWindows:
    edges = [START + 600.0 * round(points * share) for share in (0, 0.6, 0.9, 1)]
    return ScanWindows(600.0, *edges)


def chart(
    values: Sequence[float] | FloatArray, *, ratio: bool = False, from_zero: bool = False
) -> SeriesChart:
    points = len(values)
    windows = windows_over(points)
    levels: FloatArray = np.array(values, dtype=np.float64)
    line = DrawnSeries(START + 600.0 * np.arange(points, dtype=np.float64), levels, ratio)
    shift = ChartShift(
        windows.analysis_start, 1.0, 2.0, (windows.analysis_start - 600, windows.analysis_start)
    )
    curves = [StudyCurve(np.full(points, 1.5), "trend")]
    signs = [Sign(START + 300.0, 1.5, "a")]
    return series_chart(line, windows, shift, curves=curves, signs=signs, from_zero=from_zero)


def drawn(found: SeriesChart) -> str:
    return environment(ratio=False).from_string(PAGE).render(chart=found, plotly="")


def test_points_lie_in_the_middle_of_their_windows() -> None:
    found = chart([1.0, 2.0] * 5)
    x = [float(pair.split()[0]) for pair in re.split("[ML]", found.path)[1:]]
    assert x == pytest.approx([WIDTH * (point + 0.5) / 10 for point in range(10)], abs=0.1)
    assert [band.name for band in found.bands] == ["historical", "analysis", "extended", "interval"]


def test_a_window_without_data_is_a_gap() -> None:
    found = chart([1.0, float("nan"), 2.0, 1.0])
    assert found.path.count("M") == 2
    assert found.dots.count("M") == 3
    assert found.data["values"] == [1.0, None, 2.0, 1.0]


@pytest.mark.parametrize("values", [[1.0] * 5, [0.0] * 5, [1e12, -1e12, 0, 1e-9], [np.nan] * 4, [1.0]])
@pytest.mark.parametrize("from_zero", [True, False])
def test_everything_stays_in_the_frame(values: list[float], from_zero: bool) -> None:
    found = chart(values, from_zero=from_zero)
    for path in (found.path, *(path for _, path in found.curves)):
        for x, y in (map(float, pair.split()) for pair in re.split("[ML]", path)[1:]):
            assert 0 <= x <= WIDTH
            assert 0 <= y <= HEIGHT
    assert found.y_ticks
    assert all(0 <= tick.at <= HEIGHT for tick in found.y_ticks)
    assert len(found.y_ticks) <= 8
    assert len({tick.text for tick in found.y_ticks}) == len(found.y_ticks)


def test_a_small_change_looks_small_from_zero() -> None:
    assert chart([100.0, 101.0], from_zero=True).y_ticks[0].text == "0"
    assert chart([1.0, 2.0], ratio=True).y_ticks[-1].text.endswith(" %")


@pytest.mark.parametrize("points", [2_000, 100_000])
def test_a_page_is_small_and_keeps_the_extremes(points: int) -> None:
    values = np.random.default_rng(1).normal(1, 0.1, points)
    values[points // 3] = 9.0
    found = chart(values)
    assert 9.0 in found.data["values"]  # type: ignore[operator]
    assert len(drawn(found)) < 300_000


def test_texts_stay_texts() -> None:
    found = chart([1.0, 2.0])
    hostile = replace(found, title="<script>alert(1)</script>", signs=((1.0, 1.0, "<b>"),))
    assert "<script>alert" not in drawn(hostile)
    assert "<b>" not in drawn(hostile)


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")
def test_a_person_looks_closer(tmp_path: Path) -> None:
    asyncio.run(_look_closer(tmp_path / "page.html"))


async def _look_closer(page: Path) -> None:
    values = np.random.default_rng(1).normal(1, 0.1, 1000)
    page.write_text(drawn(chart(values)), encoding="utf-8")
    async with chromium() as browser:
        for size, dark in ((DESKTOP, False), (PHONE, True)):
            await browser.look(size, dark=dark)
            await browser.open(page.as_uri())
            assert await audit(browser) == []
        await browser.look(DESKTOP, dark=False)
        shown = "document.querySelector('.plot').getAttribute('viewBox').split(' ').map(Number)"
        where = await browser.run(
            "(r => [r.x, r.y, r.width, r.height])(document.querySelector('.plot').getBoundingClientRect())"
        )
        x, y, width, height = where
        for kind, share in (("mousePressed", 0.25), ("mouseMoved", 0.5), ("mouseReleased", 0.5)):
            at = {"x": x + share * width, "y": y + height / 2}
            await browser.call("Input.dispatchMouseEvent", type=kind, button="left", clickCount=1, **at)
        left, _, wide, _ = await browser.run(shown)
        assert (left, wide) == (pytest.approx(WIDTH / 4, rel=0.02), pytest.approx(WIDTH / 4, rel=0.02))
        assert await browser.run("document.querySelectorAll('.x text').length") >= 3
        assert "2023-11-" in await browser.run("document.querySelector('.readout').textContent")
        await browser.run("document.querySelector('.series svg').focus()")
        await browser.press("ArrowRight")
        assert (await browser.run(shown))[0] > left
        await browser.press("Escape")
        assert await browser.run(shown) == [0, 0, WIDTH, HEIGHT]
        assert browser.complaints == []
