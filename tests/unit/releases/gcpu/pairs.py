"""Drawn pairs of releases whose truth is known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipeline.model import FloatArray, SeriesKey, StrataMatrix, Stratum
from pipeline.model.units import HOUR_S
from pipeline.releases.gcpu import Samples, collect

SERIES = tuple(SeriesKey("subroutine", f"f{i:02d}") for i in range(60))
RISEN = 5
"""The series that rises; its share is about 0.1."""


@dataclass(frozen=True)
class Pair:
    """Hosts that run v1 and v2 at the same time, an hour a block."""

    baseline: tuple[str, ...] = ("west", "east", "west", "east", "west", "east")  # regions of hosts
    candidate: tuple[str, ...] = ("west", "east", "west", "east", "west", "east")
    blocks: int = 8
    samples: int = 6_000  # of a host in a block
    rates: float = 0.0  # spread of the samples of hosts
    spread: float = 0.03  # of hosts
    region: float = 0.3  # spread between regions
    rise: float = 0.0  # of gCPU
    outlier: float = 0.0  # of gCPU, on the last host of the candidate
    rolling: bool = False  # hosts take v2 one after the other
    apart: bool = False  # v2 follows v1


def draw(pair: Pair, seed: int) -> Samples:
    """Draw the counts of a pair; shares of leaves are those of series."""
    rng = np.random.default_rng(seed)
    level = rng.lognormal(0.0, 1.2, len(SERIES))
    level[RISEN] = 0.1 / 0.9 * np.delete(level, RISEN).sum()
    hosts = [*pair.baseline, *pair.candidate]
    own = {region: rng.normal(0, pair.region, len(SERIES)) for region in sorted(set(hosts))}
    differs = rng.normal(0, pair.spread, (len(hosts), len(SERIES)))
    rate = pair.samples * np.exp(rng.normal(0, pair.rates, len(hosts)))
    parts = []
    for block in range(pair.blocks):
        course = rng.normal(0, 0.1, len(SERIES))
        rows: dict[Stratum, FloatArray] = {}
        for number, region in enumerate(hosts):
            new = number >= len(pair.baseline)
            if pair.rolling:
                new = block * len(hosts) >= number * pair.blocks
            if pair.apart and new != (block >= pair.blocks // 2):
                continue
            share = level * np.exp(own[region] + differs[number] + course)
            share /= share.sum()
            share[RISEN] += pair.rise * new + pair.outlier * (number == len(hosts) - 1)
            stratum = Stratum.of({"region": region}, host=f"h{number:02d}", release="v2" if new else "v1")
            rows[stratum] = rng.multinomial(round(rate[number]), share / share.sum()).astype(np.float64)
        strata = tuple(sorted(rows))
        counts = np.array([rows[stratum] for stratum in strata]).T
        totals = counts.sum(axis=0)[:, None]
        parts.append(StrataMatrix(block * HOUR_S, HOUR_S, strata, totals, SERIES, counts))
    found = collect(parts)
    assert found is not None
    return found
