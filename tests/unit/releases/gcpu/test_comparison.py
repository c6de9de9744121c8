"""Two releases against each other: errors are held, and rises are found."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array, vstack

from pipeline.model import SeriesKey, StrataMatrix, Stratum
from pipeline.model.units import HOUR_S
from pipeline.releases.gcpu import Decided, GcpuCompareConfig, Samples, collect, decide, match, measure
from tests.unit.releases.gcpu.pairs import RISEN, SERIES, Pair, draw

SMALL = GcpuCompareConfig(threshold=0.001)


def decided(samples: Samples, config: GcpuCompareConfig = SMALL) -> Decided:
    matched = match(samples, "v1", "v2")
    assert matched is not None
    return decide(measure(matched.observed), config)


def upto(samples: Samples, blocks: int) -> Samples:
    return samples.only(samples.block < blocks)


NULL = {
    "as many hosts of each": Pair(),
    "hosts that differ by a fifth": Pair(spread=0.2),
    "one canary": Pair(baseline=("west", "east") * 8, candidate=("west",)),
    "canary in one region only": Pair(candidate=("west",) * 4, region=0.8),
    "rates that differ": Pair(rates=1.0),
    "one block": Pair(blocks=1, samples=40_000),
    "few samples": Pair(samples=60),
    "one host after the other": Pair(rolling=True, blocks=12),
    "one host that costs more": Pair(outlier=0.05),
}


@pytest.mark.parametrize("pair", NULL.values(), ids=NULL.keys())
def test_releases_that_do_not_differ_are_seldom_called_slower(pair: Pair) -> None:
    found = [decided(draw(pair, seed)) for seed in range(40)]
    assert sum("slower" in one.state for one in found) <= 6  # 2 expected; more than 6 in 1 of 300 tries


WITHIN = {
    "as many hosts of each": Pair(spread=0.01, samples=20_000),
    "canary in one region only": Pair(
        spread=0.01, samples=20_000, baseline=("west", "east") * 8, candidate=("west",) * 4, region=0.8
    ),
    "rates that differ": Pair(spread=0.01, samples=20_000, rates=1.0),
    "one host after the other": Pair(samples=20_000, rolling=True, blocks=12),
}


@pytest.mark.parametrize("pair", WITHIN.values(), ids=WITHIN.keys())
def test_a_rise_of_a_hundredth_is_found_and_measured(pair: Pair) -> None:
    for seed in range(10):
        found = decided(draw(replace(pair, rise=0.01), seed), GcpuCompareConfig())
        assert found.state[RISEN] == "slower"
        change = found.candidate[RISEN] - found.baseline[RISEN]
        assert change == pytest.approx(0.009, abs=0.004)  # all else makes a tenth of room
        assert found.lower[RISEN] < change < found.upper[RISEN]


BASELINES = {
    "as many hosts of each": (Pair(), 8, None),
    "canary in one region only": (Pair(candidate=("west",) * 4, region=0.8), 8, None),
    "rates that differ": (Pair(rates=1.0), 8, None),
    "half of the hosts, one after the other": (Pair(rolling=True, blocks=12), 6, None),
    "the same, no label held": (Pair(rolling=True, blocks=12), 4, ()),
    "one after the other": (Pair(apart=True, blocks=16), 16, None),
}


@pytest.mark.parametrize(("pair", "blocks", "by"), BASELINES.values(), ids=BASELINES.keys())
def test_the_baseline_is_the_level_that_it_was_sampled_at(
    pair: Pair, blocks: int, by: tuple[str, ...] | None
) -> None:
    for seed in range(5):
        samples = upto(draw(replace(pair, spread=0.02, rise=0.5), seed), blocks)
        matched = match(samples, "v1", "v2", by)
        assert matched is not None
        observed = matched.observed
        found = decide(measure(observed), SMALL)
        counts = np.asarray(observed.counts.todense())
        both = np.intersect1d(observed.cell[observed.candidate], observed.cell[~observed.candidate])
        old = ~observed.candidate & np.isin(observed.cell, both)
        shares = counts[:, old] / observed.totals[old]
        assert (found.baseline >= shares.min(axis=1)).all()
        assert (found.baseline <= shares.max(axis=1)).all()
        pooled = counts[RISEN, old].sum() / observed.totals[old].sum()
        assert found.baseline[RISEN] == pytest.approx(pooled, rel=0.1)


def test_where_hosts_keep_their_release_the_change_is_that_of_both_levels() -> None:
    pair = Pair(baseline=("west",) * 4, candidate=("west",) * 4, blocks=1, spread=0.1)
    matched = match(draw(pair, 1), "v1", "v2")
    assert matched is not None
    observed, found = matched.observed, measure(matched.observed)
    shares = np.asarray(observed.counts.todense()) / observed.totals
    old, new = shares[:, ~observed.candidate].mean(axis=1), shares[:, observed.candidate].mean(axis=1)
    np.testing.assert_allclose(found.baseline, old, rtol=1e-9)
    np.testing.assert_allclose(found.change, new - old, atol=1e-12)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("sequential", [False, True])
def test_a_threshold_of_next_to_nothing_is_only_undecided(sequential: bool) -> None:
    found = decided(draw(Pair(), 1), GcpuCompareConfig(threshold=1e-300, sequential=sequential))
    assert found.state_of_all == "open"
    assert not np.isnan(found.p_value).any()


def test_intervals_cover_the_truth_as_often_as_they_say() -> None:
    held = [
        (found.lower[found.tested] < 0) & (found.upper[found.tested] > 0)
        for found in (decided(draw(Pair(), seed)) for seed in range(30))
    ]
    assert np.concatenate(held).mean() == pytest.approx(0.95, abs=0.02)


def test_what_is_detectable_is_found_in_nine_of_ten_cases() -> None:
    pair, found = Pair(spread=0.01), []
    for seed in range(40):
        size = float(decided(draw(pair, seed)).detectable[RISEN])
        found.append(decided(draw(replace(pair, rise=size / 0.9), 1_000 + seed)).state[RISEN])
    assert 30 <= found.count("slower") <= 40


def test_a_host_alone_is_named_and_is_not_the_release() -> None:
    samples = draw(Pair(outlier=0.2, spread=0.002, baseline=("west",) * 20, candidate=("west",) * 5), seed=1)
    matched = match(samples, "v1", "v2")
    assert matched is not None
    contrast = measure(matched.observed)
    found = decide(contrast, SMALL)
    assert found.state[RISEN] != "slower"
    assert matched.units[contrast.unit[RISEN]] == "h24"
    assert contrast.without[RISEN] < 0.2 * contrast.change[RISEN]


def test_samples_that_are_missing_are_as_many_as_it_then_takes() -> None:
    pair = Pair(spread=0.0, samples=300)
    short = [decided(draw(pair, seed), GcpuCompareConfig()) for seed in range(9)]
    assert {one.state_of_all for one in short} == {"open"}
    times = float(np.median([one.more_samples for one in short]))
    assert 1 < times < 30
    enough = replace(pair, samples=round(300 * times))
    found = [decided(draw(enough, seed), GcpuCompareConfig()).state_of_all for seed in range(10)]
    assert found.count("steady") >= 8


def test_where_hosts_differ_too_much_more_hosts_are_asked_for() -> None:
    found = decided(draw(Pair(spread=0.3, samples=200_000, blocks=2), 3), GcpuCompareConfig())
    assert found.state_of_all == "open"
    assert not np.isfinite(found.more_samples)
    assert found.more_units > 2


def test_bounds_that_hold_at_all_looks_are_seldom_crossed_at_any() -> None:
    pair, config = Pair(blocks=10, samples=3_000), GcpuCompareConfig(threshold=0.001, sequential=True)
    crossed = 0
    for seed in range(20):
        samples = draw(pair, seed)
        crossed += any("slower" in decided(upto(samples, n), config).state for n in range(1, 11))
    assert crossed <= 3


def test_a_watched_canary_stops_early_when_it_is_much_slower() -> None:
    config = GcpuCompareConfig(sequential=True)
    pair = Pair(blocks=10, spread=0.01, samples=20_000, rise=0.05)
    samples = draw(pair, 1)
    looks = [decided(upto(samples, n), config).state[RISEN] for n in range(1, 5)]
    assert "slower" in looks
    assert decided(samples, config).state[RISEN] == "slower"


def test_releases_one_after_the_other_are_weaker_evidence() -> None:
    matched = match(draw(Pair(apart=True, blocks=16), 1), "v1", "v2")
    assert matched is not None
    assert (matched.evidence, matched.unit, matched.held) == ("one_after_the_other", "block", ("region",))
    beside = match(draw(Pair(), 1), "v1", "v2")
    assert beside is not None
    assert (beside.evidence, beside.unit, beside.held) == ("side_by_side", "host", ("region",))
    assert beside.hosts == (6, 6)
    few = match(draw(Pair(baseline=("west",), candidate=("west",)), 1), "v1", "v2")
    assert few is not None
    assert (few.unit, few.shared_host) == ("host_and_block", False)


def test_labels_that_releases_do_not_share_are_not_held_apart() -> None:
    matched = match(draw(Pair(baseline=("west",) * 4, candidate=("east",) * 4), 1), "v1", "v2")
    assert matched is not None
    assert (matched.held, matched.not_held) == ((), ("region",))


def test_a_label_that_names_the_host_or_has_one_value_is_no_matter() -> None:
    samples = draw(Pair(), 1)
    named = [
        Stratum.of(
            {**dict(stratum.labels), "pod": f"p-{stratum.host}", "rate_hz": "99"},
            host=stratum.host,
            release=stratum.release,
        )
        for stratum in samples.strata
    ]
    matched = match(replace(samples, strata=tuple(named)), "v1", "v2")
    assert matched is not None
    assert (matched.held, matched.not_held) == (("region",), ())


NAMES = {
    "release": (Stratum.of({}, release="v1"), "v1", True),
    "another": (Stratum.of({}, release="v1"), "v2", False),
    "label of a release": (Stratum.of({"image": "shop:7"}), "shop:7", True),
    "release and its label": (Stratum.of({"image": "i"}, release="v1"), "v1;image=i", True),
    "any label as name=value": (Stratum.of({"track": "canary"}), "track=canary", True),
    "value of any label": (Stratum.of({"track": "canary"}), "canary", False),
}


@pytest.mark.parametrize(("stratum", "name", "runs"), NAMES.values(), ids=NAMES.keys())
def test_a_release_is_named_by_itself_or_a_label(stratum: Stratum, name: str, runs: bool) -> None:
    matrix = StrataMatrix(0.0, 60.0, (stratum,), np.ones((1, 1)), SERIES[:1], np.ones((1, 1)))
    samples = collect([matrix])
    assert samples is not None
    assert samples.of(name).all() == runs


def test_nothing_is_compared_without_samples() -> None:
    empty = StrataMatrix(0.0, 60.0, (), np.zeros((0, 1)), (), np.zeros((0, 0)))
    assert collect([empty]) is None
    assert match(draw(Pair(), 1), "v1", "v3") is None
    assert match(draw(Pair(), 1), "v1", "v1") is None


def test_a_series_that_all_samples_hold_cannot_rise() -> None:
    samples = draw(Pair(), 1)
    whole = np.bincount(np.arange(len(samples.totals)), samples.totals)[None, :]
    root = replace(
        samples,
        series=(*samples.series, SeriesKey("subroutine", "main")),
        counts=csr_array(vstack([samples.counts, csr_array(whole)])),
    )
    found = decided(root)
    assert not found.tested[-1]
    assert found.state[-1] == "steady"
    assert found.state[:-1] == decided(samples).state


@pytest.mark.parametrize(
    ("hosts", "running", "evidence"),
    [
        (("a", "a"), ("1", "12", "2"), "one_after_the_other"),
        (("a", "a"), ("1", "12", "12", "2"), "one_after_the_other"),
        (("a", "a"), ("12",), "one_after_the_other"),
        (("a", "a"), ("12", "12", "12", "12"), "side_by_side"),
        (("a", "b"), ("1", "12", "12", "2"), "side_by_side"),
        (("a", "b"), ("12",), "side_by_side"),
        (("", ""), ("12", "12"), "side_by_side"),
        (("a", "b"), ("1", "1", "2", "2"), "one_after_the_other"),
    ],
    ids=[
        "a handover",
        "within two blocks",
        "within the only one",
        "two processes of a host",
        "rollout",
        "canary of a block",
        "hosts unknown",
        "apart",
    ],
)
def test_a_handover_on_one_host_is_not_side_by_side(
    hosts: tuple[str, str], running: tuple[str, ...], evidence: str
) -> None:
    parts = []
    for block, releases in enumerate(running):
        strata = tuple(
            sorted(Stratum.of({}, host=hosts[int(name) - 1], release=f"v{name}") for name in releases)
        )
        counts = np.full((2, len(strata)), 50.0)
        parts.append(StrataMatrix(block * HOUR_S, HOUR_S, strata, 2 * counts[:1].T, SERIES[:2], counts))
    samples = collect(parts)
    assert samples is not None
    matched = match(samples, "v1", "v2")
    assert matched is not None
    assert matched.evidence == evidence


@pytest.mark.parametrize("samples", [1, 3, 10])
@pytest.mark.parametrize("blocks", [1, 2])
@pytest.mark.parametrize("apart", [False, True])
def test_whatever_was_sampled_bounds_are_those_of_a_share(samples: int, blocks: int, apart: bool) -> None:
    if apart and blocks == 1:
        return
    pair = Pair(baseline=("west",), candidate=("west",), blocks=blocks, samples=samples, apart=apart)
    found = decided(draw(pair, 1), GcpuCompareConfig())
    assert (found.lower >= -found.baseline - 1e-9).all()
    assert (found.upper <= 1 - found.baseline + 1e-9).all()
    assert ((found.lower <= 1e-9) & (found.upper >= -1e-9)).all()
