"""The decision whether the mix of requests made a rise: its own part against what the mix made of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pipeline.analysis.mix.request_shares import ERRORS, RequestMix
from pipeline.analysis.mix.standardise import rise_at, rows_by
from pipeline.model import Candidate, Decision, FloatArray, SeriesMatrix

KEY = "request_mix"

NEGLIGIBLE = 0.1
"""Own part of a rise, against what the mix made, that is taken for an error of shares however well known."""

_MOST = 1.0
"""The same where no change point is left at the usual mix: it made most of the rise."""


@dataclass(frozen=True, slots=True)
class MixMade:
    """What the mix of requests made of a series at a change point."""

    made: float  # gCPU
    error: float  # of that
    type: str  # of request, that moved it most


def judge(own: float, by_mix: MixMade, *, found: bool) -> Decision:
    """Return whether a candidate rose by itself, beside what the mix of requests made of its series.

    ``statistic`` is its own rise, by what the mix made: 0 if the mix made all of it, 1 if as much.

    Args:
        own: Rise at the usual mix, in gCPU.
        by_mix: What the mix made.
        found: Whether there is a change point at the usual mix, too.
    """
    if not by_mix.made:
        return Decision(KEY, True)
    part = own / abs(by_mix.made)
    bound = max(NEGLIGIBLE, ERRORS * by_mix.error / abs(by_mix.made)) if found else _MOST
    if abs(part) >= bound:
        return Decision(KEY, True, part, bound)
    return Decision(KEY, False, part, bound, code="types", subjects=(by_mix.type,))


def decide(
    candidates: Iterable[Candidate],
    counted: SeriesMatrix,
    constant: SeriesMatrix,
    mix: RequestMix,
    rates: FloatArray,
    *,
    found: bool,
) -> list[tuple[Candidate, Decision]]:
    """Return candidates of the series that the mix of requests moved, each with the decision.

    Args:
        candidates: Of these series.
        counted: Series as they were counted.
        constant: The same at the usual mix.
        mix: What requests made of them.
        rates: (types + 1, windows) of the traffic.
        found: Whether the candidates are change points at the usual mix; else as they were counted alone.
    """
    rows, of_mix = rows_by(counted.series), rows_by(mix.series)
    levels = counted.samples.sum(axis=1) / max(float(counted.totals.sum()), 1.0)
    decided = []
    for candidate in candidates:
        row, known = rows[candidate.series], of_mix[candidate.series]
        split = round((candidate.change_time - counted.start) / counted.resolution_s)
        made = rise_at(counted, row, split) - rise_at(constant, row, split)
        rise = candidate.after - candidate.before
        error = float(mix.errors[known] * levels[row])
        by_mix = MixMade(made, error, mix.mover(known, rates, split))
        decided.append((candidate, judge(rise if found else rise - made, by_mix, found=found)))
    return decided
