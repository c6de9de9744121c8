"""Series and candidates as if the mix of those who sent samples had stayed as it was."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from pipeline.analysis.mix.mix import Mix
from pipeline.analysis.mix.terms import value_of
from pipeline.model import Candidate, Decision, Dropped, FloatArray, SeriesKey, SeriesMatrix, StrataMatrix

KEY = "mix_shift"

OWN_SHARE = 0.5
"""Share of a rise that must be left without the mix: most of it."""


_LEAST_FACTOR = 0.25
"""Where so few of those who run a series have sent samples, the others are taken to be as they always are."""


def block_windows(windows: int) -> int:
    """Return how many windows make a block of time for the fit of a mix: a span has 256 blocks at most."""
    return max(1, -(-windows // 256))


def standardise(matrix: SeriesMatrix, series: Sequence[SeriesKey], factors: FloatArray) -> SeriesMatrix:
    """Return counts as if every window had the usual mix.

    Args:
        matrix: Series; those that the mix does not know stay as they are.
        series: Those that the mix moves.
        factors: (series that it moves, windows) by which the mix raised them, from ``Mix.factors``.
    """
    rows = rows_by(matrix.series)
    known = [row for row, key in enumerate(series) if key in rows]
    samples, of_mix = matrix.samples.copy(), [rows[series[row]] for row in known]
    factors = factors[known]
    counted = samples[of_mix]
    exposure = (factors * matrix.totals).sum(axis=1, keepdims=True)
    level = counted.sum(axis=1, keepdims=True) / np.maximum(exposure, 1e-300)
    missing = np.maximum(1 - factors / _LEAST_FACTOR, 0.0)
    samples[of_mix] = counted / np.maximum(factors, _LEAST_FACTOR) + missing * level * matrix.totals
    return replace(matrix, samples=np.minimum(samples, matrix.totals))


def moved_series(
    mix: Mix, factors: FloatArray, matrix: SeriesMatrix, analysis: int, least: float
) -> set[SeriesKey]:
    """Return the series that the mix moved by as much as a scan may report.

    Args:
        mix: How series differ between strata.
        factors: (series of the mix, windows) by which the mix raised them, from ``Mix.factors``.
        matrix: As it was counted.
        analysis: First window of the analysis window.
        least: Change of gCPU that is reported.
    """
    levels = matrix.samples.sum(axis=1) / max(float(matrix.totals.sum()), 1.0)
    of_series = dict(zip(matrix.series, levels.tolist(), strict=True))
    level = np.array([of_series.get(key, 0.0) for key in mix.series])
    before = factors[:, :analysis].mean(axis=1, keepdims=True)
    moved = np.abs(factors[:, analysis:] - before).max(axis=1, initial=0.0) * level >= least
    return {mix.series[row] for row in np.flatnonzero(moved).tolist()}


def decide(
    candidates: Iterable[Candidate], raw: SeriesMatrix, constant: SeriesMatrix, mix: Mix, strata: StrataMatrix
) -> list[Dropped]:
    """Return the candidates whose rise is mostly that of the mix, with what moved it.

    Args:
        candidates: Found in the series as they were counted.
        raw: These series.
        constant: The same series at a constant mix.
        mix: How they differ between strata.
        strata: Totals by the windows of both.
    """
    rows, of_mix = rows_by(raw.series), rows_by(mix.series)
    dropped = []
    for candidate in candidates:
        row, known = rows[candidate.series], of_mix.get(candidate.series)
        split = round((candidate.change_time - raw.start) / raw.resolution_s)
        rise = rise_at(raw, row, split)
        own = rise_at(constant, row, split) / rise if rise else 0.0
        if known is not None and own < OWN_SHARE:
            subjects = (_mover(mix, known, strata, split),)
            decision = Decision(KEY, False, own, OWN_SHARE, code="senders", subjects=subjects)
            dropped.append(Dropped(candidate, decision))
    return dropped


def common_series(
    counts: StrataMatrix, matrix: SeriesMatrix, senders: StrataMatrix
) -> tuple[StrataMatrix, FloatArray]:
    """Return what two reads of one span both hold: counts by stratum, and (series, windows) of all strata.

    Args:
        counts: Counts of series by stratum.
        matrix: Series by windows.
        senders: Totals by the same windows. A stratum that came in between the reads is left out.
    """
    rows, columns = rows_by(counts.series), {stratum: number for number, stratum in enumerate(counts.strata)}
    every = matrix.series
    kept = [row for row, key in enumerate(every) if key in rows]
    known = [number for number, stratum in enumerate(senders.strata) if stratum in columns]
    series = tuple(every[row] for row in kept)
    strata = tuple(senders.strata[number] for number in known)
    held = np.ix_([rows[key] for key in series], [columns[stratum] for stratum in strata])
    joined = replace(
        senders, strata=strata, totals=senders.totals[known], series=series, samples=counts.samples[held]
    )
    return joined, matrix.samples[kept]


def rows_by(series: Sequence[SeriesKey]) -> dict[SeriesKey, int]:
    """Return the row of each series."""
    return {key: row for row, key in enumerate(series)}


def rise_at(matrix: SeriesMatrix, row: int, split: int) -> float:
    """Return by how much the level from a window on is above the one before."""
    after, before = (
        float(matrix.samples[row, part].sum() / max(matrix.totals[part].sum(), 1.0))
        for part in (slice(split, None), slice(0, split))
    )
    return after - before


def _mover(mix: Mix, row: int, strata: StrataMatrix, split: int) -> str:
    """Return the value of a term, as ``name=value``, whose share of the samples moved a series the most."""
    spans = np.stack([strata.totals[:, :split].sum(axis=1), strata.totals[:, split:].sum(axis=1)], axis=1)
    senders = [term for term in mix.terms if term.source != "release"]
    moves = [np.diff(mix.factors(strata.strata, spans, only=term)[row])[0] for term in senders]
    term = senders[int(np.argmax(np.abs(moves)))]
    shares = spans / np.maximum(spans.sum(axis=0), 1.0)
    gained: dict[str, float] = {}
    for stratum, gain in zip(strata.strata, np.diff(shares, axis=1)[:, 0].tolist(), strict=True):
        value = value_of(term, stratum)
        gained[value] = gained.get(value, 0.0) + gain
    return f"{term.name}={max(gained, key=lambda value: abs(gained[value]))}"
