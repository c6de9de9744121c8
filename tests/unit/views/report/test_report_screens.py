"""A report on every screen: nothing that axe finds, nothing too wide, no table without its numbers."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.model import DomainDecision, SetupExplanation, StackChange
from pipeline.settings.workloads import Workload
from tests.support.axe import audit
from tests.support.browser import CHROMIUM, DESKTOP, PHONE, chromium
from tests.unit.views.report.regressions import CHANGE, candidate, page, regression, suspect

LONG = "shop.checkout.baskets.persistence.Basket.sum_of_all_positions_with_discounts"
DOMAINS = (
    DomainDecision(f"callers: {LONG}", "rose", 0.2, 0.3, 0.9, 0.4),
    DomainDecision(f"module: {LONG}", "too large", 0.2, 0.3, 0.9, 0.4),
)
CELLS = """[...document.querySelectorAll('table.stack tbody td')].filter((cell) =>
  getComputedStyle(cell).display !== 'none' && cell.getBoundingClientRect().right > innerWidth + 1).length"""


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")
def test_a_report_is_for_every_screen(live: Workload, tmp_path: Path) -> None:
    explained = SetupExplanation(LONG, CHANGE, 0.95, 0.81, -0.67, 1.02)
    stacks = (StackChange(("main", "loop", LONG), 0.04, 0.12),)
    reported = candidate(LONG, domains=DOMAINS, group=(candidate("shop.search.rank"),))
    found = replace(regression(reported, suspect()), explanations=(explained,), stacks=stacks)
    target = tmp_path / "report.html"
    target.write_text(page(found, live), encoding="utf-8")
    complaints = asyncio.run(_complaints(target))
    assert not complaints, "\n".join(
        f"{where}: {line}" for where, lines in complaints.items() for line in lines
    )


async def _complaints(target: Path) -> dict[str, list[str]]:
    complaints: dict[str, list[str]] = {}
    async with chromium() as browser:
        for size in (DESKTOP, PHONE):
            for dark in (False, True):
                await browser.look(size, dark=dark)
                await browser.open(target.as_uri())
                await browser.until("document.querySelectorAll('.plotly-graph-div svg').length > 0")
                wide = await browser.run(CELLS)
                lines = await audit(browser) + ([f"{wide} cells are outside of the screen"] if wide else [])
                complaints[f"{size[0]} px, {'dark' if dark else 'light'}"] = lines
    return {screen: lines for screen, lines in complaints.items() if lines}
