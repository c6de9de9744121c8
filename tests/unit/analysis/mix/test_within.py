"""How far a series rose within those who send its samples, each held against its own last ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from pipeline.analysis.mix.within import RiseWithin, decide, rises_within
from pipeline.model import SeriesKey, StrataMatrix, Stratum
from pipeline.model.units import HOUR_S

SERIES = SeriesKey("subroutine", "shop.total")
REGIONS = ("east", "north", "west")
HOSTS = tuple(Stratum.of({"region": region}, host=f"{region}-{n}") for region in REGIONS for n in range(4))


def span(
    hours: int,
    share: Mapping[str, float] | None = None,
    weight: Mapping[str, float] | None = None,
    strata: Sequence[Stratum] = HOSTS,
    seed: int = 0,
) -> StrataMatrix:
    """Draw the samples of a span.

    Args:
        hours: How long it is, with 20,000 samples of a host in each.
        share: Of the series in all samples, by host, region or ``""`` for all others.
        weight: How many of the usual samples a host or region sends.
        strata: Who they are.
        seed: Of the draws.
    """
    rng = np.random.default_rng(seed)
    shares, weights = share or {"": 0.02}, weight or {}
    totals, samples = np.zeros((len(strata), hours)), np.zeros((1, len(strata)))
    for row, one in enumerate(strata):
        region = dict(one.labels).get("region", "")
        totals[row] = rng.poisson(20_000 * weights.get(one.host, weights.get(region, 1.0)), hours)
        held = shares.get(one.host, shares.get(region, shares.get("", 0.02)))
        samples[0, row] = rng.poisson(held * totals[row].sum())
    present = totals.any(axis=1)
    kept = tuple(strata[row] for row in np.flatnonzero(present).tolist())
    counted = (0.0, hours * HOUR_S)
    return StrataMatrix(0.0, HOUR_S, kept, totals[present], (SERIES,), samples[:, present], counted)


USUAL = span(240, seed=1)
GONE = {"west": 0.0}
WEST = {"west": 0.04, "": 0.02}


@pytest.mark.parametrize(
    ("before", "after", "rise"),
    [
        pytest.param([span(4)], span(4, seed=2), 0.0, id="nothing happened"),
        pytest.param([span(4)], span(4, {"": 0.03}, seed=2), 0.01, id="it rose everywhere"),
        pytest.param([span(4)], span(4, WEST, seed=2), 0.02 / 3, id="it rose in one region"),
        pytest.param([span(4)], span(4, {"": 0.03}, GONE, seed=2), 0.01, id="it rose as a region left"),
        pytest.param([span(4)], span(4, weight=GONE, seed=2), 0.0, id="a region left"),
        pytest.param(
            [span(4, WEST, GONE), span(20, WEST)],
            span(4, WEST, seed=2),
            0.0,
            id="a region returned as it was",
        ),
        pytest.param(
            [span(4, weight=GONE), span(20)], span(4, WEST, seed=2), 0.02 / 3, id="it returned with a rise"
        ),
        pytest.param(
            [span(4, weight={"east-0": 10})],
            span(4, {"east-0": 0.03, "": 0.02}, {"east-0": 10}, seed=2),
            0.01 / 12,
            id="one host that sends many samples rose by itself",
        ),
    ],
)
def test_each_is_held_against_itself(before: list[StrataMatrix], after: StrataMatrix, rise: float) -> None:
    found, error = rises_within(USUAL, before, after)[SERIES]
    assert found == pytest.approx(rise, abs=4 * error)
    assert 0 < error < 0.001


def test_a_series_of_one_region_alone_returns_with_it() -> None:
    alone = {"west": 0.04, "": 0.0}
    away = span(4, alone, GONE)
    nothing = StrataMatrix(0.0, HOUR_S, away.strata, away.totals, (), away.samples[:0], away.counted)
    found, error = rises_within(USUAL, [nothing, span(20, alone)], span(4, alone, seed=2))[SERIES]
    assert found == pytest.approx(0.0, abs=4 * error)
    appeared, error = rises_within(USUAL, [nothing, nothing], span(4, {"east": 0.03, "": 0.0}, GONE))[SERIES]
    assert appeared == pytest.approx(0.03 / 2, abs=4 * error)


@pytest.mark.parametrize(
    ("rates", "share"),
    [
        pytest.param(["10"] * 11 + ["100"], 1 / 12, id="of the CPU"),
        pytest.param(["10"] * 10 + ["", "100"], 10 / 21, id="of the samples, as one is not known"),
        pytest.param(["often"] * 11 + ["100"], 10 / 21, id="of the samples, as some are no numbers"),
    ],
)
def test_a_host_that_is_sampled_often_counts_for_its_share(rates: list[str], share: float) -> None:
    hosts = [replaced(one, rate_hz=rate) if rate else one for one, rate in zip(HOSTS, rates, strict=True)]
    often = hosts[-1].host
    more = {often: 10.0}
    usual, before = (span(hours, weight=more, strata=hosts) for hours in (240, 4))
    after = span(4, {often: 0.03, "": 0.02}, more, hosts, seed=2)
    found, error = rises_within(usual, [before], after)[SERIES]
    assert found == pytest.approx(0.01 * share, abs=4 * error)
    assert error < 0.0002


def replaced(old: Stratum, *, host: str = "", release: str = "", **labels: str) -> Stratum:
    return Stratum.of(dict(old.labels) | labels, host=host or old.host, release=release)


@pytest.mark.parametrize(
    ("then", "now"),
    [
        pytest.param(HOSTS, [replaced(one, release="r2") for one in HOSTS], id="another release"),
        pytest.param(HOSTS, [replaced(one, version="2") for one in HOSTS], id="another version by its label"),
        pytest.param(HOSTS, [replaced(one, rate_hz="99") for one in HOSTS], id="another sampling rate"),
        pytest.param(HOSTS, [replaced(one, host=f"new-{one.host}") for one in HOSTS], id="new hosts"),
    ],
)
def test_who_stays_the_same(then: Sequence[Stratum], now: Sequence[Stratum]) -> None:
    before, after = span(4, strata=then), span(4, {"": 0.03}, strata=now, seed=2)
    found, error = rises_within(span(240, strata=[*then, *now]), [before], after)[SERIES]
    assert found == pytest.approx(0.01, abs=4 * error)


@pytest.mark.parametrize(
    ("then", "now"),
    [
        pytest.param(HOSTS[:4], HOSTS[4:], id="others altogether"),
        pytest.param(HOSTS, [Stratum.of({"region": "south"}, host="s")], id="a region that was not there"),
        pytest.param(HOSTS[:1], HOSTS[:1], id="one host"),
        pytest.param([Stratum()], [Stratum()], id="nobody is known"),
    ],
)
def test_of_strangers_nothing_is_said(then: Sequence[Stratum], now: Sequence[Stratum]) -> None:
    usual = span(240, strata=sorted({*then, *now}))
    assert rises_within(usual, [span(4, strata=then)], span(4, strata=now, seed=2)) == {}


def test_of_what_begins_with_the_data_nothing_is_said() -> None:
    assert rises_within(USUAL, [], span(4, seed=2)) == {}


@pytest.mark.parametrize(
    ("within", "error", "whole", "passes"),
    [
        pytest.param(0.010, 0.0001, 0.010, True, id="all of it is left"),
        pytest.param(0.006, 0.0001, 0.010, True, id="most is"),
        pytest.param(0.004, 0.0001, 0.010, False, id="less than half is"),
        pytest.param(0.000, 0.0001, 0.010, False, id="nothing is"),
        pytest.param(0.004, 0.0030, 0.010, True, id="it is not known well enough"),
        pytest.param(0.016, 0.0001, 0.016, True, id="its cycle rises as well, for all"),
        pytest.param(-0.004, 0.0001, -0.004, True, id="its cycle falls by more than it rises"),
        pytest.param(0.001, 0.0001, 0.007, False, id="its cycle falls, and the mix makes the rise"),
    ],
)
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_what_is_left_decides(within: float, error: float, whole: float, passes: bool, sign: float) -> None:
    decision = decide(sign * 0.010, RiseWithin(sign * within, error, sign * whole))
    assert decision.passed is passes
    assert decision.statistic == pytest.approx(1 - (whole - within) / 0.010)
    assert decision.code == ("" if passes else "usual")
