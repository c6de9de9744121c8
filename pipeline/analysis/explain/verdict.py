"""Verdict of the explanation on one candidate: the parts of its rise, and which of them is most of it."""

from __future__ import annotations

import math

from pipeline.analysis.explain.explanation import Cause, Explanation
from pipeline.model import Decision

STEP = "explanation"

MOST = 0.5
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
        return Decision(STEP, True, 0.0, MOST, "unclear", ("no recorded stack holds it",))
    parts = explanation.of(label)
    error = explanation.error_of(label)
    if parts.rise <= _BEYOND_CHANCE * error:
        said = f"{_points(parts.rise)} in all, give or take {100 * error:.2g}"
        return Decision(STEP, True, 0.0, MOST, "gone", (said,))
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
        if moved <= MOST * parts.rise:
            return Decision(STEP, True, 0.0, MOST, "gone", (sentence,))
        is_renamed = parts.renamed > MOST * moved
        source = explanation.former(label) if is_renamed else _largest_move(causes, amounts)
        return Decision(STEP, True, 0.0, MOST, "moved", (sentence, source))
    statistic = max(own, 0.0) / sum(max(part, 0.0) for part in (own, through, parts.traffic, parts.left))
    if own > MOST * rest:
        return Decision(STEP, True, statistic, MOST, "own", (sentence,))
    if through > MOST * rest:
        name = _largest_cause(causes, amounts, label)
        return Decision(STEP, True, statistic, MOST, "through", (sentence, name))
    code = "entry" if parts.traffic > MOST * rest else "unclear"
    return Decision(STEP, True, statistic, MOST, code, (sentence,))


def _largest_move(causes: tuple[Cause, ...], amounts: list[float]) -> str:
    """Return where most of what moved came from."""
    moves = [(amount, -row) for row, amount in enumerate(amounts) if causes[row].moved_from is not None]
    source = causes[-max(moves)[1]].moved_from
    return source.name if source else ""


def _largest_cause(causes: tuple[Cause, ...], amounts: list[float], label: str) -> str:
    """Return the cause that a label rises through most."""
    chosen = [
        (amount, -row)
        for row, amount in enumerate(amounts)
        if causes[row].moved_from is None and label not in causes[row].names
    ]
    return causes[-max(chosen)[1]].names[0]


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
