"""Where a regression holds, as counts by stratum say it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from pipeline.analysis.mix.scope import find_scopes
from pipeline.model import SeriesKey, StrataMatrix, Stratum
from pipeline.model.units import HOUR_S

SERIES = SeriesKey("subroutine", "shop.total")
REGIONS, MACHINES = ("east", "north", "west"), ("m5", "m6")
STRATA = tuple(
    sorted(
        Stratum.of({"region": region, "machine": machine}, host=f"{region}-{machine}-{number}")
        for region in REGIONS
        for machine in MACHINES
        for number in range(3)
    )
)


def counts(
    ratio: Mapping[str, float], hours: int, seed: int, share: float = 0.02, per_hour: float = 4000
) -> StrataMatrix:
    """Draw a series whose cost is another where a label or host is among those of ``ratio``."""
    rng = np.random.default_rng(seed)
    totals = rng.poisson(per_hour, (len(STRATA), hours)).astype(np.float64)
    factor = [
        float(np.prod([ratio.get(value, 1.0) for value in (*dict(one.labels).values(), one.host, "all")]))
        for one in STRATA
    ]
    samples = rng.poisson(share * np.array(factor) * totals.sum(axis=1))[np.newaxis].astype(np.float64)
    return StrataMatrix(0.0, HOUR_S, STRATA, totals, (SERIES,), samples, (0.0, hours * HOUR_S))


@pytest.mark.parametrize(
    ("ratio", "found"),
    [
        ({"west": 1.3}, "region=west"),
        ({"m6": 1.3}, "machine=m6"),
        ({"west-m5-1": 2.0}, "host=west-m5-1"),
        ({"all": 1.3}, None),
        ({"west": 1.3, "all": 1.2}, None),
        ({}, None),
    ],
)
@pytest.mark.parametrize("seed", range(5))
def test_where_a_rise_holds(ratio: Mapping[str, float], found: str | None, seed: int) -> None:
    scopes = find_scopes(counts({}, 48, seed), counts(ratio, 8, seed + 100))
    assert scopes.get(SERIES) == found


def test_nothing_is_named_of_one_stratum_or_none() -> None:
    none = StrataMatrix(0.0, HOUR_S, (), np.zeros((0, 4)), (), np.zeros((0, 0)))
    assert find_scopes(none, none) == {}
    one = StrataMatrix(0.0, HOUR_S, STRATA[:1], np.ones((1, 4)), (SERIES,), np.ones((1, 1)), (0.0, HOUR_S))
    assert find_scopes(one, one) == {}


def test_a_region_that_was_not_there_before_says_nothing() -> None:
    before, after = counts({}, 48, 1), counts({"west": 1.3}, 8, 2)
    west = [dict(one.labels)["region"] == "west" for one in STRATA]
    totals, samples = before.totals.copy(), before.samples.copy()
    totals[west], samples[:, west] = 0, 0
    gone = StrataMatrix(0.0, HOUR_S, STRATA, totals, (SERIES,), samples, before.counted)
    assert find_scopes(gone, after) == {}
