"""What ``smidgen why`` says of a step's two numbers: they mean what the words say, and fit the decision."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipeline.codec.ledger import LedgerEntry
from pipeline.dedup.links import WORDS, Link, measured, tell_joined, tell_nearest
from pipeline.filters.same_regression import GROWN
from pipeline.filters.threshold import judge_threshold
from pipeline.filters.verdict import Verdict, divide
from pipeline.model import DomainVerdict, Judgement, Scan
from pipeline.report.explain import Step, explain
from tests.support.builders import build_candidate

CANDIDATE = build_candidate("cart.tax", before=0.10, after=0.16)
SCAN = Scan("shop", "live", 1.7e9, 1.7e9 + 30, 1.7e9 + 45, 1.7e9 + 50, 7)


def dropped(step: str, statistic: float, bound: float, reason: str) -> Step:
    return explain(LedgerEntry("c0ffee", SCAN, CANDIDATE, step, statistic, bound, reason)).steps[-1]


def passed(judgement: Judgement, *domains: DomainVerdict) -> Step:
    candidate = replace(CANDIDATE, passed=(judgement,), domains=domains)
    return explain(LedgerEntry("c0ffee", SCAN, candidate)).steps[-1]


@pytest.mark.parametrize("step", ["som_dedup", "pairwise_dedup"])
@pytest.mark.parametrize("feature", WORDS)
def test_a_link_says_what_its_number_is(feature: str, step: str) -> None:
    link = Link(feature, 0.9994, 0.9)
    told = dropped(step, link.similarity, link.bound, tell_joined(link, "cart.total"))
    assert told.numbers == f"0.9994 against 0.9 ({WORDS[feature].measures})"
    near = Link(feature, 0.4, 0.9)
    let_through = passed(Judgement("pairwise_dedup", 0.4, 0.9, tell_nearest(near, "cart.total")))
    assert let_through.numbers == f"0.4 against 0.9 ({WORDS[feature].measures})"
    assert let_through.answer.endswith("cart.total")


def test_only_what_is_told_alike_means_the_same() -> None:
    for one in WORDS.values():
        for other in WORDS.values():
            if one.joined == other.joined or one.nearest == other.nearest:
                assert one.measures == other.measures
        assert measured(f"{one.joined} x") == one.measures
    assert measured("unlike everything that it was compared with") == ""


@pytest.mark.parametrize(
    ("reason", "numbers"),
    [
        ("modified by the same change as a", "1 against 1 (changes that modified what both rise through)"),
        ("moves together with a", "1 against 1 (correlation of the two series)"),
    ],
)
def test_a_change_is_no_share_of_a_rise(reason: str, numbers: str) -> None:
    assert dropped("som_dedup", 1.0, 1.0, reason).numbers == numbers


def test_what_was_compared_with_nothing_says_so() -> None:
    told = passed(Judgement("pairwise_dedup", 0.0, 0.7, "nothing to compare with"))
    assert told.answer == "nothing to compare with"
    assert told.numbers.startswith("0 against 0.7 (")


def test_what_stands_for_a_group_says_so() -> None:
    told = passed(Judgement("som_dedup", 3.0, 1.0))
    assert told.answer == "it stands for its group"
    assert told.numbers == "3 against 1 (candidates of its group, itself counted)"


def test_a_step_that_passes_a_candidate_says_why_if_it_has_a_reason_for_it() -> None:
    ((candidate,), _) = divide("went_away", [(CANDIDATE, Verdict(True, 1.0, 0.5, "new pattern"))])
    assert candidate.passed == (Judgement("went_away", 1.0, 0.5, "new pattern"),)
    assert passed(candidate.passed[0]).answer == "new pattern"


def test_why_a_step_would_have_dropped_is_no_reason_to_pass() -> None:
    verdict = judge_threshold(CANDIDATE, absolute=abs(CANDIDATE.delta) / 2, relative=None)
    ((candidate,), _) = divide("threshold", [(CANDIDATE, verdict)])
    assert candidate.passed[0].reason == ""
    assert passed(candidate.passed[0]).answer == "it is at least as large as the threshold"


ROSE = DomainVerdict("callers: cart.pay", "rose", 0.2, 0.26, 1.0, 0.1)


@pytest.mark.parametrize(
    ("numbers", "domains", "answer"),
    [
        pytest.param((0.0, 0.0), (), "no domain to compare with", id="no stacks"),
        pytest.param((1.0, 0.1), (), "no domain to compare with", id="no domain"),
        pytest.param((1.0, 0.1), (ROSE,), "the cost of its domain rose with it", id="a domain that rose"),
    ],
)
def test_a_domain_rose_only_where_there_is_one(
    numbers: tuple[float, float], domains: tuple[DomainVerdict, ...], answer: str
) -> None:
    told = passed(Judgement("cost_shift", *numbers), *domains)
    assert told.answer == answer
    assert bool(told.numbers) is bool(domains)


@pytest.mark.parametrize(
    ("numbers", "answer"),
    [
        ((0.0, 0.0), "no earlier scan passed it on"),
        ((0.04, 0.03), "it goes well beyond what an earlier scan passed on"),
    ],
)
def test_what_is_new_and_what_goes_beyond_are_told_apart(numbers: tuple[float, float], answer: str) -> None:
    assert passed(Judgement("same_regression", *numbers)).answer == answer


def test_what_has_grown_is_above_its_bound_and_says_why_that_is_no_news() -> None:
    told = dropped("same_regression", 0.002256, 0.002018, GROWN)
    assert told.numbers.startswith("0.002256 against 0.002018")
    assert told.answer.startswith(GROWN)
    for words in ("goes beyond what was told", "grown steadily", "updates the known"):
        assert words in told.answer
