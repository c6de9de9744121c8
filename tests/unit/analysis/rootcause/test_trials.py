"""Trials before a release as evidence on the root cause of a regression in production."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from pipeline.analysis.rootcause.trials import (
    Caused,
    MetricFinding,
    TrialFinding,
    missed_regressions,
    trial_evidence,
)
from pipeline.model import Candidate
from tests.support.builders import build_candidate, build_change
from tests.unit.analysis.rootcause.test_ranking import evidence, near, rank_suspects

SHA = "0f3c2a9b7d"


def metric(name: str = "cpu", *, failed: bool = True, threshold: float = 0.01) -> MetricFinding:
    return MetricFinding(name, failed, threshold, 0.05, 0.2)


def finding(*metrics: MetricFinding, names: tuple[str, ...] = (SHA,)) -> TrialFinding:
    return TrialFinding(names, metrics)


def cpu(delta: float) -> Candidate:
    return replace(build_candidate(), metric_kind="subroutine", before=0.1, after=0.1 + delta)


def service(name: str, relative: float) -> Candidate:
    return replace(build_candidate(), metric_kind="service", metric=name, before=1.0, after=1.0 + relative)


FAILED, PASSED = math.log(0.8 / 0.05), math.log(0.2 / 0.95)


@pytest.mark.parametrize(
    ("candidate", "metrics", "expected"),
    [
        (cpu(0.05), [metric()], FAILED),
        (cpu(0.0001), [metric()], FAILED),
        (cpu(0.05), [metric(failed=False)], PASSED),
        (cpu(0.0001), [metric(failed=False)], 0.0),
        (cpu(0.05), [metric(failed=False), metric("p99")], PASSED),
        (cpu(0.05), [metric("p50", failed=False), metric("p99")], FAILED),
        (cpu(0.05), [metric("p99", failed=False)], 0.0),
        (service("p99", 0.1), [metric("p99", failed=False)], PASSED),
        (service("p99", 0.1), [metric("cpu"), metric("p99", failed=False)], PASSED),
        (service("p99", 0.1), [metric("cpu", failed=False)], 0.0),
        (service("p99", 0.1), [metric("cpu")], FAILED),
        (cpu(0.05), [], 0.0),
    ],
    ids=[
        "failed",
        "failed, a small regression",
        "passed",
        "passed, a regression that trials do not see",
        "the metric of CPU counts",
        "one of two failed",
        "passed, no measure of CPU",
        "its own metric passed",
        "its own metric counts",
        "another metric passed",
        "another metric failed",
        "not decided",
    ],
)
def test_a_verdict_counts_as_its_errors_say(
    candidate: Candidate, metrics: list[MetricFinding], expected: float
) -> None:
    changes = [build_change(SHA), build_change("other-change")]
    found = trial_evidence(changes, candidate, [finding(*metrics)])
    assert found.tolist() == [pytest.approx(expected), 0.0]


@pytest.mark.parametrize(
    ("names", "known"),
    [((SHA[:7],), True), ((SHA + "00",), True), (("pr-1", SHA), True), ((SHA[:6],), False), (("",), False)],
)
def test_a_change_is_found_by_its_id_perhaps_shortened(names: tuple[str, ...], known: bool) -> None:  # noqa: FBT001
    assert finding(names=names).is_of(SHA) is known


@pytest.mark.parametrize(
    ("regression", "missed"),
    [
        (Caused(SHA, "subroutine", "shop.cart", 0.02), {"cpu": {"m": 1}}),
        (Caused(SHA, "subroutine", "shop.cart", 0.001), {}),
        (Caused(SHA, "service", "latency", 0.2), {}),
        (Caused("another-change", "subroutine", "shop.cart", 0.02), {}),
    ],
    ids=["missed", "too small", "another metric", "another change"],
)
def test_a_pass_before_a_regression_is_a_false_negative(
    regression: Caused, missed: dict[str, dict[str, int]]
) -> None:
    passed = replace(metric(failed=False), model="m")
    assert missed_regressions([finding(passed)], [regression, regression]) == missed
    assert missed_regressions([finding(replace(passed, failed=True))], [regression]) == {}


def test_errors_that_were_not_seen_are_no_certainty() -> None:
    sure = MetricFinding("cpu", True, 0.01, 0.0, 0.0)
    assert sure.evidence == pytest.approx(math.log(0.95 / 0.01))
    assert replace(sure, failed=False).evidence == pytest.approx(math.log(0.05 / 0.99))
    assert replace(sure, false_positives=0.5, false_negatives=0.9).evidence == 0.0


def test_of_two_equal_changes_the_one_whose_trial_failed_comes_first() -> None:
    equal = evidence(("aaaaaaa", near(0.001)), ("bbbbbbb", near(0.001)))
    rng = np.random.default_rng(1)
    right = 0
    for _ in range(200):
        cause = int(rng.integers(2))
        names = [change.id for change in equal.changes]
        findings = [
            finding(metric(failed=bool(rng.random() < (0.8 if number == cause else 0.05))), names=(name,))
            for number, name in enumerate(names)
        ]
        said = trial_evidence(equal.changes, cpu(0.05), findings)
        scores = {one.change.id: one.score for one in rank_suspects(replace(equal, trials=said))}
        likelier = scores.get(names[cause], 0.0) - scores.get(names[1 - cause], 0.0)
        right += 2 if likelier > 1e-9 else 1 if abs(likelier) <= 1e-9 else 0
    assert right / 400 == pytest.approx(0.875, abs=0.05)


def test_without_a_verdict_nothing_changes() -> None:
    plain = evidence(("a", near(0.001)), ("b", near(0.004, 0.4)))
    assert trial_evidence(plain.changes, cpu(0.05), []).tolist() == [0.0, 0.0]
    assert all("trial" not in one.factors for one in rank_suspects(plain))
    (first, *_) = rank_suspects(replace(plain, trials=np.array([2.0, 0.0])))
    assert first.factors["trial"] == 2.0
