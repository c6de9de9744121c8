from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from agents.metrics import MetricMap, SeriesReading
from agents.metrics.conversion import Conversion
from agents.metrics.exponential import Exponential
from agents.metrics.reading import Part
from pipeline.model import MetricPoints

START = 1_700_000_010.0  # a multiple of 30 s
LABELS = (("service", "shop"),)


def conversion(*rules: Mapping[str, object], **settings: object) -> Conversion:
    return Conversion(MetricMap.model_validate({"defaults": False, "metrics": list(rules), **settings}))


def run(subject: Conversion, readings: Iterable[SeriesReading]) -> dict[str, MetricPoints]:
    """Give readings in their order and time, and return all points by metric."""
    found: list[MetricPoints] = []
    now = START
    for reading in readings:
        now = reading.time
        subject.take([reading], now)
        found += subject.close(now)
    found += subject.close(now + 1000)
    metrics = {points.metric for points in found}
    return {
        metric: MetricPoints(
            "shop",
            metric,
            np.concatenate([p.timestamps for p in found if p.metric == metric]),
            np.concatenate([p.values for p in found if p.metric == metric]),
        )
        for metric in metrics
    }


def series(
    values: Sequence[float | Exponential],
    *,
    name: str = "x_total",
    part: Part = "counter",
    every_s: float = 15.0,
    host: str = "a",
    start: float = 0.0,
    at: float = 0.0,
    is_delta: bool = False,
    labels: tuple[tuple[str, str], ...] = (),
    first: float = START,
) -> list[SeriesReading]:
    own = tuple(sorted((*LABELS, ("instance", host), *labels)))
    return [
        SeriesReading(name, own, first + i * every_s, value, part, at, start, is_delta)
        for i, value in enumerate(values)
    ]


def merged(*many: list[SeriesReading]) -> list[SeriesReading]:
    return sorted((reading for one in many for reading in one), key=lambda reading: reading.time)


DELTAS = [
    SeriesReading("x_total", LABELS, START + 30 * i, 60.0, "counter", 0.0, START + 30 * (i - 1), True)
    for i in range(1, 9)
]


@pytest.mark.parametrize(
    ("readings", "wait", "rate"),
    [
        pytest.param(
            merged(series([30.0 * i for i in range(20)]), series([15.0 * i for i in range(20)], host="b")),
            "1s",
            3.0,
            id="of all hosts",
        ),
        pytest.param(
            series([60.0 * i for i in range(10)], every_s=60), "70s", 1.0, id="readings rarer than intervals"
        ),
        pytest.param(
            series([100.0 + 15 * i for i in range(8)] + [15.0 * i for i in range(1, 8)]),
            "1s",
            1.0,
            id="a reset counts from zero",
        ),
        pytest.param(DELTAS, "1s", 2.0, id="deltas are added up"),
    ],
)
def test_a_counter_becomes_a_rate(readings: list[SeriesReading], wait: str, rate: float) -> None:
    found = run(conversion({"take": "x_total"}, wait=wait), readings)["x.rate"]
    assert found.values == pytest.approx(rate)
    assert len(found.values) >= 5
    assert np.diff(found.timestamps) == pytest.approx(30.0)


def test_a_start_between_two_readings_is_a_reset_though_the_value_is_larger() -> None:
    before, after = series([10.0, 10.0, 10.0]), series([25.0], first=START + 45, start=START + 31)
    subject = conversion({"take": "x_total"}, wait="1s")
    found = run(subject, [*before, *after, *series([25.0], first=START + 60, start=START + 31)])
    assert subject.counts["resets"] == 1
    assert found["x.rate"].values.sum() * 30 == pytest.approx(25.0)


def workers(*bases: float, starts: Sequence[float] = (0.0,)) -> list[SeriesReading]:
    """Readings of workers in turn, each every 10 s with 5 requests a second more, under the same labels."""
    return merged(
        *(
            series(
                [base + 50.0 * i for i in range(40)],
                every_s=10,
                start=starts[number % len(starts)],
                first=START + 5 * number / len(bases),
            )
            for number, base in enumerate(bases)
        )
    )


@pytest.mark.parametrize(
    ("readings", "rates", "outcomes"),
    [
        pytest.param(
            workers(50_000, 20_000, starts=(START - 5000, START - 2000)), [10.0], set(), id="by their starts"
        ),
        pytest.param(
            workers(50_000, 20_000, 9, starts=(START - 5000, START - 2000, START - 1)),
            [15.0],
            set(),
            id="one of them has just begun",
        ),
        pytest.param(workers(50_000, 20_000), [], {"several_writers"}, id="without a start"),
        pytest.param(workers(20_000, 50_000), [], {"several_writers"}, id="the larger one second"),
        pytest.param(workers(9_000, 50_000, 20_000), [], {"several_writers"}, id="three without a start"),
        pytest.param(
            workers(50_000, 20_000, starts=(START - 9000,)), [], {"several_writers"}, id="of the same start"
        ),
    ],
)
def test_writers_of_one_series(readings: list[SeriesReading], rates: list[float], outcomes: set[str]) -> None:
    subject = conversion({"take": "x_total"}, wait="30s")
    found = run(subject, readings)
    assert set(subject.counts) == {"taken"} | outcomes
    seen = found["x.rate"].values[1:-1] if "x.rate" in found else np.array([])
    assert sorted({round(float(rate), 6) for rate in seen if rate}) == rates


def moments(
    values: Iterable[tuple[float, float]], starts: Iterable[float] = (), **fields: object
) -> list[SeriesReading]:
    """Readings of one series: seconds after START and values, each with its start."""
    given = list(starts)
    return [
        replace(
            SeriesReading("x_total", LABELS, START + second, value, "counter"),
            start=given[number] if given else 0.0,
            **fields,  # type: ignore[arg-type]
        )
        for number, (second, value) in enumerate(values)
    ]


ALONE = [(15.0 * i, 9000.0 + 75 * i) for i in range(60)]  # 5/s
DRAWN = np.random.default_rng(5)


@pytest.mark.parametrize(
    ("starts", "rate", "outcome"),
    [
        pytest.param([START - 9000.0] * 60, 5.0, None, id="the same in every reading"),
        pytest.param(
            [START - 9000 + round(jitter) for jitter in DRAWN.uniform(-1, 1, 60)],
            5.0,
            None,
            id="rounded to seconds",
        ),
        pytest.param(
            [START - 9000 + round(jitter) / 1000 for jitter in DRAWN.uniform(-5, 5, 60)],
            5.0,
            None,
            id="rounded to milliseconds",
        ),
        pytest.param(
            [START - 9000 + jitter for jitter in DRAWN.uniform(-1, 1, 60)],
            None,
            "unsteady_start",
            id="computed anew for every reading",
        ),
        pytest.param(
            [START - 10 + jitter for jitter in DRAWN.uniform(-1, 1, 60)],
            None,
            "unsteady_start",
            id="computed anew, of a process that has just begun",
        ),
        pytest.param([START + t for t, _ in ALONE], None, "unsteady_start", id="the time of the reading"),
        pytest.param(
            [START + t - 15 for t, _ in ALONE], None, "unsteady_start", id="the time of the reading before"
        ),
        pytest.param(
            [START + t - 60 for t, _ in ALONE], None, "unsteady_start", id="a minute before the reading"
        ),
    ],
)
def test_a_start_that_is_unsteady_makes_up_no_rate(
    starts: list[float], rate: float | None, outcome: str | None
) -> None:
    subject = conversion({"take": "x_total"}, wait="75s")
    rates = run(subject, moments(ALONE, starts)).get("x.rate")
    if rate is None:
        assert rates is None or set(rates.values) == {0.0}
    else:
        assert rates is not None
        assert rates.values[1:-1] == pytest.approx(rate)
    assert subject.counts.keys() - {"taken"} == ({outcome} if outcome else set())
    assert [note.split(": ")[:2] for note in subject.notes()] == ([["shop", "x_total"]] if outcome else [])


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("pair", [(1000, 90_000), (80_000, 90_000), (400, 90_000), (20, 500)])
def test_a_balancer_draws_one_of_two_writers_without_a_start(pair: tuple[int, int], seed: int) -> None:
    drawn = np.random.default_rng(seed).integers(2, size=80)
    subject = conversion({"take": "x_total"}, wait="75s")
    rates = run(subject, moments((15.0 * i, pair[at] + 1.5 * i) for i, at in enumerate(drawn))).get("x.rate")
    assert rates is None or max(rates.values) < 5
    assert subject.counts["several_writers"] > 50
    assert len(subject.notes()) == 1
    assert not subject.notes()


@pytest.mark.parametrize(
    ("values", "resets"),
    [
        pytest.param(
            [(15.0 * i, 9000.0 + 75 * i if i < 30 else 75.0 * (i - 30)) for i in range(60)], 1, id="once"
        ),
        pytest.param(
            [(60.0 * i, 9000.0 + 300 * i if i < 9 else 150 + 300.0 * (i - 9)) for i in range(20)],
            1,
            id="60 s",
        ),
        pytest.param([(15.0 * i, 75.0 * (i % 12)) for i in range(60)], 4, id="every three minutes"),
        pytest.param([(15.0 * i, (2.0**32 - 2500 + 75 * i) % 2.0**32) for i in range(60)], 1, id="a wrap"),
    ],
)
def test_a_restart_without_a_start_stays_a_reset(values: list[tuple[float, float]], resets: int) -> None:
    subject = conversion({"take": "x_total"}, wait="75s")
    rates = run(subject, moments(values))["x.rate"].values
    assert max(rates) == pytest.approx(5.0)
    assert min(rates[1:-1]) >= 2.5
    assert subject.counts == {"taken": len(values), "resets": resets}


@pytest.mark.parametrize("exports", [2, 3, 5])
@pytest.mark.parametrize("before_s", [15.0, 7.5])
def test_a_process_that_restarts_after_a_few_exports_is_one_by_its_starts(
    exports: int, before_s: float
) -> None:
    values = [(15.0 * i, 75.0 * (i % exports) + 5 * before_s) for i in range(60)]
    starts = [START + 15.0 * (i - i % exports) - before_s for i in range(60)]
    subject = conversion({"take": "x_total"}, wait="75s")
    rates = run(subject, moments(values, starts))["x.rate"].values[2:-1]
    assert rates.mean() == pytest.approx(5.0 - (15 - before_s) / 3 / exports, rel=0.05)
    assert subject.counts.keys() <= {"taken", "resets"}


def test_a_restart_at_every_second_reading_without_a_start_has_no_rate_and_is_said() -> None:
    subject = conversion({"take": "x_total"}, wait="75s")
    assert not run(subject, moments((15.0 * i, 75.0 * (1 + i % 2)) for i in range(60)))
    (note,) = subject.notes()
    assert "several processes send it, or it begins anew at every second reading" in note


@pytest.mark.parametrize(
    ("later", "start", "sudden"),
    [
        pytest.param(90_000.0, 0.0, 1, id="a larger process takes over"),
        pytest.param(12_000.0, 0.0, 1, id="a somewhat larger one"),
        pytest.param(9000.0, 0.0, 0, id="nothing happens"),
        pytest.param(9400.0, 0.0, 0, id="five times the pace"),
        pytest.param(90_000.0, START - 20_000, 0, id="with a start of its own"),
    ],
)
def test_a_rise_that_may_be_another_process_is_counted(later: float, start: float, sudden: int) -> None:
    values = [(15.0 * i, (9000.0 if i < 30 else later) + 75 * i) for i in range(60)]
    subject = conversion({"take": "x_total"}, wait="75s")
    rates = run(subject, moments(values, [0.0 if i < 30 else start for i in range(60)]))["x.rate"].values
    assert subject.counts["sudden_rise"] == sudden
    assert (max(rates) > 50) == bool(sudden)


@pytest.mark.parametrize(("value", "sudden"), [(90_000.0, 1), (15_000.0, 0)])
def test_a_counter_that_stood_still_rises_suddenly_by_more_than_its_count(value: float, sudden: int) -> None:
    subject = conversion({"take": "x_total"}, wait="75s")
    run(subject, moments((15.0 * i, 9000.0 if i < 30 else value) for i in range(60)))
    assert subject.counts["sudden_rise"] == sudden


def test_a_burst_of_rare_events_is_no_sudden_rise() -> None:
    subject = conversion({"take": "x_total"}, wait="75s")
    run(subject, moments((15.0 * i, i // 8 + (60.0 if i >= 30 else 0.0)) for i in range(60)))
    assert subject.counts["sudden_rise"] == 0


def test_a_writer_that_comes_once_is_a_step_that_is_taken_back() -> None:
    readings = merged(moments(ALONE), moments([(307.0, 90_000.0)]))
    subject = conversion({"take": "x_total"}, wait="75s")
    assert max(run(subject, readings)["x.rate"].values) == pytest.approx(5.0)
    assert subject.counts["several_writers"] > 0


def test_workers_that_live_for_less_than_two_exports_are_no_unsteady_start() -> None:
    lasting = moments(((60.0 * i, 9000.0 + 300 * i) for i in range(30)), [START - 9000.0] * 30)
    brief = moments(
        ((60.0 * i + 20, 100.0 + i) for i in range(30)), [START + 60 * i + 0.000123 for i in range(30)]
    )
    subject = conversion({"take": "x_total"}, wait="75s")
    total = run(subject, merged(lasting, brief))["x.rate"].values[1:-1].sum() * 30
    assert subject.counts.keys() <= {"taken", "resets"}
    assert total == pytest.approx(27 * (300 + 115), rel=0.05)


def test_deltas_and_cumulative_values_of_one_series_are_not_added_up() -> None:
    cumulative = moments(((30.0 * i + 3, 50.0 + 60 * i) for i in range(9)), [START - 900] * 9)
    subject = conversion({"take": "x_total"}, wait="30s")
    assert run(subject, merged(DELTAS, cumulative))["x.rate"].values[1:-1] == pytest.approx(2.0)
    assert subject.counts["mixed_temporality"] >= 8
    assert "deltas and cumulative" in subject.notes()[0]


@pytest.mark.parametrize("start", [0.0, math.inf], ids=["no start", "the end is the start"])
def test_deltas_without_a_span_count_since_the_one_before(start: float) -> None:
    deltas = [replace(delta, start=min(start, delta.time)) for delta in DELTAS]
    assert run(conversion({"take": "x_total"}, wait="30s"), deltas)["x.rate"].values[1:-1] == pytest.approx(
        2.0
    )


def test_two_deltas_of_one_span_are_of_two_writers() -> None:
    subject = conversion({"take": "x_total"}, wait="30s")
    run(subject, merged(DELTAS, [replace(delta, value=9.0) for delta in DELTAS]))
    assert subject.counts == {"taken": 8, "several_writers": 8}


@pytest.mark.parametrize(("over", "expected"), [("mean", 15.0), ("sum", 30.0), ("max", 20.0)])
def test_sums_that_may_fall_are_levels_of_each_process(over: str, expected: float) -> None:
    starts = (START - 500, START - 400)
    readings = merged(
        *(
            series([level] * 40, name="g", part="gauge", start=start, first=START + shift)
            for level, start, shift in zip((10.0, 20.0), starts, (0, 7), strict=True)
        )
    )
    found = run(conversion({"take": "g", "over_hosts": over}, wait="60s"), readings)
    assert found["g"].values[1:-1] == pytest.approx(expected)


def test_a_writer_that_joins_makes_up_no_rate() -> None:
    alone = series([50.0 * i for i in range(20)], every_s=10)
    joined = workers(1000.0, 90_000.0)
    later = [replace(reading, time=reading.time + 200) for reading in joined]
    subject = conversion({"take": "x_total"}, wait="30s")
    assert run(subject, [*alone, *later])["x.rate"].values.max() == pytest.approx(5.0, abs=0.1)
    assert subject.counts["several_writers"] > 70


def test_deltas_of_writers_add_up_and_those_that_come_again_do_not() -> None:
    other = [replace(delta, time=delta.time + 7, start=delta.start + 7) for delta in DELTAS]
    subject = conversion({"take": "x_total"}, wait="30s")
    readings = merged(DELTAS, DELTAS, other)
    assert run(subject, readings)["x.rate"].values[1:-1] == pytest.approx(4.0)
    assert subject.counts["out_of_order"] == len(DELTAS)


def test_a_sender_that_invents_starts_fills_no_memory() -> None:
    subject = conversion({"take": "x_total"}, wait="1s")
    for number in range(1100):
        subject.take(
            series([5.0], first=START + number / 10, start=START - 900.000123 + number / 10), START + 200
        )
    assert subject.counts["full"] == 100


def test_many_deltas_within_minutes_all_count() -> None:
    deltas = [
        SeriesReading("x_total", LABELS, START + i / 10, 1.0, "counter", 0.0, START + i / 10 - 1, True)
        for i in range(2500)
    ]
    subject = conversion({"take": "x_total"}, wait="1s")
    assert run(subject, deltas)["x.rate"].values[1:-1] == pytest.approx(10.0)
    assert subject.counts == {"taken": 2500}


def test_a_series_that_began_a_moment_ago_counts_from_its_start() -> None:
    old = series([0.0] * 10)
    new = series([30.0] * 6, host="b", first=START + 60, start=START + 45)
    found = run(conversion({"take": "x_total"}, wait="1s"), merged(old, new))
    assert found["x.rate"].values.sum() * 30 == pytest.approx(30.0)


def test_after_a_gap_nothing_is_known_of_it() -> None:
    readings = [*series([0.0, 15.0]), *series([10_000.0, 10_015.0, 10_030.0], first=START + 1000)]
    found = run(conversion({"take": "x_total"}, wait="1s"), readings)
    assert found["x.rate"].values.max() <= 1.0


def test_the_first_intervals_wait_until_every_host_may_have_been_read() -> None:
    found = run(conversion({"take": "x_total"}, wait="60s"), series([15.0 * i for i in range(20)]))
    assert found["x.rate"].timestamps.min() == START + 60


def test_quantiles_are_of_the_buckets_of_all_hosts() -> None:
    def buckets(per_step: dict[float, float], host: str) -> list[SeriesReading]:
        return merged(
            *(
                series([n * i for i in range(12)], name="d", part="bucket", at=le, host=host)
                for le, n in per_step.items()
            )
        )

    fast = buckets({0.1: 90, 1.0: 90, math.inf: 90}, "a")
    slow = buckets({0.1: 0, 1.0: 10, math.inf: 10}, "b")
    found = run(conversion({"take": "d", "unit": "s"}, wait="1s"), merged(fast, slow))
    assert found["d.p50"].values == pytest.approx(0.1 * 50 / 90)
    assert found["d.p99"].values == pytest.approx(0.1 + 0.9 * 9 / 10)
    assert found["d.rate"].values == pytest.approx(100 / 15)


def test_bounds_that_not_all_hosts_have_are_left_out() -> None:
    one = [
        r
        for le in (0.1, 0.5, math.inf)
        for r in series([10.0 * i for i in range(8)], name="d", part="bucket", at=le)
    ]
    two = [
        r
        for le in (0.2, 0.5, math.inf)
        for r in series([10.0 * i for i in range(8)], name="d", part="bucket", at=le, host="b")
    ]
    found = run(conversion({"take": "d"}, wait="1s"), merged(one, two))
    assert found["d.p50"].values == pytest.approx(0.25)


def test_exponential_histograms_of_hosts_are_added() -> None:
    steps: list[float | Exponential] = [
        Exponential(3, positive={8: 10.0 * i, 16: 10.0 * i}) for i in range(8)
    ]
    found = run(conversion({"take": "d"}, wait="1s"), series(steps, name="d", part="exponential"))
    assert found["d.p50"].values == pytest.approx(2 ** (9 / 8))
    assert found["d.rate"].values == pytest.approx(20 / 15)


def test_errors_are_a_share_where_a_label_says_so() -> None:
    good = series([90.0 * i for i in range(10)], labels=(("code", "200"),))
    bad = series([10.0 * i for i in range(10)], labels=(("code", "503"),))
    found = run(conversion({"take": "x_total", "errors": {"code": "5??"}}, wait="1s"), merged(good, bad))
    assert found["x.errors"].values == pytest.approx(0.1)
    assert found["x.rate"].values == pytest.approx(100 / 15)


@pytest.mark.parametrize(("over", "expected"), [("mean", 15.0), ("sum", 30.0), ("max", 20.0)])
def test_gauges_over_hosts(over: str, expected: float) -> None:
    one = series([10.0] * 25, name="g", part="gauge")
    two = series([20.0] * 7, name="g", part="gauge", host="b", every_s=60)
    found = run(conversion({"take": "g", "over_hosts": over}, wait="60s"), merged(one, two))
    assert found["g"].values == pytest.approx(expected)


def test_quantiles_that_senders_say_are_taken_as_they_are() -> None:
    found = run(conversion({"take": "s"}, wait="1s"), series([0.4] * 8, name="s", part="quantile", at=0.99))
    assert found["s.p99"].values == pytest.approx(0.4)


def test_a_name_is_built_of_chosen_labels() -> None:
    rule = {"take": "x_total", "name": "checkout", "labels": ["method", "route"]}
    labels = (("method", "GET"), ("route", "/cart"))
    found = run(conversion(rule, wait="1s"), series([15.0 * i for i in range(8)], labels=labels))
    assert list(found) == ["checkout.rate{GET /cart}"]


def test_metrics_beyond_the_bound_are_counted() -> None:
    many = [series([1.0 * i for i in range(6)], labels=(("route", str(n)),)) for n in range(5)]
    subject = conversion({"take": "x_total", "labels": ["route"]}, wait="1s", series_per_service=2)
    assert len(run(subject, merged(*many))) == 2
    assert subject.counts["full"] == 18
    (note,) = subject.notes()
    assert note.startswith("shop: x_total: more names")


def test_what_is_not_wanted_late_or_ahead_is_counted() -> None:
    subject = conversion({"take": "x_total", "where": {"env": "prod"}}, {"take": "y"}, wait="1s")
    subject.take(series([1.0], name="z"), START)
    subject.take(series([1.0]), START)
    subject.take(series([1.0], name="y", part="gauge", first=START + 500), START)
    subject.take([SeriesReading("y", (), START, 1.0, "gauge")], START)
    subject.take(series([1.0, 1.0], name="y", part="gauge", every_s=0.0), START)
    assert subject.counts == {"unwanted": 2, "ahead": 1, "no_service": 1, "taken": 1, "out_of_order": 1}


def test_numbers_that_no_message_holds_are_left_out() -> None:
    huge = series([0.0, 1e308, 1e308, 1e308, 1e308], name="g", part="gauge")
    assert run(conversion({"take": "g"}, wait="1s"), huge) == {}
    subject = conversion({"take": "g"}, wait="1s")
    subject.take(
        [SeriesReading("g", LABELS, time, 1.0, "gauge") for time in (math.nan, -math.inf, 0.0)], START
    )
    assert subject.counts == {"late": 3}


@pytest.mark.parametrize("over", ["mean", "sum", "max"])
@pytest.mark.parametrize(("one", "two"), [(1.7e308, 1.7e308), (1.7e308, -1.7e308)])
def test_levels_of_hosts_that_are_too_large_end_nothing(over: str, one: float, two: float) -> None:
    subject = conversion({"take": "g", "over_hosts": over}, wait="1s")
    for step in range(10):
        for host, value in (("a", one), ("b", two)):
            reading = series([value], name="g", part="gauge", host=f"{host}{step}", first=START + 15 * step)
            subject.take([*reading, *series([value], name="g", part="gauge", host=host)], START + 15 * step)
    subject.close(START + 1000)
    later = series([1.0] * 10, name="g", part="gauge", first=START + 1000)
    assert run(subject, later)["g"].values == pytest.approx(1.0)


def test_memory_of_silent_series_ends() -> None:
    subject = conversion({"take": "x_total"}, wait="1s", readings=1000)
    subject.take([r for n in range(1000) for r in series([1.0], host=str(n))], START)
    subject.take(series([1.0], host="late"), START)
    assert subject.counts["full"] == 1
    subject.close(START + 1000)
    subject.take(series([1.0], host="late", first=START + 1000), START + 1000)
    assert subject.counts["full"] == 1


def test_readings_of_the_past_are_converted_by_their_own_time() -> None:
    subject = conversion({"take": "x_total"}, wait="30s")
    found: list[MetricPoints] = []
    for reading in series([15.0 * i for i in range(40)], first=START - 7200):
        subject.take([reading], START)  # a sender that catches up after an outage
        found += subject.close(START)
    rates = np.concatenate([points.values for points in found])
    assert len(rates) >= 15
    assert rates == pytest.approx(1.0)
