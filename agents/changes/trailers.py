"""Costs that a commit's message announces in its trailers: ``Expected-Cost: 0.1% shop.pricing.*``."""

from __future__ import annotations

import re

from pipeline.model import ExpectedCost

MOST = 20
"""Most trailers of one message that are read."""

_PARAGRAPH = re.compile(r"\n\s*\n")
_TRAILER = re.compile(r"(?i)expected-cost\s*:\s*(.*)")
_COST = re.compile(r"(\d+(?:\.\d+)?)\s*%(?:\s+(\S{1,1000}))?")


def expected_costs(body: str) -> tuple[tuple[ExpectedCost, ...], list[str]]:
    """Return the costs that a message announces, and what of it could not be read.

    Args:
        body: The message without its title; trailers stand in its last paragraph, as git has it.
    """
    last = _PARAGRAPH.split(body.strip())[-1]
    found: list[ExpectedCost] = []
    wrong: list[str] = []
    for line in last.splitlines():
        trailer = _TRAILER.fullmatch(line.strip())
        if trailer is None:
            continue
        cost = _COST.fullmatch(trailer[1].strip())
        share = float(cost[1]) / 100 if cost else 0.0
        if cost is None or not 0 < share <= 1 or len(found) == MOST:
            wrong.append(f"the trailer {line.strip()[:80]!r}, which is not like 'Expected-Cost: 0.1% NAME'")
        else:
            found.append(ExpectedCost(share, cost[2] or ""))
    return tuple(found), wrong
