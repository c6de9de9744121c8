"""Verdict of the explanation on one candidate: the parts of its rise, and which of them is most of it."""

from __future__ import annotations

import math

from pipeline.analysis.explain.explanation import Cause, Explanation
from pipeline.model import Decision

STEP = "explanation"

_MOST = 0.5
"""Share of a rise from which on a part of it is most of it."""

_BEYOND_CHANCE = 2.0
"""Standard errors that a rise has at least, or it is none."""

_ASIDE = 0.1
"""Share of what moved that may be the cost of the move itself: a call, another order."""

_WORTH_SAYING = 0.02
"""Share of a rise below which a part of it is left out of the sentence, with the others that small."""

_MOST_PARTS = 4


def judge(explanation: Explanation | None, label: str) -> Decision:
    """Return what the explanation says of a candidate; it lets everything pass.

    ``statistic`` is the share of its rise that is its own cost or calls of it, which did not move there.

    Args:
        explanation: Of its cluster; None without stacks.
        label: The candidate's.
    """
    if explanation is None:
        return Decision(STEP, True)
    if not len(explanation.index.positions(label)):
        return Decision(STEP, True, 0.0, _MOST, "unclear", ("no recorded stack holds it",))
    parts = explanation.of(label)
    error = explanation.error_of(label)
    if parts.rise <= _BEYOND_CHANCE * error:
        said = f"{_points(parts.rise)} in all, give or take {100 * error:.2g}"
        return Decision(STEP, True, 0.0, _MOST, "gone", (said,))
    causes, amounts = explanation.causes, parts.causes.tolist()
    own, moved, through = 0.0, parts.renamed, 0.0
    for cause, amount in zip(causes, amounts, strict=True):
        if cause.moved_from:
            moved += amount
        elif label in cause.names:
            own += amount
        else:
            through += amount
    sentence = _sentence(explanation, label)
    rest = parts.rise - moved  # what moved there may have got dearer on the way
    if rest <= max(_BEYOND_CHANCE * error, _ASIDE * moved):
        return Decision(STEP, True, 0.0, _MOST, "moved", (sentence, _source(explanation, label, amounts)))
    statistic = max(own, 0.0) / sum(max(part, 0.0) for part in (own, through, parts.traffic, parts.left))
    if own > _MOST * rest:
        return Decision(STEP, True, statistic, _MOST, "own", (sentence,))
    if through > _MOST * rest:
        name = _largest(causes, amounts, moved=False, but=label).names[0]
        return Decision(STEP, True, statistic, _MOST, "through", (sentence, name))
    code = "entry" if parts.traffic > _MOST * rest else "unclear"
    return Decision(STEP, True, statistic, _MOST, code, (sentence,))


def _source(explanation: Explanation, label: str, amounts: list[float]) -> str:
    """Return where most of what moved to a label came from."""
    former = explanation.former(label)
    if former:
        return former
    source = _largest(explanation.causes, amounts, moved=True).moved_from
    return source.name if source else ""


def _largest(causes: tuple[Cause, ...], amounts: list[float], *, moved: bool, but: str = "") -> Cause:
    chosen = [
        (amount, -row)
        for row, (cause, amount) in enumerate(zip(causes, amounts, strict=True))
        if bool(cause.moved_from) == moved and but not in cause.names
    ]
    return causes[-max(chosen)[1]]


def _sentence(explanation: Explanation, label: str) -> str:
    """Return the parts of a rise in words, the largest first: "0.22 points its own, 0.06 through parse"."""
    parts = explanation.of(label)
    said = [
        (amount, _words(cause, label))
        for cause, amount in zip(explanation.causes, parts.causes.tolist(), strict=True)
    ]
    former = explanation.former(label)
    if former:
        said.append((parts.renamed, f"moved from {former}"))
    said += [(parts.traffic, "with the traffic of its entries"), (parts.left, "not explained")]
    said.sort(key=lambda part: -abs(part[0]))
    chosen = [part for part in said if abs(part[0]) > _WORTH_SAYING * parts.rise][:_MOST_PARTS]
    rest = parts.rise - math.fsum(amount for amount, _ in chosen)
    if abs(rest) > _WORTH_SAYING * parts.rise:
        chosen.append((rest, "in smaller parts"))
    return f"of {_points(parts.rise)}, " + ", ".join(f"{_points(amount)} {words}" for amount, words in chosen)


def _words(cause: Cause, label: str) -> str:
    if cause.moved_from:
        return f"moved from {cause.moved_from.name}"
    readings = [reading for reading in cause.readings if reading.name == label]
    if not readings:
        return f"through {cause.names[0]}"
    if readings[0].kind == "own":
        return "its own" if len(readings) == 1 else "its own, or more calls"
    callers = [reading.caller for reading in readings if reading.caller]
    return f"called more by {callers[0]}" if callers else "called more"


def _points(share: float) -> str:
    return f"{100 * share:+.3g} points"
