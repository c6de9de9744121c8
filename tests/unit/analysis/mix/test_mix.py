"""Series at a constant mix of senders: what the mix makes goes, what time or a release makes stays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pipeline.analysis.mix.mix import fit_mix
from pipeline.analysis.mix.standardise import KEY, common_series, decide, moved_series, standardise
from pipeline.model import Candidate, FloatArray, SeriesKey, SeriesMatrix, StrataMatrix, Stratum
from pipeline.model.units import HOUR_S

BLOCKS, SERIES, HOSTS = 240, 120, 18
AT = 200
Counts = tuple[list[Stratum], Any, Any]  # strata, (strata, blocks), (series, strata, blocks)


def draw(
    strata: Sequence[Stratum],
    totals: Any,
    differing: Any,
    course: Any = None,
    seed: int = 1,
) -> Counts:
    """Draw counts of series whose strata differ, in (series, strata), and that change, in all dimensions."""
    rng = np.random.default_rng(seed)
    shares = 10 ** rng.uniform(-3.5, -1.2, len(differing))
    shares[0] = 0.02
    expected = shares[:, None, None] * differing[:, :, None] * totals
    return list(strata), totals, rng.poisson(expected if course is None else expected * course) * 1.0


def strata_matrix(counts: Counts) -> tuple[StrataMatrix, FloatArray]:
    strata, totals, samples = counts
    series = tuple(SeriesKey("subroutine", f"f{i:03d}") for i in range(len(samples)))
    matrix = StrataMatrix(0.0, HOUR_S, tuple(strata), totals, series, samples.sum(axis=2))
    return matrix, samples.sum(axis=1)


def matrices(counts: Counts) -> tuple[SeriesMatrix, SeriesMatrix, StrataMatrix]:
    """Return the series as they were counted, the same at a constant mix, and the strata."""
    strata, blocks = strata_matrix(counts)
    kinds, names = zip(*strata.series, strict=True)
    raw = SeriesMatrix(0.0, HOUR_S, kinds, names, blocks, strata.totals.sum(axis=0))
    mix = fit_mix(strata, blocks)
    return (
        raw,
        raw if mix is None else standardise(raw, mix.series, mix.factors(strata.strata, strata.totals)),
        strata,
    )


def rises(matrix: SeriesMatrix, at: int, end: int = BLOCKS) -> tuple[FloatArray, FloatArray]:
    """Return each series' relative rise after a block, and how many standard errors of counting it is."""
    before, after = matrix.samples[:, :at].sum(axis=1), matrix.samples[:, at:end].sum(axis=1)
    shares = before / matrix.totals[:at].sum()
    expected = shares * matrix.totals[at:end].sum()
    error = np.sqrt(expected * (1 + matrix.totals[at:end].sum() / matrix.totals[:at].sum()))
    return after / expected - 1, (after - expected) / error


def regions(spread: float) -> Counts:
    """Return hosts in three regions, their samples, and how series differ between the regions."""
    rng = np.random.default_rng(2)
    strata = [Stratum.of({"region": f"r{host % 3}"}, host=f"h{host:02d}") for host in range(HOSTS)]
    factors = np.exp(spread * rng.standard_normal((SERIES, 3)))
    of = [host % 3 for host in range(HOSTS)]
    return strata, rng.poisson(3000, (HOSTS, BLOCKS)) * 1.0, factors[:, of]


def test_a_drained_region_moves_nothing() -> None:
    strata, totals, differing = regions(0.3)
    totals[::3, AT : AT + 24] = 0
    raw, constant, _ = matrices(draw(strata, totals, differing))
    assert rises(raw, AT, AT + 24)[1].std() > 8
    assert rises(constant, AT, AT + 24)[1].std() == pytest.approx(1, abs=0.25)


def test_a_regression_during_a_drain_stays() -> None:
    strata, totals, differing = regions(0.3)
    totals[::3, AT:] = 0
    course = np.ones((SERIES, HOSTS, BLOCKS))
    course[0, :, AT:] = 1.1
    _, constant, _ = matrices(draw(strata, totals, differing, course))
    relative, scores = rises(constant, AT)
    assert relative[0] == pytest.approx(0.1, abs=0.02)
    assert scores[1:].std() == pytest.approx(1, abs=0.25)


def test_hosts_that_do_not_differ_leave_counts_as_they_are() -> None:
    strata, totals, _ = regions(0)
    totals[::3, AT:] = 0
    raw, constant, _ = matrices(draw(strata, totals, np.ones((SERIES, HOSTS))))
    same = (constant.samples == raw.samples).all(axis=1)
    assert same.mean() > 0.97, "to the last digit, so that what is judged stays as it was"
    np.testing.assert_allclose(constant.samples, raw.samples, rtol=0.05, atol=1)
    assert rises(constant, AT)[1].std() == pytest.approx(1, abs=0.25)


def test_one_host_at_ten_times_the_rate() -> None:
    """It runs what no other does, as a host of another role would."""
    strata = [Stratum(host=f"h{host}") for host in range(20)]
    totals = np.random.default_rng(3).poisson(3000, (20, BLOCKS)) * 1.0
    differing = np.ones((SERIES, 20))
    differing[1, 4:] = 0.0
    differing[2] = np.where(np.arange(20) == 7, 3.0, 1.0)
    totals[7, AT:] *= 10
    raw, constant, _ = matrices(draw(strata, totals, differing))
    assert rises(raw, AT)[0][2] > 0.4
    np.testing.assert_array_less(np.abs(rises(constant, AT)[1][[1, 2]]), 3)
    assert rises(constant, AT)[1][3:].std() == pytest.approx(1, abs=0.25)


def staged(*, pods: bool, labelled: bool) -> Counts:
    """Return a release that costs 10 % more in one series and comes in four stages."""
    rng = np.random.default_rng(4)
    cells: dict[Stratum, tuple[FloatArray, bool]] = {}
    for host in range(HOSTS):
        at = AT + [0, 3, 6, 12][min(host // 4, 3)]
        samples = rng.poisson(3000, BLOCKS) * 1.0
        now = np.arange(BLOCKS) >= at
        for new in (False, True):
            name = f"h{host}" + ("-new" if new and pods else "")
            stratum = Stratum(host=name, release=f"v{1 + new}" if labelled else "")
            held = cells.get(stratum, (np.zeros(BLOCKS), new))[0]
            cells[stratum] = (held + np.where(now == new, samples, 0.0), new)
    strata = list(cells)
    course = np.ones((SERIES, len(strata), BLOCKS))
    for row, stratum in enumerate(strata):
        number = int(stratum.host.removesuffix("-new")[1:])
        course[0, row, AT + [0, 3, 6, 12][min(number // 4, 3)] :] = 1.1
    return draw(strata, np.array([cells[one][0] for one in strata]), np.ones((SERIES, len(strata))), course)


@pytest.mark.parametrize("pods", [False, True])
@pytest.mark.parametrize("labelled", [False, True])
def test_what_a_release_costs_is_no_mix(pods: bool, labelled: bool) -> None:
    """Neither where its hosts go on nor where every host is new, nor where nothing says what runs."""
    _, constant, _ = matrices(staged(pods=pods, labelled=labelled))
    relative, scores = rises(constant, AT + 12)
    assert relative[0] == pytest.approx(0.1, abs=0.015)
    assert scores[1:].std() == pytest.approx(1, abs=0.25)


def test_a_machine_type_that_comes_in_over_days() -> None:
    rng = np.random.default_rng(5)
    share = np.clip((np.arange(BLOCKS) - 100) / 80, 0, 1)
    totals = np.array([rng.poisson(60_000 * (1 - share)), rng.poisson(60_000 * share)]) * 1.0
    factors = np.stack([np.ones(SERIES), np.exp(0.2 * rng.standard_normal(SERIES))], axis=1)
    strata = [Stratum.of({"machine": machine}) for machine in ("old", "new")]
    raw, constant, _ = matrices(draw(strata, totals, factors))
    # What is left: while time and mix go together, nothing says more of how the types differ.
    assert rises(constant, 140)[1].std() < rises(raw, 140)[1].std() / 10


@pytest.mark.parametrize(
    ("make", "known"),
    [
        (lambda: [Stratum(host="a"), Stratum(host="b")], True),
        (lambda: [Stratum(release="a"), Stratum(release="b")], False),
        (lambda: [Stratum.of({"version": "a"}), Stratum.of({"version": "b"})], False),
        (lambda: [Stratum.of({"region": "a"}), Stratum.of({"region": "b"})], True),
        (lambda: [Stratum()], False),
        (list, False),
    ],
)
def test_what_a_mix_is_of(make: Callable[[], list[Stratum]], known: bool) -> None:
    strata = make()
    totals = np.full((len(strata), 10), 100.0)
    samples = 10.0 + 80.0 * np.arange(len(strata), dtype=np.float64)[np.newaxis]
    matrix = StrataMatrix(0, HOUR_S, tuple(strata), totals, (SeriesKey("subroutine", "f"),), samples)
    assert (fit_mix(matrix, np.full((1, 10), samples.sum() / 10)) is not None) == known


def test_the_ledger_says_what_moved() -> None:
    strata, totals, differing = regions(0.3)
    totals[::3, AT:] *= 0.1
    raw, constant, windows = matrices(draw(strata, totals, differing))
    fitted = fit_mix(windows, raw.samples)
    assert fitted is not None
    factors = fitted.factors(windows.strata, windows.totals)
    assert moved_series(fitted, factors, raw, AT, 1e-4)
    assert not moved_series(fitted, factors, raw, AT, 0.5)
    row = int(np.argmax(rises(raw, AT)[1]))
    one = Candidate("subroutine", raw.names[row], "short_term", AT * HOUR_S, 0.01, 0.02, 1e-9, 50.0)
    (dropped,) = decide([one], raw, constant, fitted, windows)
    assert (dropped.candidate, dropped.decision.step, dropped.decision.code) == (one, KEY, "senders")
    assert abs(dropped.decision.statistic) < 0.1
    assert dropped.decision.subjects == ("region=r0",)
    own = replace(constant, samples=raw.samples)
    assert decide([one], raw, own, fitted, windows) == []


def test_strata_that_come_later_are_as_the_others() -> None:
    strata, totals, differing = regions(0.3)
    matrix, blocks = strata_matrix(draw(strata, totals, differing))
    fitted = fit_mix(matrix, blocks)
    assert fitted is not None
    known = fitted.differing([Stratum.of({"region": "r1"}, host="new")])[:, 0]
    np.testing.assert_allclose(known, fitted.differing(strata)[:, 1], rtol=0.05)
    np.testing.assert_array_equal(fitted.differing([Stratum.of({"region": "r9"})]), 1)


def test_hosts_that_have_not_sent_yet_say_nothing() -> None:
    """Half of the hosts are late, and some series run nowhere else: their last windows are as always."""
    strata = [Stratum(host=f"h{host}") for host in range(20)]
    totals = np.random.default_rng(3).poisson(3000, (20, BLOCKS)) * 1.0
    totals[::2, -3:] = 0
    differing = np.ones((SERIES, 20))
    differing[:20, 1::2] = 0.0
    raw, constant, _ = matrices(draw(strata, totals, differing))
    assert rises(raw, BLOCKS - 3)[0][:20].max() < -0.9
    assert np.abs(rises(constant, BLOCKS - 3)[0][:20]).max() < 0.1


def test_what_comes_in_between_two_reads_is_left_out() -> None:
    strata, totals, differing = regions(0.3)
    counts, blocks = strata_matrix(draw(strata, totals, differing))
    kinds, names = zip(*counts.series[1:], strict=True)
    later = SeriesMatrix(0.0, HOUR_S, kinds, names, blocks[1:], totals.sum(axis=0))
    newcomer = Stratum.of({"region": "r7"}, host="new")
    senders = replace(
        counts, strata=(*counts.strata, newcomer), totals=np.vstack([totals, totals[:1]]), series=()
    )
    joined, held = common_series(counts, later, senders)
    assert (joined.strata, joined.series) == (counts.strata, counts.series[1:])
    np.testing.assert_array_equal(joined.totals, totals)
    np.testing.assert_array_equal(joined.samples, counts.samples[1:])
    np.testing.assert_array_equal(held, blocks[1:])


def test_a_series_that_only_strata_know_has_no_mix() -> None:
    # Counts by stratum are of whole hours, and the windows of a young service of a part of one.
    strata = tuple(Stratum(host=f"h{number}") for number in range(5))
    totals = np.full((5, 4), 1000.0)
    key = SeriesKey("subroutine", "f")
    counts = StrataMatrix(0, HOUR_S, strata, totals, (key,), np.array([[9.0, 0, 1, 40, 2]]))
    with np.errstate(all="raise"):
        assert fit_mix(counts, np.zeros((1, 4))) is None
