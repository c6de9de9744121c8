"""Which regressions leave a test, of what, and which changes touch one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pipeline.analysis.rootcause.trials import TrialFinding
from pipeline.experiments.selection import FixedRegression, MetricTrials, is_fixed, keep_test, touched_tests
from pipeline.model import VerdictKind

FIXED = FixedRegression(
    id="r1",
    service="shop",
    kind="subroutine",
    metric="shop.cart",
    size=0.01,
    cause="0f3c2a9b7d",
    modified=frozenset({"shop.price", "shop.unrelated"}),
    seen=frozenset({"shop.cart", "shop.price", "shop.main"}),
)
NOISE = np.array([0.01, -0.01] * 20)


@pytest.mark.parametrize(
    ("verdict", "contradicted", "repaired", "fixed"),
    [
        ("fixed", False, False, True),
        ("fixed", False, True, True),
        ("fixed", True, False, False),
        (None, False, True, True),
        (None, False, False, False),
        ("true", False, True, True),
        ("true", False, False, False),
        ("acknowledged", False, True, True),
        ("acknowledged", False, False, False),
        ("expected", False, True, False),
        ("false", False, True, False),
        ("cost-shift", False, True, False),
        ("duplicate", False, True, False),
    ],
)
def test_fixed_is_what_people_say_or_a_change_ended(
    verdict: VerdictKind | None, *, contradicted: bool, repaired: bool, fixed: bool
) -> None:
    assert is_fixed(verdict, contradicted=contradicted, repaired=repaired) is fixed


@pytest.mark.parametrize(
    ("regression", "subroutines", "labels"),
    [
        (FIXED, ("shop.cart", "shop.price"), ("shop.cart", "shop.price")),
        (replace(FIXED, modified=frozenset()), ("shop.cart",), ("shop.cart",)),
        (replace(FIXED, kind="endpoint", metric="/cart"), ("shop.price",), ("shop.price", "endpoint=/cart")),
        (replace(FIXED, kind="endpoint", metric="/", modified=frozenset()), (), ("endpoint=/",)),
        (
            replace(FIXED, kind="service", metric="p99", seen=frozenset()),
            ("shop.price", "shop.unrelated"),
            ("shop.price", "shop.unrelated"),
        ),
    ],
    ids=["its own and those that rose", "a flip", "an endpoint", "a flip, an endpoint", "nothing rose"],
)
def test_a_test_is_kept_for_what_rose(
    regression: FixedRegression, subroutines: tuple[str, ...], labels: tuple[str, ...]
) -> None:
    kept = keep_test(regression, [], {})
    assert kept.subroutines == subroutines
    assert kept.labels == labels
    assert (kept.regression, kept.cause, kept.threshold) == ("r1", "0f3c2a9b7d", 0.01)


def test_experiments_of_the_cause_and_the_trials_that_show_its_size() -> None:
    findings = [TrialFinding(names, ()) for names in (("0f3c2a9", "pr-1"), ("0f3c2a9b",), ("ffffffff", "x"))]
    past = {"p99": NOISE, "cpu": NOISE, "cpu_first": NOISE[:1]}
    kept = keep_test(FIXED, findings, past)
    assert kept.experiments == ("pr-1", "0f3c2a9b")
    assert kept.trials == (MetricTrials("cpu", 5),)
    slow = replace(FIXED, kind="service", metric="p99", size=0.02)
    assert keep_test(slow, [], past).trials == (MetricTrials("p99", 2),)
    assert keep_test(replace(FIXED, size=1e-6), [], past).trials == (MetricTrials("cpu", None),)
    assert keep_test(replace(FIXED, size=float("inf")), [], past).trials == (MetricTrials("cpu", 1),)


def test_a_change_touches_the_tests_of_what_it_modifies() -> None:
    small, large = keep_test(FIXED, [], {}), keep_test(replace(FIXED, id="r2", size=0.05), [], {})
    assert touched_tests([small, large], ["shop.price", "shop.other"]) == (large, small)
    assert touched_tests([small, large], ["shop.unrelated", "shop.main"]) == ()
    assert touched_tests([small], []) == ()
