"""Costs that a commit's message announces in its trailers: ``Expected-Cost: 0.1% shop.pricing.*``."""

from __future__ import annotations

import re

from pipeline.model import ExpectedCost

MOST = 20
"""Most trailers of one message that are read."""

_PARAGRAPH = re.compile(r"\n\s*\n")
_TRAILER = re.compile(r"(?i)expected-cost\s*:\s*(.*)")
_MISSPELT = re.compile(r"(?i)expected[-_\s]*costs?\b[:=\s]*[0-9].*%.*")
"""A line that was meant to be a trailer, as far as its name and a share say so."""

_SHARE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*%")  # other scripts' digits look like something else
_COST = re.compile(rf"({_SHARE.pattern})(?:\s+(\S{{1,1000}}))?")


def expected_costs(body: str) -> tuple[tuple[ExpectedCost, ...], list[str]]:
    """Return the costs that a message announces, and the trailers that could not be read.

    Args:
        body: The message without its title; trailers stand in its last paragraph, as git has it.
    """
    last = _PARAGRAPH.split(body.strip())[-1]
    costs: list[ExpectedCost] = []
    wrong: list[str] = []
    for line in last.splitlines():
        line = line.strip()
        trailer = _TRAILER.fullmatch(line)
        if trailer is None and not _MISSPELT.fullmatch(line):
            continue
        cost = _cost(trailer[1].strip()) if trailer else None
        if cost is None:
            wrong.append(f"the trailer {line[:80]!r}, which is not like 'Expected-Cost: 0.1% NAME'")
        elif len(costs) == MOST:
            wrong.append(f"the trailer {line[:80]!r}, since a message has at most {MOST} of them")
        else:
            costs.append(cost)
    return tuple(costs), wrong


def cost_share(text: str) -> float | None:
    """Read a share above 0 and up to 1, such as ``0.1%``; None if it is none."""
    match = _SHARE.fullmatch(text)
    share = float(match[1]) / 100 if match else 0.0
    return share if 0 < share <= 1 else None


def _cost(text: str) -> ExpectedCost | None:
    match = _COST.fullmatch(text)
    share = cost_share(match[1]) if match else None
    if match is None or share is None or not text.isprintable():
        return None
    return ExpectedCost(share, match[3] or "")
