"""Looks at a rollout: what each decides, when it is due, and which periods it has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from pipeline.model import FloatArray, MetricKind, RequestPeriods, SeriesMatrix
from pipeline.releases.requests import (
    LookConfig,
    Looked,
    LooksMade,
    RequestRollout,
    build_rollout,
    find_succession,
    look,
    next_look,
    periods_ahead,
    periods_begun,
)
from pipeline.releases.requests.looks import FIRST_PERIODS, LOOKS

START = 1_700_000_010.0
WIDTH = 30.0
COSTS = np.array([0.004, 0.002, 0.001])
TYPES = ("GET /a", "GET /b", "GET /c")


def requests(*releases: tuple[str, FloatArray], width_s: float = WIDTH) -> RequestPeriods:
    """Counts of releases, each (periods, types), in the same periods."""
    ordered = sorted(releases, key=lambda each: each[0])
    counts = np.concatenate([counts.T for _, counts in ordered])
    starts = np.asarray(START + width_s * np.arange(counts.shape[1]))
    names = tuple(name for name, _ in ordered for _ in TYPES)
    # Each release has response times of its own: e seconds to the power of its number.
    logs = counts * np.repeat(np.arange(float(len(ordered))), len(TYPES))[:, None]
    return RequestPeriods(names, TYPES * len(ordered), starts, width_s, counts, counts, logs)


def together(given: RequestPeriods) -> RequestPeriods:
    """The same, all types together."""
    names = tuple(sorted(set(given.releases)))
    rows = [given.requests[[each == name for each in given.releases]].sum(axis=0) for name in names]
    return replace(given, releases=names, types=("",) * len(names), requests=np.array(rows))


def find_rollout(given: RequestPeriods) -> RequestRollout | None:
    found = find_succession(together(given))
    if found is None:
        return None
    both = [each in (found.old, found.new) for each in given.releases]
    releases, types = (
        tuple(each for each, kept in zip(names, both, strict=True) if kept)
        for names in (given.releases, given.types)
    )
    sums = {name: getattr(given, name)[both] for name in ("requests", "timed", "log_times")}
    rollout = build_rollout(found, replace(given, releases=releases, types=types, **sums))
    assert rollout.has_new.tolist() == found.has_new.tolist()
    return rollout


def load(periods: int, seed: int = 0) -> FloatArray:
    rng = np.random.default_rng(seed)
    scale = np.exp(0.3 * rng.standard_normal((periods, len(TYPES))))
    return rng.poisson(scale * [100, 150, 200]).astype(np.float64)


def share_of_new(periods: int, old: int, side_by_side: float) -> FloatArray:
    return np.where(np.arange(periods) < old, 0.0, side_by_side or 1.0)[:, None]


def case(
    rise: float = 0.0, side_by_side: float = 0.0, old: int = 300, new: int = 120, faster: float = 0.0
) -> tuple[RequestRollout, SeriesMatrix]:
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


def test_a_metric_of_longer_periods_is_held_against_the_requests_of_all_of_them() -> None:
    rollout, metrics = case(rise=0.3, old=600, new=240)
    cpu = np.full(840, np.nan)
    cpu[1::2][:419] = metrics.samples[0, 1:839].reshape(-1, 2).mean(axis=1)
    (found,) = look(rollout, matrix({"cpu": cpu})).candidates
    own = rollout.own[rollout.has_new].mean(axis=0)
    assert [one.subjects[0] for one in found.passed] == ["GET /b"]
    assert found.delta == pytest.approx(own @ (COSTS * [0.0, 0.3, 0.0]), rel=0.2)


@pytest.mark.parametrize("side_by_side", [0.0, 0.3])
def test_response_times_are_those_of_the_new_release_where_it_runs(side_by_side: float) -> None:
    rollout, _ = case(side_by_side=side_by_side)
    assert rollout.times[~rollout.has_new] == pytest.approx(0.0)
    assert rollout.times[rollout.has_new] == pytest.approx(1.0)


def test_a_candidate_has_levels_at_the_load_of_the_new_release() -> None:
    rollout, metrics = case(rise=0.3)
    (found,) = look(rollout, metrics).candidates
    assert (found.metric_kind, found.metric, found.change_time) == ("service", "cpu", START + 300 * WIDTH)
    own = rollout.own[rollout.has_new].mean(axis=0)
    assert found.after == pytest.approx(0.1 + own @ (COSTS * [1.0, 1.3, 1.0]), rel=0.02)
    assert found.delta == pytest.approx(own @ (COSTS * [0.0, 0.3, 0.0]), rel=0.2)
    assert found.change_time_interval == (found.change_time, found.change_time + WIDTH)
    (costlier,) = found.costlier_requests
    assert (costlier.type, costlier.release, costlier.former_release) == ("GET /b", "v2", "v1")
    assert costlier.share == pytest.approx(found.delta / found.after)
    assert 0.95 <= sum(costlier.likely.values()) <= 1.0


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
    found = look(rollout, metrics)
    assert (*said(found), found.compared) == ([], [code], 0)


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


@pytest.mark.parametrize(("risen", "equal"), [(0, 1), (0, 12), (1, 0), (1, 12), (4, 8), (12, 0)])
def test_of_several_metrics_those_that_rose_are_found(risen: int, equal: int) -> None:
    rng = np.random.default_rng(3)
    rollout, _ = case()
    cost = rollout.counts @ COSTS
    values: dict[str, FloatArray] = {}
    for number in range(risen + equal):
        extra = rollout.own @ (COSTS * [0.0, 0.2, 0.0]) if number < risen else 0.0
        noise = 1.0 + 0.02 * rng.standard_normal(len(cost))
        values[f"{number:02}"] = np.asarray((0.1 + cost + extra) * noise)
    found = look(rollout, matrix(values))
    assert [each.metric for each in found.candidates] == [f"{number:02}" for number in range(risen)]
    assert (found.compared, found.dropped) == (risen + equal, ())


def test_looks_are_due_at_doubling_numbers_of_periods() -> None:
    ends = np.asarray(START + WIDTH * np.arange(1, FIRST_PERIODS * 2 ** (LOOKS + 1) + 1))
    made, found = LooksMade(), []
    while (end := next_look(ends, 3, made)) is not None:
        before = ends[ends < end]
        assert next_look(before, 3, made) is None
        assert periods_ahead(before[:-9], 3, made) == 10
        made = LooksMade(end, made.many + 1)
        found.append(end)
    assert found == [START + WIDTH * FIRST_PERIODS * 2**number for number in range(LOOKS)]
    assert periods_ahead(ends, 3, made) == FIRST_PERIODS
    assert periods_ahead(ends, 3, made, begun=19) == FIRST_PERIODS - 19
    assert periods_ahead(ends[:40], 3, LooksMade(float(ends[29]), 1), begun=19) == FIRST_PERIODS - 19


@pytest.mark.parametrize(
    ("seen", "types", "last", "periods"),
    [
        pytest.param(30, 13, 0, 30, id="the first"),
        pytest.param(59, 13, 30, None, id="not yet"),
        pytest.param(60, 13, 30, 60, id="the next"),
        pytest.param(203, 100, 0, None, id="a fit of many types needs more"),
        pytest.param(204, 100, 0, 204, id="and has them"),
        pytest.param(80, 18, 30, 80, id="more types came"),
        pytest.param(60, 13, 31, 60, id="a late period"),
    ],
)
def test_the_next_look_takes_twice_as_many_periods(
    seen: int, types: int, last: int, periods: int | None
) -> None:
    ends = np.asarray(START + WIDTH * np.arange(1, seen + 1))
    made = LooksMade(START + WIDTH * last, 1) if last else LooksMade()
    assert next_look(ends, types, made) == (None if periods is None else START + WIDTH * periods)
    assert next_look(ends, types, replace(made, found=True)) is None
    assert next_look(ends, types, replace(made, many=LOOKS)) is None


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
        pytest.param(
            [("v1", 0, 30), ("v2", 30, 81), ("v3", 81, 100)], ("v1", "v2", 30, 81), id="a third one begins"
        ),
        pytest.param(
            [("v1", 0, 30), ("v2", 30, 80), ("v3", 80, 100)], ("v2", "v3", 80, 70), id="and is the new one"
        ),
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


@pytest.mark.parametrize(
    ("stray", "period", "load_then", "begun"),
    [
        pytest.param("v3", 90, 300.0, 60, id="a third release hides no new one"),
        pytest.param("v3", 90, 3.0, 60, id="nor while few requests come"),
        pytest.param("v2", 10, 300.0, 60, id="a trace before a release runs is not its beginning"),
        pytest.param("v2", 10, 3.0, 10, id="a share of the requests is"),
    ],
)
def test_stray_requests(stray: str, period: int, load_then: float, begun: int) -> None:
    names = ("v1", "v2", "v3")
    counts = np.zeros((3, 100))
    counts[0, :60] = counts[1, 60:] = 300.0
    counts[:, period] *= load_then / 300.0
    counts[names.index(stray), period] += 1.0
    starts = np.asarray(START + WIDTH * np.arange(100))
    found = find_succession(RequestPeriods(names, ("",) * 3, starts, WIDTH, counts, counts, counts))
    assert found is not None
    assert (found.old, found.new, found.begun) == ("v1", "v2", START + begun * WIDTH)
    assert period >= 60 or found.established == found.new_ends[19]


@pytest.mark.parametrize(("periods", "begun"), [(0, 0), (5, 5), (19, 19), (20, 0)])
def test_how_long_the_next_release_has_run(periods: int, begun: int) -> None:
    after = np.arange(100) >= 100 - periods
    given = together(requests(("v1", load(100) * ~after[:, None]), ("v2", load(100) * after[:, None])))
    assert periods_begun(given) == begun
    assert (find_succession(given) is not None) == (periods >= 20)


def test_types_of_shorter_periods_are_added_up() -> None:
    """Hosts of a third release count by the minute, those of the two by half of it."""
    counts = np.full((80, 3), 5.0)
    own = counts * share_of_new(80, 40, 1.0)
    halves = requests(("v1", counts - own), ("v2", own))
    halves = replace(halves, starts=halves.starts + 30.0)  # where a minute begins
    totals = together(halves)
    minutes = replace(
        totals,
        starts=totals.starts[::2],
        width_s=60.0,
        requests=totals.requests.reshape(2, 40, 2).sum(axis=2),
    )
    succession = find_succession(minutes)
    assert succession is not None
    found = build_rollout(succession, halves)
    assert found.starts.tolist() == (START + 30.0 + 60.0 * np.arange(40)).tolist()
    assert found.counts.tolist() == [[10.0] * 3] * 40
    assert found.own.tolist() == [[0.0] * 3] * 20 + [[10.0] * 3] * 20


def test_types_that_it_may_be_are_named_with_their_probabilities() -> None:
    rollout, metrics = case(rise=0.05)
    (found,) = look(rollout, metrics).candidates
    (costlier,) = found.costlier_requests
    assert set(costlier.types) == {"GET /a", "(every request)", "(without requests)"}  # as people read them
    assert list(costlier.likely) == sorted(costlier.likely, key=lambda type_: -costlier.likely[type_])
    assert 0.95 <= sum(costlier.chances) <= 1.0
