"""Accessibility of a page in the browser, by axe-core."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files

from tests.support.browser import Browser

_WITHIN = {
    "resultTypes": ["violations"],
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"],
}

_FOUND = """axe.run(document, %s).then((all) => all.violations.flatMap((rule) =>
    rule.nodes.map((node) => `${rule.id}: ${node.target.join(' ')}: ${node.failureSummary}`)))"""

_WIDER = """(({scrollWidth, clientWidth}) => scrollWidth > clientWidth + 1
    ? [`wider than the screen: ${scrollWidth} of ${clientWidth}`] : [])(document.documentElement)"""
"""Of ``innerWidth`` nothing is ever wider: a phone zooms out until all fits."""

_SIDEWAYS = """[...document.querySelectorAll('.wide:has(> table.stack)')]
    .filter((one) => innerWidth < 700 && one.scrollWidth > one.clientWidth + 1)
    .map((one) => `scrolls sideways: the table under ${one.parentElement.querySelector('h2')?.innerText}`)"""


@cache
def _source() -> str:
    return (files("axe_core_python") / "axe.min.js").read_text()


async def audit(browser: Browser) -> list[str]:
    """Return axe's violations on the current page, one line a node, and elements that are too wide."""
    await browser.run(f"{_source()}; true")  # through the devtools: the page's own policy lets nobody in
    violations: list[str] = await browser.run(_FOUND % json.dumps(_WITHIN))
    wider: list[str] = await browser.run(_WIDER)
    sideways: list[str] = await browser.run(_SIDEWAYS)
    return violations + wider + sideways
