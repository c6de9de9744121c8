"""Scores of hand-made truth and events, where every figure can be counted by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from loadgen.evaluation.encode import rate_to_json, score_to_json
from loadgen.evaluation.funnel import funnel_lines, ratio, short_count
from loadgen.evaluation.matching import Tolerances, in_reach, match, tolerance_s
from loadgen.evaluation.model import FunnelStep, LedgerLine, RunFunnel, ScoredEvent, TruthRow
from loadgen.evaluation.rates import Rate, spread
from loadgen.evaluation.scoring import MISPLACED, NOTHING, Score, score, size_of
from loadgen.evaluation.sweep import ledger_curves
from pipeline.settings.workloads import load_workloads

START = 1_700_000_000.0
HOUR = 3600.0
TOLERANCES = Tolerances(otherwise=4 * HOUR)


def row(
    row_id: str = "r1",
    kind: str = "regression",
    *,
    series: tuple[str, ...] = ("shop.a", "shop.a_caller", "shop.main"),
    start: float = START,
    until: float | None = None,
    delta: float = 0.001,
    change: str | None = "c1",
    service: str = "shop",
    metric_kind: str = "subroutine",
    changes: tuple[str, ...] = (),
) -> TruthRow:
    return TruthRow(
        id=row_id,
        kind=kind,
        expected=kind in ("regression", "gradual", "new_feature"),
        service=service,
        series=series,
        metric_kind=metric_kind,
        start=start,
        until=start if until is None else until,
        delta=delta,
        change=change,
        changes=changes,
    )


def event(
    event_id: str = "e1",
    metric: str = "shop.a",
    *,
    change_time: float = START,
    detected_time: float | None = None,
    delta: float = 0.001,
    group: tuple[str, ...] = (),
    suspects: tuple[str, ...] = (),
    service: str = "shop",
    metric_kind: str = "subroutine",
    p_value: float = 1e-9,
) -> ScoredEvent:
    return ScoredEvent(
        id=event_id,
        service=service,
        workload="w",
        metric_kind=metric_kind,
        metric=metric,
        kind="short_term",
        change_time=change_time,
        detected_time=change_time + 8 * HOUR if detected_time is None else detected_time,
        before=0.001,
        after=0.001 + delta,
        delta=delta,
        p_value=p_value,
        group=group,
        suspects=suspects,
    )


def outcomes(found: Score) -> dict[str, tuple[str, str | None]]:
    return {one.event.id: (one.outcome, one.truth.id if one.truth else None) for one in found.matching.judged}


ONE_EVENT = {
    "exact": (event(), "true_positive"),
    "caller of the cause": (event(metric="shop.main"), "true_positive"),
    "cause in the group only": (event(metric="shop.x", group=("shop.a",)), "true_positive"),
    "early within tolerance": (event(change_time=START - 4 * HOUR), "true_positive"),
    "late within tolerance": (event(change_time=START + 4 * HOUR), "true_positive"),
    "too early": (event(change_time=START - 4 * HOUR - 1), "false_positive"),
    "too late": (event(change_time=START + 4 * HOUR + 1), "false_positive"),
    "reported before it happened": (event(detected_time=START - 1), "false_positive"),
    "series of a like name": (event(metric="shop.a2"), "false_positive"),
    "no series in common": (event(metric="shop.x", group=("shop.y",)), "false_positive"),
    "other service": (event(service="cart"), "false_positive"),
    "wrong direction": (event(delta=-0.001), "false_positive"),
}


@pytest.mark.parametrize(
    ("reported", "expected"), [pytest.param(*case, id=name) for name, case in ONE_EVENT.items()]
)
def test_an_event_matches_by_service_time_and_series(reported: ScoredEvent, expected: str) -> None:
    found = score([row()], [reported], tolerances=TOLERANCES)
    hit = expected == "true_positive"
    assert outcomes(found) == {"e1": (expected, "r1" if hit else None)}
    assert found.recall == Rate(int(hit), 1)
    assert found.precision == Rate(int(hit), 1)
    assert [missed.id for missed in found.matching.missed] == ([] if hit else ["r1"])


def test_a_near_miss_in_time_is_a_false_positive_and_a_miss_and_said_to_be_one() -> None:
    events = [event("e1", change_time=START + 5 * HOUR), event("e2", change_time=START + 30 * HOUR)]
    found = score([row()], events, tolerances=TOLERANCES)
    assert outcomes(found) == {"e1": ("false_positive", None), "e2": ("false_positive", None)}
    assert found.false_kinds == {MISPLACED: 1, NOTHING: 1}
    assert found.recall == Rate(0, 1)


def test_a_second_event_of_a_row_is_repeated_and_the_first_detected_counts() -> None:
    late = event("late", detected_time=START + 20 * HOUR)
    first = event("first", "shop.main", detected_time=START + 9 * HOUR, change_time=START + HOUR)
    found = score([row()], [late, first], tolerances=TOLERANCES)
    assert outcomes(found) == {"first": ("true_positive", "r1"), "late": ("repeated", "r1")}
    assert (found.precision, found.recall, found.repeated) == (Rate(1, 2), Rate(1, 1), Rate(1, 2))
    assert found.delay is not None
    assert found.delay.median == 9 * HOUR


def test_two_regressions_at_one_time_get_an_event_each() -> None:
    truth = [
        row("r1", series=("shop.a", "shop.main")),
        row("r2", series=("shop.b", "shop.main"), start=START + HOUR),
    ]
    # The event of the common caller could be either's; the other event can only be r1's.
    found = score(truth, [event("e1"), event("e2", "shop.main")], tolerances=TOLERANCES)
    assert outcomes(found) == {"e1": ("true_positive", "r1"), "e2": ("true_positive", "r2")}


def test_the_closer_of_two_regressions_of_one_series_is_reported() -> None:
    truth = [row("r1"), row("r2", start=START + 3 * HOUR)]
    found = score(truth, [event(change_time=START + 2.5 * HOUR)], tolerances=TOLERANCES)
    assert outcomes(found) == {"e1": ("true_positive", "r2")}


def test_what_is_not_to_be_reported_is_a_false_positive_of_its_kind() -> None:
    truth = [
        row("shift", "cost_shift", series=("shop.new",)),
        row("spike", "transient", series=("shop.s",), until=START + 10 * HOUR),
        row("better", "improvement", series=("shop.i",), delta=-0.001),
        row("day", "seasonal", series=(), start=START + 100 * HOUR),
    ]
    events = [
        event("e1", "shop.new"),
        event("e2", "shop.s", change_time=START + 9 * HOUR),  # within the transient
        event("e3", "shop.i"),  # rises, but an improvement falls
        event("e4", "shop.any", change_time=START + 101 * HOUR),
    ]
    found = score(truth, events, tolerances=TOLERANCES)
    assert outcomes(found) == {
        "e1": ("false_positive", "shift"),
        "e2": ("false_positive", "spike"),
        "e3": ("false_positive", None),
        "e4": ("false_positive", "day"),
    }
    assert found.false_kinds == {"cost_shift": 1, NOTHING: 1, "seasonal": 1, "transient": 1}
    assert found.recall == Rate(0, 0)
    assert found.recall.value is None
    assert {one.name: one.rows for one in found.kinds}["improvement"] == Rate(0, 1)


def test_cost_shifts_are_counted_by_form() -> None:
    forms = ("rename", "move", "rename", "")
    shifts = [row(f"shift{i}", "cost_shift", series=(f"s{i}",)) for i in range(len(forms))]
    truth = [replace(one, subkind=form) for one, form in zip(shifts, forms, strict=True)]
    found = score(truth, [event("e1", "s2"), event("e2", "s3")])
    assert found.cost_shifts == (("cost_shift", Rate(1, 1)), ("move", Rate(0, 1)), ("rename", Rate(1, 2)))
    shown = score_to_json(found)
    assert shown["rates"]["cost_shifts"]["value"] == 0.5
    assert shown["cost_shifts"][2] == {"form": "rename", **rate_to_json(Rate(1, 2))}


def test_a_cost_shift_is_not_taken_for_a_regression_that_shares_a_caller() -> None:
    truth = [row(), row("shift", "cost_shift", series=("shop.new",))]
    found = score(truth, [event("e1", "shop.new", group=("shop.main",))], tolerances=TOLERANCES)
    assert outcomes(found) == {"e1": ("false_positive", "shift")}


@pytest.mark.parametrize("kind", ["aborted_rollout", "experiment"])
def test_what_may_be_reported_counts_neither_way(kind: str) -> None:
    truth = [row(), row("back", kind, series=("shop.b",), start=START + HOUR, until=START + 5 * HOUR)]
    events = [event(), event("e2", "shop.b", change_time=START + HOUR)]
    with_it, without = (score(truth, some, tolerances=TOLERANCES) for some in (events, events[:1]))
    assert [one.outcome for one in with_it.matching.judged] == ["true_positive", "allowed"]
    assert (with_it.precision, with_it.recall) == (without.precision, without.recall) == (Rate(1, 1),) * 2
    assert with_it.false_kinds == {}
    assert score_to_json(with_it)["allowed"] == 1
    assert [(one.name, one.rows) for one in with_it.kinds if one.name == kind] == [(kind, Rate(1, 1))]


def test_a_transient_just_before_a_regression_does_not_hide_it() -> None:
    truth = [row("spike", "transient", start=START - 6 * HOUR, until=START - HOUR), row()]
    found = score(truth, [event()], tolerances=TOLERANCES)
    assert outcomes(found) == {"e1": ("true_positive", "r1")}


def test_a_gradual_regression_may_be_placed_anywhere_on_its_rise() -> None:
    slow = row(kind="gradual", until=START + 72 * HOUR)
    found = score([slow], [event(change_time=START + 70 * HOUR)], tolerances=TOLERANCES)
    assert outcomes(found) == {"e1": ("true_positive", "r1")}
    assert found.shift is not None
    assert found.shift.largest == 0


STAGES = (START, START + 3 * HOUR, START + 9 * HOUR)
ROLLOUT = replace(row(until=START + 9 * HOUR), stages=STAGES, standard_error=0.001 / 8)


@pytest.mark.parametrize(
    ("hours", "interval", "first"),
    [
        pytest.param(0, None, 1, id="at its begin"),
        pytest.param(2.9, None, 1, id="within the first stage"),
        pytest.param(3, None, 0, id="at the second stage"),
        pytest.param(9, None, 0, id="when it is everywhere"),
        pytest.param(9, (-1, 10), 1, id="an interval that holds the begin"),
        pytest.param(9, (1, 10), 0, id="an interval that does not"),
        pytest.param(-0.2, None, 0, id="before it began"),
    ],
)
def test_a_rollout_is_found_at_any_stage_and_dated_by_its_first(
    hours: float, interval: tuple[float, float] | None, first: int
) -> None:
    reported = replace(
        event(change_time=START + hours * HOUR, detected_time=START + 12 * HOUR),
        interval=interval and (START + interval[0] * HOUR, START + interval[1] * HOUR),
    )
    found = score([ROLLOUT, row("r2", series=("shop.z",))], [reported], tolerances=TOLERANCES)
    assert (found.rollouts, found.first_stage) == (Rate(1, 1), Rate(first, 1))
    assert found.recall == Rate(1, 2)
    assert score([ROLLOUT], [], tolerances=TOLERANCES).rollouts == Rate(0, 1)
    hidden = replace(ROLLOUT, standard_error=0.001 / 7)
    assert score([hidden], [], tolerances=TOLERANCES).rollouts == Rate(0, 0)
    assert score([hidden], [reported], tolerances=TOLERANCES).first_stage == Rate(first, 1)


def test_a_service_metric_that_falls_matches_without_regard_to_units() -> None:
    slow = row(series=("throughput",), delta=-0.2, metric_kind="service")
    found = score([slow], [event(metric="throughput", delta=-130.0, metric_kind="service")])
    assert outcomes(found) == {"e1": ("true_positive", "r1")}
    assert (found.sizes, found.event_sizes) == ((), ())


def test_no_events_and_no_truth() -> None:
    nothing_reported = score([row()], [])
    assert (nothing_reported.precision.value, nothing_reported.recall.value) == (None, 0.0)
    assert nothing_reported.f1 is None
    nothing_there = score([], [event()])
    assert (nothing_there.precision.value, nothing_there.recall.value) == (0.0, None)
    empty = score([], [])
    assert (empty.precision.interval, empty.delay, empty.kinds) == (None, None, ())


def test_false_positives_are_counted_per_scanned_series() -> None:
    funnel = RunFunnel(scans=10, series=1000, steps=(FunnelStep("detected", 7),))
    found = score([row()], [event(), event("e2", "shop.x"), event("e3", "shop.y")], funnel=funnel)
    assert found.false_positive_rate == Rate(2, 1000)
    assert score([row()], [event()]).false_positive_rate is None


SIZES = {
    0.00004: "below 0.005 %",
    0.00005: "0.005 – 0.05 %",
    0.00005 * (1 - 1e-12): "0.005 – 0.05 %",
    -0.0005: "0.05 – 0.5 %",
    0.0399: "0.5 – 4 %",
    0.04: "0.5 – 4 %",
    0.0401: "above 4 %",
    0.5: "above 4 %",
}


@pytest.mark.parametrize(("delta", "name"), SIZES.items())
def test_sizes_are_decades(delta: float, name: str) -> None:
    assert size_of(delta) == name


def test_recall_by_true_size_and_precision_by_reported_size() -> None:
    truth = [row("r1", delta=0.0001), row("r2", series=("shop.b",), delta=0.01)]
    found = score(truth, [event(delta=0.0002), event("e2", "shop.x", delta=0.0003)], tolerances=TOLERANCES)
    assert found.sizes == (("0.005 – 0.05 %", Rate(1, 1)), ("0.5 – 4 %", Rate(0, 1)))
    assert found.event_sizes == (("0.005 – 0.05 %", Rate(1, 2)),)


def test_groups_are_judged_pair_by_pair() -> None:
    truth = [row("r1", series=("a", "b", "c")), row("r2", series=("x", "y"))]
    events = [
        event("e1", "a", group=("b", "x")),  # pairs: ab together, ax and bx wrong
        event("e2", "x", group=("y",)),  # xy together
        event("e3", "c"),  # r1 once more: c is parted from a and b
    ]
    found = score(truth, events, tolerances=TOLERANCES)
    assert found.group_precision == Rate(2, 4)
    # r1: {a, b, c}, of whose three pairs one is in a group; r2: {x, x, y}, of three pairs one as well.
    assert found.group_recall == Rate(2, 6)


def test_a_series_that_no_row_explains_belongs_to_nothing() -> None:
    found = score([row(series=("a",))], [event("e1", "a", group=("n1", "n2"))], tolerances=TOLERANCES)
    assert found.group_precision == Rate(0, 3)
    assert found.group_recall == Rate(0, 0)


def test_root_causes() -> None:
    truth = [
        row("r1", series=("a",), change="c1"),
        row("r2", series=("b",), change="c2"),
        row("r3", series=("c",), change="c3"),
        row("r4", series=("d",), change=None),
        row("r5", "new_feature", series=("e",), change=None, changes=("f1", "f2")),
        row("r6", series=("f",), change="c6"),
    ]
    events = [
        event("e1", "a", suspects=("c1", "c2")),  # first
        event("e2", "b", suspects=("x", "y", "c2")),  # third
        event("e3", "c", suspects=("x", "y", "z", "c3")),  # fourth: too far down
        event("e4", "d", suspects=("x",)),  # there was no root cause
        event("e5", "e", suspects=("f2",)),  # one of many that had a part in it
        event("e6", "f"),  # nothing suggested
        event("e7", "noise", suspects=("x",)),
    ]
    found = score(truth, events, tolerances=TOLERANCES).root_cause
    assert (found.top_1, found.top_3) == (Rate(1, 4), Rate(2, 4))
    assert (found.suggested, found.right) == (Rate(3, 4), Rate(2, 3))
    assert found.false_suggestions == Rate(1, 2)
    assert found.on_false_positives == Rate(1, 1)


def test_the_tolerance_is_the_analysis_window_and_two_windows() -> None:
    (workload,) = load_workloads(["frontfaas-small"])
    assert tolerance_s(workload) == 4 * HOUR + 1200
    assert Tolerances().otherwise == tolerance_s(workload)
    by_name = Tolerances({"w": 60.0}, otherwise=4 * HOUR)
    reported = event(change_time=START + HOUR)
    assert match([row()], [reported], by_name).having("true_positive") == ()
    assert match([row()], [replace(reported, workload="other")], by_name).having("true_positive")


WILSON = {(0, 10): (0.0, 0.2775), (5, 10): (0.2366, 0.7634), (10, 10): (0.7225, 1.0), (1, 1): (0.2065, 1.0)}


@pytest.mark.parametrize(("counts", "bounds"), WILSON.items())
def test_wilson_intervals_are_those_of_the_textbook(
    counts: tuple[int, int], bounds: tuple[float, float]
) -> None:
    assert Rate(*counts).interval == pytest.approx(bounds, abs=1e-4)


def test_spread() -> None:
    found = spread([4.0, 1.0, 3.0, 2.0])
    assert found is not None
    assert (found.count, found.median, found.mean, found.largest) == (4, 2.5, 2.5, 4.0)
    assert found.p90 == pytest.approx(3.7)
    assert spread([]) is None


def test_the_funnel_is_written_as_in_table_5() -> None:
    paper = {"detected": 3_960_000, "went_away": 10_850, "som_dedup": 1_120, "pairwise_dedup": 210, "x": 0}
    funnel = RunFunnel(1, 1, tuple(FunnelStep(*step) for step in paper.items()))
    lines = funnel_lines(funnel)
    assert [short_count(line.remaining) for line in lines] == ["3.96M", "10.85K", "1.12K", "210", "0"]
    assert [ratio(line) for line in lines] == ["1/1", "1/365", "1/3536", "1/18857", "–"]
    assert lines[1].title == "After went-away detection (§5.4.3)"
    assert lines[2].title == "After grouping (§5.4.7)", "which need not be by a map"


def test_curves_sweep_a_bound_over_every_change_point_found() -> None:
    truth = [
        row("r1", series=("a", "m")),
        row("r2", series=("b",)),
        row("shift", "cost_shift", series=("s",)),
    ]

    def dropped(metric: str, p_value: float, delta: float) -> LedgerLine:
        return LedgerLine(
            "shop", "w", START + HOUR, "subroutine", metric, START, delta, p_value, "threshold", 0, 1, ""
        )

    ledger = [dropped("m", 1e-3, 0.002), dropped("s", 1e-6, 0.003), dropped("n", 1e-2, 0.0001)]
    by_p_value, by_size = ledger_curves(
        truth, [event(metric="a", p_value=1e-9)], ledger, scanned=102, tolerances=TOLERANCES
    )
    # "a" and its caller "m" are signs of r1, "s" and "n" are false, and r2 was never detected.
    assert [(p.bound, p.recall, p.false) for p in by_p_value.points] == [
        (1e-9, Rate(1, 2), Rate(0, 100)),
        (1e-6, Rate(1, 2), Rate(1, 100)),
        (1e-3, Rate(1, 2), Rate(1, 100)),
        (1e-2, Rate(1, 2), Rate(2, 100)),
    ]
    assert [(p.bound, p.recall.hits, p.false.hits) for p in by_size.points] == [
        (0.003, 0, 1),
        (0.002, 1, 1),
        (0.001, 1, 1),
        (0.0001, 1, 2),
    ]


@pytest.mark.parametrize(
    ("workload", "reached"),
    [
        ("frontfaas-small", ["cpu"]),
        ("ct-supply-short", ["throughput", "both", "any"]),
        ("ct-demand", ["errors", "both", "any"]),
    ],
)
def test_rows_of_metrics_that_no_workload_looks_at_are_out_of_reach(
    workload: str, reached: list[str]
) -> None:
    rows = [
        row("cpu"),
        row("throughput", series=("throughput",), metric_kind="service"),
        row("errors", series=("error_rate",), metric_kind="service"),
        row("both", series=("error_rate", "throughput"), metric_kind="service"),
        row("any", series=(), metric_kind="service"),
    ]
    assert [one.id for one in in_reach(rows, load_workloads([workload]))] == reached
