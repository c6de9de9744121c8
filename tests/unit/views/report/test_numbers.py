"""What ``smidgen why`` says of a step's two numbers: they mean what the words say, and fit the decision."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipeline.analysis.dedup.links import Link
from pipeline.analysis.filters.threshold import judge_threshold
from pipeline.messages.ledger import LedgerEntry
from pipeline.model import Decision, DomainDecision, Scan, divide
from pipeline.model.steps import BY_KEY, sentence
from pipeline.views.report.explain import Step, explain
from tests.support.builders import build_candidate, build_decision

CANDIDATE = build_candidate("cart.tax", before=0.10, after=0.16)
SCAN = Scan("shop", "live", 1.7e9, 1.7e9 + 30, 1.7e9 + 45, 1.7e9 + 50, 7)


LINKS = {key: code for key, code in BY_KEY["pairwise_dedup"].codes.items() if code.dropped}


def dropped(decision: Decision) -> Step:
    return explain(LedgerEntry("c0ffee", SCAN, CANDIDATE, decision)).steps[-1]


def passed(decision: Decision, *domains: DomainDecision) -> Step:
    candidate = replace(CANDIDATE, passed=(decision,), domains=domains)
    return explain(LedgerEntry("c0ffee", SCAN, candidate)).steps[-1]


@pytest.mark.parametrize("step", ["som_dedup", "pairwise_dedup"])
@pytest.mark.parametrize("feature", LINKS)
def test_a_link_says_what_its_number_is(feature: str, step: str) -> None:
    link = Link(feature, 0.9994, 0.9)
    reported = dropped(link.joined(step, ["cart.total"]))
    assert reported.numbers == f"0.9994 against 0.9 ({LINKS[feature].measures})"
    assert "cart.total" in reported.answer
    near = Link(feature, 0.4, 0.9)
    let_through = passed(near.apart("pairwise_dedup", "cart.total"))
    assert let_through.numbers == f"0.4 against 0.9 ({LINKS[feature].measures})"
    assert let_through.answer == LINKS[feature].passed.format("cart.total")


def test_only_what_is_reported_the_same_means_the_same() -> None:
    for one in LINKS.values():
        for other in LINKS.values():
            if one.dropped == other.dropped or one.passed == other.passed:
                assert one.measures == other.measures


@pytest.mark.parametrize(
    ("code", "numbers"),
    [
        ("cause", "1 against 1 (share of its rise through what they have in common)"),
        ("correlation", "1 against 1 (correlation of the two series)"),
    ],
)
def test_a_change_is_no_share_of_a_rise(code: str, numbers: str) -> None:
    assert dropped(Link(code, 1.0, 1.0).joined("som_dedup", ["a"])).numbers == numbers


@pytest.mark.parametrize(
    ("decision", "answer", "numbers"),
    [
        (Decision("pairwise_dedup", True, 0.0, 0.7, "nothing"), "nothing to compare with", "0 against 0.7 ("),
        (
            build_decision("som_dedup", 3.0, 1.0),
            "it stands for its group",
            "3 against 1 (candidates of its group, itself counted)",
        ),
        (build_decision("same_regression", 0.0, 0.0), "no earlier scan passed it on", ""),
        (
            build_decision("same_regression", 0.04, 0.03),
            "it goes well beyond what an earlier scan passed on",
            "",
        ),
    ],
)
def test_what_a_step_says_of_what_it_passes(decision: Decision, answer: str, numbers: str) -> None:
    reported = passed(decision)
    assert reported.answer == answer
    assert reported.numbers.startswith(numbers)


def test_a_step_that_passes_a_candidate_says_why_if_it_has_a_reason_for_it() -> None:
    ((candidate,), _) = divide([(CANDIDATE, Decision("went_away", True, 1.0, 0.5, "new_pattern"))])
    assert candidate.passed == (Decision("went_away", True, 1.0, 0.5, "new_pattern"),)
    assert passed(candidate.passed[0]).answer == "new pattern"


def test_why_a_step_would_have_dropped_is_no_reason_to_pass() -> None:
    decision = judge_threshold(CANDIDATE, absolute=abs(CANDIDATE.delta) / 2, relative=None)
    ((candidate,), _) = divide([(CANDIDATE, decision)])
    assert sentence(candidate.passed[0]) == ""
    assert passed(candidate.passed[0]).answer == "it is at least as large as the threshold"


ROSE = DomainDecision("callers: cart.pay", "rose", 0.2, 0.26, 1.0, 0.1)


@pytest.mark.parametrize(
    ("numbers", "domains", "answer"),
    [
        pytest.param((0.0, 0.0), (), "no domain to compare with", id="no stacks"),
        pytest.param((1.0, 0.1), (), "no domain to compare with", id="no domain"),
        pytest.param((1.0, 0.1), (ROSE,), "the cost of its domain rose with it", id="a domain that rose"),
    ],
)
def test_a_domain_rose_only_where_there_is_one(
    numbers: tuple[float, float], domains: tuple[DomainDecision, ...], answer: str
) -> None:
    reported = passed(build_decision("cost_shift", *numbers), *domains)
    assert reported.answer == answer
    assert bool(reported.numbers) is bool(domains)


def test_what_has_escalated_is_above_its_bound_and_says_why_that_is_no_news() -> None:
    reported = dropped(Decision("same_regression", False, 0.002256, 0.002018, "escalated"))
    assert reported.numbers.startswith("0.002256 against 0.002018")
    for words in ("goes beyond what was reported", "risen steadily", "updates the known"):
        assert words in reported.answer
