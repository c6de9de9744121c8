r"""Releases side by side: what one costs more than those before it, at the same time.

While a release reaches host after host, old and new run under the same load. A series that it makes dearer
has more samples on its hosts than their share says, at every moment. With n_b samples of the series in
block b, and x_b the share of the service's samples there that the release sent (weighed by how its strata
differ by themselves, see ``mix``), the new release's samples are expected to be Σ n_b ρx_b / (1 - x_b +
ρx_b) for a ratio ρ of the two costs; ρ is where that meets what was counted, and the score test against ρ =
1 is that of Mantel and Haenszel (1959) with time as strata. Nothing that befalls both, as load
and its mix do, touches it: it is a difference in differences. How far hosts differ by themselves, beyond
counting, widens it.

A series that a release changes is then read as if the release had come at once, with its first host: as it
was before, and from there on as it is where the release runs. So a rollout in stages is a step at its first
stage for all who judge it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import ndtri, stdtr

from pipeline.analysis.mix.mix import Mix
from pipeline.analysis.mix.standardise import rows_by
from pipeline.analysis.mix.terms import release_of
from pipeline.model import BoolArray, Candidate, FloatArray, SeriesKey, SeriesMatrix, StrataMatrix, Stratum

KEY = "release_effect"

BY_CHANCE = 0.001
"""Series per scan that may seem changed by a release by chance."""

_DISTINGUISHED = 1.0
"""Standard errors of what hosts say that a rise has to have, if they are to say whether a release made it."""

_WHOLE = 0.99
"""Share of the samples from which on a release is everywhere: a few hosts are always behind."""

_NEWTON = 20
_LARGEST = 1e3  # ratio of two costs: beyond, it is new
_POOLED = 10.0
"""Degrees of freedom that what all series say of hosts' noise is worth to each."""

_LEAST_EXPECTED = 5.0
"""Samples of a stratum below which it says nothing of how hosts vary."""


@dataclass(frozen=True, slots=True)
class Rollout:
    """A release that came while others ran."""

    release: str
    start: float  # of the first window with a sample of it, epoch seconds
    end: float  # until when others ran beside it; of the span if they still do


@dataclass(frozen=True, slots=True)
class ReleaseEffect:
    """What a release makes of a series' cost."""

    release: str
    ratio: float  # to what it was
    p_value: float


Effects = Mapping[SeriesKey, tuple[ReleaseEffect, ...]]
"""Of each series that a release changes, the releases in the order in which they came."""


def find_rollouts(strata: StrataMatrix, since: float) -> list[Rollout]:
    """Return the releases that came after a time and ran beside others, in the order in which they came.

    Args:
        strata: Totals by windows.
        since: A release seen before was there already.
    """
    names, shares = release_shares(strata.strata, strata.totals)
    whole = strata.totals.sum(axis=0) > 0
    found = []
    for name, share in zip(names, shares, strict=True):
        seen = np.flatnonzero(share > 0)
        if not name or not len(seen):
            continue
        start = strata.start + float(seen[0]) * strata.resolution_s
        partly = np.flatnonzero(whole & (share > 0) & (share < _WHOLE))
        if start >= since and len(partly) and whole[: seen[0]].any():
            # Hosts that stay behind for days are no part of how it came.
            full = np.flatnonzero(share >= _WHOLE)
            last = min(int(partly[-1]) + 1, int(full[0]) if len(full) else len(share))
            if last > seen[0]:
                found.append(Rollout(name, start, strata.start + last * strata.resolution_s))
    return sorted(found, key=lambda rollout: (rollout.start, rollout.release))


def since_deployed(
    strata: StrataMatrix, rollouts: Sequence[Rollout], deployed: Sequence[float]
) -> list[Rollout]:
    """Return rollouts, of which some begin when most hosts took them: a host with a wrong clock was first.

    Nobody runs what is not deployed. If no change was as the first host was seen, but one was as most hosts
    took the release, it was that one. Else the first host is the best that is known.

    Args:
        strata: Totals by windows.
        rollouts: As hosts were seen.
        deployed: When changes were, in any order; they may be announced two windows early or late.
    """
    names, shares = release_shares(strata.strata, strata.totals)
    share_of = dict(zip(names, shares, strict=True))
    times = np.array(deployed, dtype=np.float64)
    found = []
    for rollout in rollouts:
        first, last = (
            round((at - strata.start) / strata.resolution_s) for at in (rollout.start, rollout.end)
        )
        taken = first + int(np.argmax(np.diff(share_of[rollout.release][first : last + 1], prepend=0.0)))
        most = strata.start + taken * strata.resolution_s
        announced = [(np.abs(times - at) <= 2 * strata.resolution_s).any() for at in (rollout.start, most)]
        found.append(replace(rollout, start=most) if announced == [False, True] else rollout)
    return found


def release_starts(strata: StrataMatrix) -> dict[str, float]:
    """Return when each release was first seen."""
    names, shares = release_shares(strata.strata, strata.totals)
    seen = ((name, np.flatnonzero(share > 0)) for name, share in zip(names, shares, strict=True))
    return {name: strata.start + float(at[0]) * strata.resolution_s for name, at in seen if len(at)}


def is_newer(strata: Sequence[Stratum], starts: Mapping[str, float], since: float) -> BoolArray:
    """Return which strata run a release that came at a time or later: (strata,).

    What comes after a release holds what it changed.
    """
    return np.array([starts.get(release_of(one), -np.inf) >= since for one in strata], dtype=np.bool_)


def release_shares(strata: Sequence[Stratum], totals: FloatArray) -> tuple[list[str], FloatArray]:
    """Return the releases, sorted, and the share of the samples that each sent: (releases, windows)."""
    of = [release_of(stratum) for stratum in strata]
    names = sorted(set(of))
    held = np.array([[name == one for one in of] for name in names], dtype=np.float64)
    sums = held.reshape(len(names), len(of)) @ totals
    whole = totals.sum(axis=0)
    return names, sums / np.where(whole > 0, whole, 1.0)


@dataclass(frozen=True, slots=True)
class SideBySide:
    """Old and new release in the same blocks of time.

    Attributes:
        members: (strata,) which of them run the new one.
        totals: (strata, blocks) samples.
        differing: (series, strata) how strata differ by themselves and by earlier releases.
        blocks: (series, blocks) counts of all strata.
        samples: (series, strata) counts over all blocks.
    """

    members: BoolArray
    totals: FloatArray
    differing: FloatArray
    blocks: FloatArray
    samples: FloatArray


def side_by_side(
    strata: StrataMatrix,
    blocks: FloatArray,
    mix: Mix | None,
    starts: Mapping[str, float],
    rollout: Rollout,
    earlier: Mapping[SeriesKey, Sequence[ReleaseEffect]],
) -> SideBySide:
    """Return old and new release in the blocks of a rollout.

    Args:
        strata: Totals by blocks, and counts over the same time.
        blocks: (series, blocks) counts of all strata.
        mix: How series differ between strata; None if they do not.
        starts: When each release was first seen.
        rollout: Of the new release.
        earlier: What releases before it make of series.
    """
    differing, rows = differing_of(mix, strata.series, strata.strata), rows_by(strata.series)
    for key, effects in earlier.items():
        if key in rows:
            for effect in effects:
                differing[rows[key], is_newer(strata.strata, starts, starts[effect.release])] *= effect.ratio
    members = is_newer(strata.strata, starts, rollout.start)
    return SideBySide(members, strata.totals, differing, blocks, strata.samples)


@dataclass(frozen=True)
class ReleaseCosts:
    """What series cost on a release against what they cost beside it."""

    rollout: Rollout
    series: Sequence[SeriesKey]
    ratios: FloatArray  # (series,)
    p_values: FloatArray  # (series,)

    def changed(self, *, among: int) -> dict[SeriesKey, ReleaseEffect]:
        """Return the series that the release changes, of so many that are asked about; chance would not."""
        rows = np.flatnonzero(self.p_values * among < BY_CHANCE).tolist()
        return {self.series[row]: self._effect(row) for row in rows}

    def effect_on(self, series: SeriesKey) -> ReleaseEffect | None:
        """Return what the release seems to make of a series, by chance or not."""
        row = self._rows.get(series)
        return None if row is None else self._effect(row)

    @cached_property
    def _rows(self) -> Mapping[SeriesKey, int]:
        return rows_by(self.series)

    def _effect(self, row: int) -> ReleaseEffect:
        return ReleaseEffect(self.rollout.release, float(self.ratios[row]), float(self.p_values[row]))


def brought_by(
    candidate: Candidate, compared: Sequence[ReleaseCosts], margin_s: float
) -> tuple[ReleaseEffect, Rollout] | None:
    """Return which release brought a candidate that was found by time, if one likely did.

    It is one series, and it rose while the release rolled out: what is asked is not whether the release
    changes some series of all, but which of two it was. Either the release made the whole rise, or it came
    over all hosts at one time. Of the two the one is taken under which what is counted is likelier, where
    hosts can distinguish them.

    Args:
        candidate: With its change point.
        compared: Releases with what they were held against.
        margin_s: How far from a rollout a change point may lie that is in it.
    """
    if candidate.after == candidate.before:
        return None
    begin, end = candidate.change_time_span
    rise = np.log(np.clip(candidate.after / max(candidate.before, 1e-300), 1 / _LARGEST, _LARGEST))
    found = []
    for one in compared:
        during = one.rollout.start - margin_s <= end and begin <= one.rollout.end + margin_s
        if not during or (effect := one.effect_on(candidate.series)) is None:
            continue
        seen = np.log(effect.ratio)
        errors = float(ndtri(1 - effect.p_value / 2))
        if errors > 0 and seen / rise > 0.5 and errors * rise / seen >= _DISTINGUISHED:
            found.append((effect, one.rollout))
    return min(found, key=lambda each: each[0].p_value, default=None)


def compare(side: SideBySide) -> tuple[FloatArray, FloatArray]:
    """Return the ratio of each series' cost on the new release to that on the old, and p-values: (series,).

    P-values are one-sided for each direction at twice their size: small for a rise and for a fall.
    """
    weighed_new = (side.differing * side.members) @ side.totals
    weighed = side.differing @ side.totals
    share = np.divide(weighed_new, weighed, out=np.zeros(weighed.shape), where=weighed > 0)
    new = side.samples[:, side.members].sum(axis=1)
    expected = (side.blocks * share).sum(axis=1)
    variance = (side.blocks * share * (1 - share)).sum(axis=1)
    ratio = _ratio(side.blocks, share, new)
    spread, degrees = _spread(side, share, ratio)
    score = (new - expected) / np.sqrt(np.maximum(variance * spread, 1e-12))
    score = np.where(variance > 0, score, 0.0)
    return ratio, np.asarray(2 * stdtr(degrees, -np.abs(score)))


def _ratio(blocks: FloatArray, share: FloatArray, new: FloatArray) -> FloatArray:
    """Return the ratio at which as many samples are expected of the new release as it sent: (series,)."""
    log_ratio = np.zeros(len(blocks))
    for _ in range(_NEWTON):
        odds = np.exp(log_ratio)[:, None] * share
        of_new = np.divide(odds, 1 - share + odds, out=np.zeros(share.shape), where=share > 0)
        slope = (blocks * of_new * (1 - of_new)).sum(axis=1)
        step = (new - (blocks * of_new).sum(axis=1)) / np.maximum(slope, 1e-9)
        log_ratio = np.clip(log_ratio + np.clip(step, -1, 1), -np.log(_LARGEST), np.log(_LARGEST))
    return np.exp(log_ratio)


def _spread(side: SideBySide, share: FloatArray, ratio: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return by how much strata of one release vary beyond counting, 1 at least, and degrees of freedom."""
    weight = np.where(side.members, ratio[:, None], 1.0) * side.differing
    whole = weight @ side.totals
    rate = np.divide(side.blocks, whole, out=np.zeros(whole.shape), where=whole > 0)
    expected = weight * (rate @ side.totals.T)
    usable = expected >= _LEAST_EXPECTED
    square = np.where(usable, (side.samples - expected) ** 2 / np.maximum(expected, 1e-9), 0.0).sum(axis=1)
    degrees = np.maximum(usable.sum(axis=1) - 2.0, 0.0)
    known = degrees >= 1
    pooled = max(1.0, float(np.median(square[known] / degrees[known]))) if known.any() else 1.0
    own = (pooled * _POOLED + square) / (_POOLED + degrees)
    return np.maximum(own, 1.0), _POOLED + degrees


def projection(
    differing: FloatArray,
    strata: StrataMatrix,
    rollouts: Mapping[str, Rollout],
    starts: Mapping[str, float],
    effects: Sequence[ReleaseEffect],
) -> FloatArray:
    """Return by what a series has to be multiplied to be as if each release had come at once: (windows,).

    Args:
        differing: (strata,) how strata differ by themselves in the series.
        strata: Totals by windows.
        rollouts: Of releases.
        starts: When each release was first seen.
        effects: What releases make of the series, in the order in which they came.
    """
    times = strata.start + strata.resolution_s * np.arange(strata.totals.shape[1])
    factor = np.ones(len(times))
    weighed = differing[:, None] * strata.totals
    for effect in effects:
        if (rollout := rollouts.get(effect.release)) is None:
            continue
        rolling = (times >= rollout.start - 1e-6) & (times < rollout.end - 1e-6)
        new = is_newer(strata.strata, starts, rollout.start)
        whole = weighed.sum(axis=0)
        share = weighed[new].sum(axis=0) / np.where(whole > 0, whole, 1.0)
        as_mixed = 1 + (effect.ratio - 1) * share
        factor[rolling] *= effect.ratio / as_mixed[rolling]
    return factor


def project(
    matrix: SeriesMatrix,
    mix: Mix | None,
    strata: StrataMatrix,
    rollouts: Mapping[str, Rollout],
    starts: Mapping[str, float],
    effects: Effects,
) -> SeriesMatrix:
    """Return series as if each release that changes them had come at once; see ``projection``."""
    rows, samples = rows_by(matrix.series), matrix.samples.copy()
    touched = [key for key in effects if key in rows]
    for key, differing in zip(touched, differing_of(mix, touched, strata.strata), strict=True):
        samples[rows[key]] *= projection(differing, strata, rollouts, starts, effects[key])
    return replace(matrix, samples=np.minimum(samples, matrix.totals))


def differing_of(mix: Mix | None, series: Sequence[SeriesKey], strata: Sequence[Stratum]) -> FloatArray:
    """Return how strata differ in series by themselves: (series, strata), 1 where nothing is known."""
    differing = np.ones((len(series), len(strata)))
    if mix is not None:
        rows, found = rows_by(mix.series), mix.differing(strata)
        known = [row for row, key in enumerate(series) if key in rows]
        differing[known] = found[[rows[series[row]] for row in known]]
    return differing
