"""The truth tables of the steps ``expected`` and ``muted``."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipeline.analysis.lifecycle import (
    SilenceCase,
    SilenceDecision,
    SilenceEvidence,
    Spending,
    decide_silence,
)
from pipeline.analysis.lifecycle.silence import asks_for_stacks, is_in_force, size_of, standard_error
from pipeline.analysis.stacks import index_stacks
from pipeline.model import Candidate, Silence
from pipeline.model.steps import sentence
from tests.support.builders import build_candidate, build_stacks

NOW = 1_700_000_000.0
HOUR = 3600.0
# A rise of 0.001 that stands out by ten standard errors of 0.0001.
RISE = build_candidate("shop.price", before=0.010, after=0.011, change_time=NOW - HOUR, statistic=100.0)
CALLER = build_candidate("shop.main", before=0.5, after=0.501, change_time=NOW - HOUR, statistic=4.0)
OTHER = build_candidate("shop.tax", before=0.02, after=0.024, change_time=NOW - HOUR, statistic=100.0)
EXPECTED = Silence(
    "e1", "shop", "expected", NOW - 9 * HOUR, NOW - 2 * HOUR, subroutine="shop.price", cost=0.001
)
MUTED = Silence("m1", "shop", "muted", NOW - HOUR, NOW - HOUR, NOW + HOUR, owner="ada")


def decide(
    *silences: Silence,
    candidate: Candidate = RISE,
    suspects: frozenset[str] = frozenset(),
    spendings: tuple[Spending, ...] = (),
    stacks: dict[str, tuple[float, float]] | None = None,
) -> SilenceDecision:
    index = index_stacks(build_stacks(stacks)) if stacks else None
    evidence = SilenceEvidence(NOW, silences, spendings)
    return decide_silence(SilenceCase("r1", candidate, suspects, index), evidence)


def said(decision: SilenceDecision) -> list[tuple[str, bool, str]]:
    return [(one.step, one.passed, one.code) for one in decision.decisions]


def test_nothing_is_said_of_what_no_silence_is_about() -> None:
    assert decide().decisions == ()
    elsewhere = replace(EXPECTED, subroutine="shop.cart.*")
    assert said(decide(elsewhere, replace(MUTED, subroutine="shop.cart"))) == []


@pytest.mark.parametrize(
    ("cost", "code"),
    [
        pytest.param(0.0015, "within", id="more was announced"),
        pytest.param(0.0010, "within", id="just that much"),
        pytest.param(0.00085, "within", id="less, within two standard errors"),
        pytest.param(0.00075, "beyond", id="less, beyond two standard errors"),
    ],
)
def test_an_announced_cost_silences_that_much_and_no_more(cost: float, code: str) -> None:
    found = decide(replace(EXPECTED, cost=cost))
    assert said(found) == [("expected", code == "beyond", code)]
    (decision,) = found.decisions
    assert decision.statistic == pytest.approx(0.001)
    assert decision.bound == pytest.approx(cost + 0.0002)
    assert found.silent == (code == "within")
    assert found.applied[0].total == pytest.approx(0.001)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        pytest.param({}, "within", id="in its span"),
        pytest.param({"start": NOW - HOUR / 2}, None, id="changed before its start"),
        pytest.param({"end": NOW - 1.5 * HOUR}, None, id="changed after its end"),
        pytest.param({"subroutine": "shop.*"}, "within", id="a pattern"),
        pytest.param({"subroutine": "SHOP.PRICE"}, None, id="another case"),
        pytest.param({"time": NOW + 1}, None, id="made after the scan's end"),
        pytest.param({"removed": NOW}, None, id="taken back"),
        pytest.param({"removed": NOW + 1}, "within", id="taken back later"),
    ],
)
def test_an_expectation_is_about_its_names_in_its_span(change: dict[str, object], code: str | None) -> None:
    found = decide(replace(EXPECTED, **change))  # type: ignore[arg-type]  # tests name the fields
    assert [one.code for one in found.decisions] == ([code] if code else [])


ABC = "abcdef0123456789"


@pytest.mark.parametrize(
    ("change", "subroutine", "suspects", "applies"),
    [
        pytest.param(ABC, "", {ABC}, True, id="its change is suspected"),
        pytest.param(ABC[:7], "", {ABC}, True, id="by the beginning of its id"),
        pytest.param(ABC[:6], "", {ABC}, False, id="too short a beginning"),
        pytest.param(ABC, "", {"other"}, False, id="another is suspected"),
        pytest.param(ABC, "shop.price", {"other"}, False, id="another is suspected, names fit"),
        pytest.param(ABC, "shop.cart", {ABC}, False, id="suspected of what it did not announce"),
        pytest.param(ABC, "", set(), False, id="nothing is suspected"),
        pytest.param(ABC, "shop.price", set(), True, id="nothing is suspected, names and time fit"),
    ],
)
def test_a_change_is_answered_for_by_its_own_regressions(
    change: str, subroutine: str, suspects: set[str], applies: bool
) -> None:
    expected = replace(EXPECTED, change=change, subroutine=subroutine)
    assert bool(decide(expected, suspects=frozenset(suspects)).decisions) == applies


@pytest.mark.parametrize(
    ("others", "code"),
    [
        pytest.param([("r2", "e1", 0.0005)], "within", id="together within"),
        pytest.param([("r2", "e1", 0.0009)], "beyond", id="together beyond"),
        pytest.param([("r2", "e2", 0.0009)], "within", id="another expectation's"),
        pytest.param([("r1", "e1", 0.0009)], "within", id="its own, from an earlier scan"),
    ],
)
def test_regressions_that_a_cost_was_announced_for_are_added_up(
    others: list[tuple[str, str, float]], code: str
) -> None:
    spendings = tuple(Spending(regression, silence, size, 0.0001) for regression, silence, size in others)
    (decision,) = decide(replace(EXPECTED, cost=0.0015), spendings=spendings).decisions
    assert decision.code == code


def test_of_several_expectations_the_one_with_most_room_counts() -> None:
    found = decide(replace(EXPECTED, cost=0.0001), replace(EXPECTED, id="e2", cost=0.002))
    assert [(one.code, one.subjects) for one in found.decisions] == [("within", ("e2",))]


def test_a_group_costs_what_its_surest_largest_member_does() -> None:
    size, error = size_of(RISE)
    assert (size, error) == pytest.approx((0.001, 0.0001))
    assert size_of(replace(RISE, group=(CALLER,)))[0] == pytest.approx(0.001), "a caller that hardly rises"
    assert size_of(replace(RISE, group=(OTHER,)))[0] == pytest.approx(0.004)
    (decision,) = decide(EXPECTED, candidate=replace(RISE, group=(OTHER,))).decisions
    assert decision.code == "beyond", "what is merged with it is not hidden"
    unknown = replace(OTHER, statistic=0.0)
    assert size_of(replace(RISE, group=(unknown,)))[1] == pytest.approx(0.0001 * (0.024 / 0.011) ** 0.5)


def test_the_standard_error_is_that_of_the_detectors() -> None:
    assert standard_error(RISE) == pytest.approx(0.0001)
    assert standard_error(replace(RISE, kind="long_term")) == pytest.approx(0.00001)
    assert standard_error(replace(RISE, statistic=0.0)) == 0.0


def test_no_cost_is_announced_for_a_drop_or_a_service_metric() -> None:
    assert decide(EXPECTED, candidate=replace(RISE, after=0.009)).decisions == ()
    latency = replace(RISE, metric_kind="service")
    assert decide(EXPECTED, candidate=latency).decisions == ()
    assert decide(replace(MUTED, subroutine="shop.price"), candidate=latency).silent


@pytest.mark.parametrize(
    ("change", "silent"),
    [
        pytest.param({}, True, id="the whole service"),
        pytest.param({"subroutine": "shop.price"}, True, id="its subroutine"),
        pytest.param({"subroutine": "shop.pr*"}, True, id="a pattern"),
        pytest.param({"subroutine": "shop.tax"}, False, id="another subroutine"),
        pytest.param({"start": NOW + 1}, False, id="not yet"),
        pytest.param({"end": NOW}, False, id="ended"),
        pytest.param({"time": NOW + 1}, False, id="made after the scan's end"),
        pytest.param({"removed": NOW - 1}, False, id="taken back"),
    ],
)
def test_a_mute_silences_what_it_names_until_it_ends(change: dict[str, object], silent: bool) -> None:
    found = decide(replace(MUTED, **change))  # type: ignore[arg-type]  # tests name the fields
    assert found.silent == silent
    assert said(found) == ([("muted", False, "muted")] if silent else [])


PRICE = {"main->price": (100.0, 200.0), "main->tax": (100.0, 100.0), "idle": (9800.0, 9700.0)}
BOTH = {"main->price": (100.0, 200.0), "main->tax": (100.0, 200.0), "idle": (9800.0, 9600.0)}


def named(name: str, rise: float) -> Candidate:
    return build_candidate(name, before=0.01, after=0.01 + rise, change_time=NOW - HOUR, statistic=100.0)


@pytest.mark.parametrize(
    ("members", "stacks", "code"),
    [
        pytest.param([("main", 0.01)], PRICE, "muted", id="a caller that rises through it"),
        pytest.param([("main", 0.02)], BOTH, "others", id="a caller that rises beside it, too"),
        pytest.param([("tax", 0.01)], BOTH, "others", id="another one of the same group"),
        pytest.param([("tax", 0.01)], None, "muted", id="no stacks: no larger than it"),
        pytest.param([("tax", 0.03)], None, "others", id="no stacks: larger than it"),
    ],
)
def test_a_mute_does_not_hide_what_rises_beside_it(
    members: list[tuple[str, float]], stacks: dict[str, tuple[float, float]] | None, code: str
) -> None:
    candidate = replace(named("price", 0.01), group=tuple(named(name, rise) for name, rise in members))
    (decision,) = decide(replace(MUTED, subroutine="price"), candidate=candidate, stacks=stacks).decisions
    assert (decision.code, decision.passed) == (code, code == "others")
    if code == "others":
        assert sentence(decision) == f"muted by ada (m1), but {members[0][0]} rises beside it"


def test_a_member_that_another_mute_names_is_muted_too() -> None:
    candidate = replace(named("price", 0.01), group=(named("tax", 0.01),))
    mutes = [replace(MUTED, subroutine="price"), replace(MUTED, id="m2", subroutine="tax")]
    assert decide(*mutes, candidate=candidate, stacks=BOTH).silent
    assert decide(MUTED, candidate=candidate, stacks=BOTH).silent, "a service that is muted as a whole"


def test_a_mute_of_a_member_does_not_silence_the_group() -> None:
    candidate = replace(named("price", 0.01), group=(named("main", 0.01),))
    assert decide(replace(MUTED, subroutine="main"), candidate=candidate, stacks=PRICE).decisions == ()


def test_stacks_are_asked_for_where_a_mute_leaves_members_out() -> None:
    group = replace(RISE, group=(CALLER,))
    named_mute = replace(MUTED, subroutine="shop.price")
    for silences, candidate, asked in (
        ([named_mute], group, True),
        ([named_mute], RISE, False),
        ([MUTED], group, False),
        ([EXPECTED], group, False),
        ([replace(named_mute, end=NOW)], group, False),
    ):
        assert asks_for_stacks(candidate, SilenceEvidence(NOW, tuple(silences))) == asked


def test_what_goes_beyond_its_cost_may_be_muted_still() -> None:
    found = decide(replace(EXPECTED, cost=0.0001), MUTED)
    assert said(found) == [("expected", True, "beyond"), ("muted", False, "muted")]
    assert said(decide(EXPECTED, MUTED)) == [("expected", False, "within")]


def test_decisions_as_sentences() -> None:
    (within,) = decide(EXPECTED).decisions
    assert sentence(within) == "within the cost that e1 announced"
    (muted,) = decide(MUTED).decisions
    assert sentence(muted) == "muted by ada (m1)"


def test_a_silence_is_in_force_from_when_it_is_made_until_it_is_taken_back() -> None:
    assert is_in_force(MUTED, NOW)
    assert not is_in_force(MUTED, MUTED.time - 1)
    assert not is_in_force(replace(MUTED, removed=NOW), NOW)


def test_costs_of_the_cpu_and_of_metrics_are_apart() -> None:
    metric = replace(RISE, metric_kind="service", metric="shop.price", before=0.2, after=0.1999)
    of_metric = replace(EXPECTED, cost=0.0001, measure="metric")
    assert said(decide(of_metric, candidate=metric)) == [("expected", False, "within")]
    assert said(decide(EXPECTED, candidate=metric)) == []
    assert said(decide(of_metric)) == []


def test_a_relative_cost_is_a_share_of_the_level_before() -> None:
    tenth = replace(EXPECTED, cost=0.1, measure="relative")
    for before, after, code in ((200.0, 215.0, "within"), (200.0, 185.0, "within"), (200.0, 260.0, "beyond")):
        metric = replace(
            RISE, metric_kind="service", metric="shop.price", before=before, after=after, statistic=1e6
        )
        found = decide(tenth, candidate=metric)
        assert [decision.code for decision in found.decisions] == [code]
        assert (found.applied[0].cost, found.applied[0].total) == (20.0, abs(after - before))
    assert said(decide(tenth)) == []
