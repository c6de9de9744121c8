"""Looks at a rollout: what each decides, when it is due, and which periods it has."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from pipeline.model import FloatArray, MetricKind, RequestPeriods, SeriesMatrix
from pipeline.releases import LookConfig, Looked, Rollout, find_rollout, look, look_ends, periods_ahead
from pipeline.releases.looks import FIRST_PERIODS, LOOKS

START = 1_700_000_010.0
WIDTH = 30.0
COSTS = np.array([0.004, 0.002, 0.001])
TYPES = ("GET /a", "GET /b", "GET /c")


def requests(*releases: tuple[str, FloatArray]) -> RequestPeriods:
    """Counts of releases, each (periods, types), in the same periods."""
    rows = sorted(
        (release, TYPES[type_], START + WIDTH * period, counts[period, type_])
        for release, counts in releases
        for period, type_ in np.argwhere(counts > 0).tolist()
    )
    names, types, starts, many = zip(*rows, strict=True)
    return RequestPeriods(names, types, np.array(starts), np.full(len(rows), WIDTH), np.array(many))


def load(periods: int, seed: int = 0) -> FloatArray:
    rng = np.random.default_rng(seed)
    scale = np.exp(0.3 * rng.standard_normal((periods, len(TYPES))))
    return rng.poisson(scale * [100, 150, 200]).astype(np.float64)


def share_of_new(periods: int, old: int, side_by_side: float) -> FloatArray:
    return np.where(np.arange(periods) < old, 0.0, side_by_side or 1.0)[:, None]


def case(
    rise: float = 0.0, side_by_side: float = 0.0, old: int = 300, new: int = 120, faster: float = 0.0
) -> tuple[Rollout, SeriesMatrix]:
    """One type costs more in the new release, another less; ``side_by_side`` is the new one's share."""
    counts = load(old + new)
    own = np.floor(counts * share_of_new(old + new, old, side_by_side))
    rng = np.random.default_rng(1)
    extra = own @ (COSTS * [0.0, rise, -faster])
    cpu = (0.1 + counts @ COSTS + extra) * (1.0 + 0.02 * rng.standard_normal(len(counts)))
    rollout = find_rollout(requests(("v1", counts - own), ("v2", own)))
    assert rollout is not None
    return rollout, matrix({"cpu": cpu})


def matrix(values: dict[str, FloatArray]) -> SeriesMatrix:
    samples = np.array([*values.values()])
    kinds: list[MetricKind] = ["service" for _ in values]
    return SeriesMatrix(START, WIDTH, (*kinds,), (*values,), samples, np.ones(samples.shape[1]))


def said(found: Looked) -> tuple[list[str], list[str]]:
    """Types that cost more, and codes of what was dropped."""
    return (
        [one.subjects[0] for each in found.candidates for one in each.passed],
        [each.decision.code for each in found.dropped],
    )


@pytest.mark.parametrize(
    ("given", "types", "dropped"),
    [
        pytest.param({}, [], [], id="equal"),
        pytest.param({"rise": 0.3}, ["GET /b"], [], id="dearer"),
        pytest.param({"rise": 0.5, "side_by_side": 0.4}, ["GET /b"], [], id="dearer, side by side"),
        pytest.param({"side_by_side": 0.4}, [], [], id="equal, side by side"),
        pytest.param({"rise": -0.3}, [], [], id="cheaper"),
        pytest.param({"rise": 0.5, "old": 600, "new": 40}, ["GET /b"], [], id="few new periods"),
        pytest.param({"rise": 0.5, "old": 12}, [], ["few_periods"], id="few old periods"),
    ],
)
def test_what_a_look_decides(given: dict[str, float], types: Sequence[str], dropped: Sequence[str]) -> None:
    rollout, metrics = case(**given)  # type: ignore[arg-type]
    assert said(look(rollout, metrics)) == (types, dropped)


def test_a_candidate_has_levels_at_the_load_of_the_new_release() -> None:
    rollout, metrics = case(rise=0.3)
    (found,) = look(rollout, metrics).candidates
    assert (found.metric_kind, found.metric, found.change_time) == ("service", "cpu", START + 300 * WIDTH)
    own = rollout.own[rollout.has_new].mean(axis=0)
    assert found.after == pytest.approx(0.1 + own @ (COSTS * [1.0, 1.3, 1.0]), rel=0.02)
    assert found.delta == pytest.approx(own @ (COSTS * [0.0, 0.3, 0.0]), rel=0.2)
    assert found.change_time_interval == (found.change_time, found.change_time + WIDTH)
    assert found.passed[0].subjects[:3] == ("GET /b", "v2", "v1")
    assert found.passed[0].statistic == pytest.approx(found.delta / found.after)


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ({}, "no_metric"),
        ({"cpu": np.ones(420)}, "constant"),
        ({"cpu": np.full(420, np.nan)}, "few_periods"),
    ],
)
def test_what_cannot_be_judged_is_no_verdict(values: dict[str, FloatArray], code: str) -> None:
    rollout, _ = case()
    metrics = (
        matrix(values) if values else SeriesMatrix(START, WIDTH, (), (), np.empty((0, 420)), np.ones(420))
    )
    assert said(look(rollout, metrics)) == ([], [code])


def test_load_that_the_old_release_never_saw_is_no_verdict() -> None:
    counts = load(420)
    counts[300:] *= 10.0
    own = counts * (np.arange(420) >= 300)[:, None]
    rollout = find_rollout(requests(("v1", counts - own), ("v2", own)))
    assert rollout is not None
    assert said(look(rollout, matrix({"cpu": counts @ COSTS}))) == ([], ["unseen_load"])


def test_cost_that_only_moved_between_types_is_no_regression() -> None:
    rollout, metrics = case(rise=0.3, faster=0.44)
    assert look(rollout, metrics).candidates == ()


def test_a_change_that_is_too_small_to_matter_is_in_the_ledger() -> None:
    rollout, metrics = case(rise=0.3)
    assert said(look(rollout, metrics, LookConfig(least_share=0.5))) == ([], ["small"])


def test_several_metrics_are_judged_at_once() -> None:
    rollout, metrics = case(rise=0.3)
    rng = np.random.default_rng(3)
    values: dict[str, FloatArray] = {"cpu": metrics.samples[0]}
    values |= {f"cpu of {n}": np.asarray(rng.standard_normal(len(values["cpu"]))) for n in range(4)}
    found = look(rollout, matrix(values))
    assert [each.metric for each in found.candidates] == ["cpu"]


def test_looks_are_due_at_doubling_numbers_of_periods() -> None:
    rollout, _ = case(new=FIRST_PERIODS * 2 ** (LOOKS + 1))
    wanted = [rollout.begun + WIDTH * FIRST_PERIODS * 2**number for number in range(LOOKS)]
    assert look_ends(rollout) == wanted
    for end, number in zip(wanted, range(1, LOOKS + 1), strict=True):
        assert look_ends(rollout.until(end)) == wanted[:number]
        assert look_ends(rollout.until(end - 1)) == wanted[: number - 1]
    assert periods_ahead(rollout.until(rollout.begun + 10 * WIDTH)) == FIRST_PERIODS - 10
    assert periods_ahead(rollout) == FIRST_PERIODS


@pytest.mark.parametrize(
    ("releases", "wanted"),
    [
        pytest.param([("v1", 0, 100)], None, id="one release"),
        pytest.param([("v1", 0, 100), ("v2", 0, 100)], None, id="both from the start"),
        pytest.param([("v1", 0, 60), ("v2", 60, 100)], ("v1", "v2", 60, 100), id="one after the other"),
        pytest.param([("v1", 0, 100), ("v2", 60, 100)], ("v1", "v2", 60, 100), id="side by side"),
        pytest.param(
            [("v0", 0, 30), ("v1", 30, 60), ("v2", 60, 100)], ("v1", "v2", 60, 70), id="the one before"
        ),
        pytest.param(
            [("v0", 0, 100), ("v1", 30, 60), ("v2", 60, 100)], ("v1", "v2", 60, 0), id="a third one"
        ),
        pytest.param([("v1", 0, 60), ("", 60, 100)], None, id="a release that is not known"),
    ],
)
def test_the_latest_release_is_held_against_the_one_before(
    releases: list[tuple[str, int, int]], wanted: tuple[str, str, int, int] | None
) -> None:
    each = []
    for number, (name, first, last) in enumerate(releases):
        counts = load(100, number) + 1.0 + (name == "v1")
        counts[:first] = 0.0
        counts[last:] = 0.0
        each.append((name, counts))
    found = find_rollout(requests(*each))
    if wanted is None:
        assert found is None
        return
    assert found is not None
    old, new, begun, periods = wanted
    assert (found.old, found.new, found.begun) == (old, new, START + begun * WIDTH)
    assert len(found.starts) == periods


def test_hosts_of_other_periods_are_added_up_by_the_longest() -> None:
    counts = np.full((4, 3), 5.0)
    short = requests(("v1", counts))
    minutes = RequestPeriods(
        ("v1", "v2"), ("GET /a", "GET /a"), np.array([START - 30, START + 30]), np.full(2, 60.0), np.ones(2)
    )
    both = RequestPeriods(
        (*short.releases, *minutes.releases),
        (*short.types, *minutes.types),
        np.concatenate([short.starts, minutes.starts]),
        np.concatenate([short.widths_s, minutes.widths_s]),
        np.concatenate([short.requests, minutes.requests]),
    )
    found = find_rollout(both)
    assert found is not None
    assert found.starts.tolist() == [START - 30, START + 30, START + 90]
    assert found.counts.sum(axis=1).tolist() == [16, 31, 15]
    assert found.own.sum(axis=1).tolist() == [0, 1, 0]
