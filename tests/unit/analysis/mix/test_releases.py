"""Releases side by side: found early, dated at their first stage, and not where nothing changed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtr

from pipeline.analysis.mix.mix import Mix
from pipeline.analysis.mix.releases import (
    ReleaseCosts,
    ReleaseEffect,
    Rollout,
    brought_by,
    compare,
    find_rollouts,
    project,
    release_starts,
    side_by_side,
    since_deployed,
)
from pipeline.model import SeriesKey, SeriesMatrix, StrataMatrix, Stratum
from pipeline.model.units import HOUR_S
from tests.support.builders import build_candidate

BLOCKS, HOSTS, SERIES, AT = 48, 20, 200, 24
STAGES = ((0, 1), (4, 5), (8, 12), (12, 20))


def stage_of(host: int) -> int:
    """Return when the release reaches a host, in blocks after its start."""
    return next(at for at, hosts in STAGES if host < hosts)


def rollout(
    *, ratio: float = 1.0, until: int = BLOCKS, seed: int = 1, spread: float = 0.0, per_host: float = 3000
) -> tuple[StrataMatrix, SeriesMatrix]:
    """Draw a staged rollout of v2 over v1, of which the first series' cost changes, up to a block."""
    rng = np.random.default_rng(seed)
    shares = 10 ** rng.uniform(-3.5, -1.2, SERIES)
    shares[0] = 0.02
    own = np.exp(spread * rng.standard_normal((SERIES, HOSTS)))
    strata, totals, samples = [], [], []
    for host in range(HOSTS):
        sent = rng.poisson(per_host, until) * 1.0
        new = np.arange(until) >= AT + stage_of(host)
        for version, runs in (("v1", ~new), ("v2", new)):
            strata.append(Stratum(f"h{host:02d}", version))
            totals.append(np.where(runs, sent, 0.0))
            factor = np.where(np.arange(SERIES) == 0, ratio if version == "v2" else 1.0, 1.0)
            expected = (shares * factor * own[:, host])[:, None] * totals[-1]
            samples.append(rng.poisson(expected) * 1.0)
    series = tuple(SeriesKey("subroutine", f"f{i}") for i in range(SERIES))
    held = np.array(samples)
    matrix = StrataMatrix(0.0, HOUR_S, tuple(strata), np.array(totals), series, held.sum(axis=2).T)
    kinds, names = zip(*series, strict=True)
    counted = SeriesMatrix(0.0, HOUR_S, kinds, names, held.sum(axis=0), matrix.totals.sum(axis=0))
    return matrix, counted


def effects_of(strata: StrataMatrix, counted: SeriesMatrix) -> dict[SeriesKey, ReleaseEffect]:
    (found,) = find_rollouts(strata, HOUR_S)
    side = side_by_side(strata, counted.samples, None, release_starts(strata), found, {})
    return ReleaseCosts(found, strata.series, *compare(side)).changed(among=SERIES)


def test_a_rollout_is_from_its_first_host_to_its_last() -> None:
    strata, _ = rollout()
    assert find_rollouts(strata, HOUR_S) == [Rollout("v2", AT * HOUR_S, (AT + 12) * HOUR_S)]
    assert find_rollouts(strata, (AT + 1) * HOUR_S) == []
    early, _ = rollout(until=AT + 2)
    assert find_rollouts(early, HOUR_S) == [Rollout("v2", AT * HOUR_S, (AT + 2) * HOUR_S)]


@pytest.mark.parametrize(
    ("deployed", "start"),
    [
        pytest.param([], AT, id="nothing is known"),
        pytest.param([AT], AT, id="with the first host"),
        pytest.param([AT - 2], AT, id="announced early"),
        pytest.param([AT, AT + 8], AT, id="and another with most hosts"),
        pytest.param([AT + 12], AT + 12, id="with most hosts"),
        pytest.param([AT + 10.5, AT + 60], AT + 12, id="a little before them"),
        pytest.param([AT + 5], AT, id="in between"),
        pytest.param([AT - 20, AT + 40], AT, id="before and after"),
    ],
)
def test_nobody_runs_what_is_not_deployed(deployed: list[float], start: float) -> None:
    """The first host has v2 twelve hours before eighteen others; the last one has it a day after them."""
    hosts = [Stratum(f"h{host:02d}", version) for host in range(HOSTS) for version in ("v1", "v2")]
    new = np.array([0, *[12] * (HOSTS - 2), 36])[:, np.newaxis] <= np.arange(2 * BLOCKS) - AT
    totals = 9.0 * np.stack([~new, new], axis=1).reshape(2 * HOSTS, -1).astype(np.float64)
    strata = StrataMatrix(0.0, HOUR_S, tuple(hosts), totals, (), np.zeros((0, 2 * HOSTS)))
    rollouts = find_rollouts(strata, HOUR_S)
    (found,) = since_deployed(strata, rollouts, [hour * HOUR_S for hour in deployed])
    assert found == replace(rollouts[0], start=start * HOUR_S)


def test_an_aborted_rollout_ends_with_its_release() -> None:
    strata, _ = rollout()
    totals = strata.totals.copy()
    new = [one.release == "v2" for one in strata.strata]
    totals[new, AT + 6 :] = 0
    totals[np.logical_not(new), AT + 6 :] = 3000
    assert find_rollouts(replace(strata, totals=totals), 0.0)[-1] == Rollout(
        "v2", AT * HOUR_S, (AT + 6) * HOUR_S
    )


def test_what_replaces_another_at_once_is_no_rollout() -> None:
    strata = (Stratum(release="v1"), Stratum(release="v2"))
    totals = np.array([[9.0] * 3 + [0] * 3, [0.0] * 3 + [9] * 3])
    matrix = StrataMatrix(0.0, HOUR_S, strata, totals, (), np.zeros((0, 2)))
    assert find_rollouts(matrix, 0.0) == []


@pytest.mark.parametrize(
    ("ratio", "until", "found"),
    [
        (1.1, BLOCKS, True),
        (0.85, BLOCKS, True),
        (1.5, AT + 3, True),  # one host of twenty, for three hours
        (1.02, AT + 3, False),
    ],
)
def test_an_effect_is_found_with_its_size(ratio: float, until: int, found: bool) -> None:
    effects = effects_of(*rollout(ratio=ratio, until=until))
    assert set(effects) == ({SeriesKey("subroutine", "f0")} if found else set())
    for effect in effects.values():
        assert effect.ratio == pytest.approx(ratio, rel=0.12)


@pytest.mark.parametrize("spread", [0.0, 0.05, 0.3])
def test_chance_and_hosts_of_their_own_make_no_effect(spread: float) -> None:
    """Hosts that differ by themselves are no release, though one of them has it first."""
    p_values = np.concatenate(
        [
            compare(side_by_side(s, c.samples, None, release_starts(s), find_rollouts(s, HOUR_S)[0], {}))[1]
            for s, c in (rollout(seed=seed, spread=spread, until=AT + 6) for seed in range(10))
        ]
    )
    assert (p_values < 0.05).mean() < 0.09
    assert (p_values < 0.001).mean() < 0.004
    assert (p_values < 0.001 / SERIES).sum() <= 1


def test_a_series_is_as_if_the_release_had_come_at_once() -> None:
    strata, counted = rollout(ratio=1.1)
    starts, rollouts = release_starts(strata), {"v2": find_rollouts(strata, HOUR_S)[0]}
    effects = {SeriesKey("subroutine", "f0"): (ReleaseEffect("v2", 1.1, 0.0),)}
    at_once = project(counted, None, strata, rollouts, starts, effects)
    levels = at_once.samples[0] / at_once.totals
    assert levels[:AT].mean() == pytest.approx(0.02, rel=0.02)
    assert levels[AT : AT + 12].mean() == pytest.approx(0.022, rel=0.02)
    assert levels[AT + 12 :].mean() == pytest.approx(0.022, rel=0.02)
    np.testing.assert_array_equal(at_once.samples[1:], counted.samples[1:])


def half_way(z_expected: float, of_rise: float) -> tuple[float, float]:
    """Return ratio and p-value where hosts say so much of a rise by a fifth, which is so many errors."""
    ratio = 1.2**of_rise
    return ratio, float(2 * ndtr(-abs(z_expected * of_rise)))


BROUGHT = {
    "all of it, for sure": (half_way(5, 1.0), (0, 0), True),
    "all of it, hardly": (half_way(1.5, 1.0), (0, 0), True),
    "most of it": (half_way(3, 0.6), (0, 0), True),
    "the smaller part": (half_way(3, 0.4), (0, 0), False),
    "nothing": (half_way(3, 0.001), (0, 0), False),
    "a fall": (half_way(3, -1.0), (0, 0), False),
    "hosts that can say nothing": (half_way(0.5, 1.0), (0, 0), False),
    "no counts at all": ((1.0, 1.0), (0, 0), False),
    "beyond doubt": ((1.2, 0.0), (0, 0), True),
    "an interval that ends before the rollout": (half_way(5, 1.0), (-7, -5.5), False),
    "one that ends as it begins": (half_way(5, 1.0), (-7, -3.5), True),
    "one that begins as it ends": (half_way(5, 1.0), (12.5, 14), True),
    "one that begins after it": (half_way(5, 1.0), (14, 20), False),
}


@pytest.mark.parametrize(("said", "hours", "brought"), BROUGHT.values(), ids=BROUGHT.keys())
@pytest.mark.parametrize("falls", [False, True])
def test_a_release_or_a_time(
    said: tuple[float, float], hours: tuple[float, float], brought: bool, falls: bool
) -> None:
    """A rise by a fifth in hour 40, which v2 may have brought: it rolled out from hour 36 to 52."""
    one = Rollout("v2", 36 * HOUR_S, 52 * HOUR_S)
    ratio, p_value = said
    levels = (0.024, 0.02) if falls else (0.02, 0.024)
    candidate = replace(
        build_candidate("f0", before=levels[0], after=levels[1], change_time=40 * HOUR_S),
        change_time_interval=((40 + hours[0]) * HOUR_S, (40 + hours[1]) * HOUR_S),
    )
    compared = ReleaseCosts(
        one, [candidate.series], np.array([1 / ratio if falls else ratio]), np.array([p_value])
    )
    found = brought_by(candidate, [compared], HOUR_S)
    assert found == ((ReleaseEffect("v2", compared.ratios[0], p_value), one) if brought else None)
    other = replace(candidate, metric="f1")
    assert brought_by(other, [compared], HOUR_S) is None
    assert brought_by(replace(candidate, after=candidate.before), [compared], HOUR_S) is None


def test_of_two_releases_the_surer_brought_it() -> None:
    candidate = build_candidate("f0", before=0.02, after=0.024, change_time=40 * HOUR_S)
    said = {"v2": half_way(2, 1.0), "v3": half_way(3, 1.0), "v4": half_way(9, 0.1)}
    compared = [
        ReleaseCosts(Rollout(name, 36 * HOUR_S, 52 * HOUR_S), [candidate.series], *map(np.atleast_1d, one))
        for name, one in said.items()
    ]
    found = brought_by(candidate, compared, HOUR_S)
    assert found is not None
    assert found[0].release == "v3"


def test_a_later_release_holds_what_the_one_before_it_changed() -> None:
    """The second of two rollouts that overlap changes nothing: what it has, it has from the first."""
    rng = np.random.default_rng(7)
    strata, totals, means = [], [], []
    for host in range(HOSTS):
        first, second = AT + host % 10, AT + 5 + host % 10
        now = np.arange(BLOCKS)
        for version, runs in (
            ("v1", now < first),
            ("v2", (now >= first) & (now < second)),
            ("v3", now >= second),
        ):
            strata.append(Stratum(f"h{host}", version))
            totals.append(np.where(runs, 3000.0, 0.0))
            means.append(totals[-1] * 0.02 * (1.0 if version == "v1" else 1.2))
    samples = rng.poisson(np.array(means)) * 1.0
    series = (SeriesKey("subroutine", "f0"),)
    matrix = StrataMatrix(
        0.0, HOUR_S, tuple(strata), np.array(totals), series, samples.sum(axis=1)[np.newaxis]
    )
    starts = release_starts(matrix)
    found: dict[SeriesKey, list[ReleaseEffect]] = {}
    mix: Mix | None = None
    for one in find_rollouts(matrix, HOUR_S):
        side = side_by_side(matrix, samples.sum(axis=0)[np.newaxis], mix, starts, one, found)
        for key, effect in ReleaseCosts(one, series, *compare(side)).changed(among=1).items():
            found.setdefault(key, []).append(effect)
    (effect,) = found[series[0]]
    assert effect.release == "v2"
    assert effect.ratio == pytest.approx(1.2, rel=0.03)
