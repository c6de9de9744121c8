"""Laws that every score obeys, whatever the truth and the events."""

from __future__ import annotations

import random
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from loadgen.evaluation.difference import compare_events
from loadgen.evaluation.encode import score_to_json
from loadgen.evaluation.matching import Tolerances
from loadgen.evaluation.model import FunnelStep, RunFunnel, ScoredEvent, TruthRow
from loadgen.evaluation.rates import Rate
from loadgen.evaluation.scoring import score
from tests.unit.evaluation.test_scoring import HOUR, START, event, row

TOLERANCES = Tolerances(otherwise=2 * HOUR)
SERIES = ("a", "b", "c", "d")
KINDS = ("regression", "gradual", "cost_shift", "transient", "new_feature")

names = st.lists(st.sampled_from(SERIES), min_size=1, max_size=3, unique=True).map(tuple)
times = st.integers(0, 12).map(lambda hour: START + hour * HOUR)


@st.composite
def truths(draw: st.DrawFn) -> list[TruthRow]:
    rows = draw(st.lists(st.tuples(names, times, st.sampled_from(KINDS)), max_size=6))
    return [
        row(f"r{i}", kind, series=series, start=start, delta=10.0 ** -(1 + i % 4))
        for i, (series, start, kind) in enumerate(rows)
    ]


@st.composite
def reported(draw: st.DrawFn) -> list[ScoredEvent]:
    found = draw(st.lists(st.tuples(names, times, st.integers(1, 20)), max_size=8))
    return [
        event(f"e{i}", series[0], group=series[1:], change_time=time, detected_time=time + hours * HOUR)
        for i, (series, time, hours) in enumerate(found)
    ]


@given(truths(), reported(), st.randoms(use_true_random=False))
def test_the_order_of_rows_and_events_does_not_matter(
    truth: list[TruthRow], events: list[ScoredEvent], order: random.Random
) -> None:
    expected = score_to_json(score(truth, events, tolerances=TOLERANCES))
    order.shuffle(truth)
    order.shuffle(events)
    assert score_to_json(score(truth, events, tolerances=TOLERANCES)) == expected


@given(truths(), reported())
def test_every_event_and_row_is_counted_once(truth: list[TruthRow], events: list[ScoredEvent]) -> None:
    found = score(
        truth, events, tolerances=TOLERANCES, funnel=RunFunnel(1, 100, (FunnelStep("detected", 9),))
    )
    true, repeated, false = (
        found.matching.having(outcome) for outcome in ("true_positive", "repeated", "false_positive")
    )
    assert len(true) + len(repeated) + len(false) == len(events)
    assert len({one.truth.id for one in true if one.truth}) == len(true)
    assert len(true) + len(found.matching.missed) == sum(one.expected for one in truth)
    assert sum(found.false_kinds.values()) == len(false)
    for rate in (found.precision, found.recall, found.repeated, found.group_precision, found.group_recall):
        assert 0 <= rate.hits <= rate.of
    assert found.delay is None or found.delay.median > 0


@given(truths(), reported())
def test_reporting_an_event_again_never_helps(truth: list[TruthRow], events: list[ScoredEvent]) -> None:
    once = score(truth, events, tolerances=TOLERANCES)
    again = [replace(one, id=f"{one.id}-again", detected_time=one.detected_time + HOUR) for one in events]
    twice = score(truth, [*events, *again], tolerances=TOLERANCES)
    assert twice.recall.hits >= once.recall.hits  # a further event may report another row
    assert twice.precision.hits <= sum(one.expected for one in truth)
    assert twice.precision.of == 2 * once.precision.of


@given(truths())
def test_an_oracle_is_perfect(truth: list[TruthRow]) -> None:
    events = [
        event(f"e{one.id}", one.series[0], group=one.series[1:], change_time=one.start, delta=one.delta)
        for one in truth
        if one.expected
    ]
    found = score([one for one in truth if one.expected], events, tolerances=TOLERANCES)
    assert found.precision.value in (None, 1.0)
    assert found.recall.value in (None, 1.0)


@given(st.integers(0, 500), st.integers(0, 500))
def test_an_interval_holds_its_share(hits: int, misses: int) -> None:
    rate = Rate(hits, hits + misses)
    if rate.value is None or rate.interval is None:
        assert rate.of == 0
        return
    low, high = rate.interval
    assert 0 <= low <= rate.value <= high <= 1
    assert rate.of == 0 or low < high


@given(reported(), reported(), st.randoms(use_true_random=False))
def test_a_comparison_accounts_for_every_event(
    a: list[ScoredEvent], b: list[ScoredEvent], order: random.Random
) -> None:
    b = [replace(one, id=f"other-{one.id}") for one in b]
    found = compare_events(a, b, tolerances=TOLERANCES)
    assert len(found.both) + len(found.only_a) == len(a)
    assert len(found.both) + len(found.only_b) == len(b)
    shuffled = [order.sample(one, len(one)) for one in (a, b)]
    assert compare_events(*shuffled, tolerances=TOLERANCES) == found
    assert compare_events(a, a, tolerances=TOLERANCES).same
