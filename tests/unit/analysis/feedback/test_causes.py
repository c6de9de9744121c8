"""What confirmed causes teach: nothing without them, little from few, and what misleads from many."""

from __future__ import annotations

from dataclasses import astuple

import numpy as np
import pytest

from pipeline.analysis.feedback import Confirmation, learn_ranking
from pipeline.analysis.rootcause import FEATURES, RankingConfig, confidences, weights_of

SHIPPED = RankingConfig()


def misled_by_text() -> Confirmation:
    """The text spoke for one change, attribution for the other, and that did it."""
    return Confirmation({"said": {"text": 4.0}, "did": {"attribution": 3.0}}, "did")


@pytest.mark.parametrize(
    "confirmations",
    [pytest.param([], id="none"), pytest.param([Confirmation({}, "c")], id="of an event without suspects")],
)
def test_without_evidence_the_weights_are_those_shipped(confirmations: list[Confirmation]) -> None:
    assert learn_ranking(SHIPPED, confirmations) is SHIPPED


@pytest.mark.parametrize(
    ("many", "least", "most"), [(1, 0.9, 1.0), (5, 0.6, 0.95), (100, 0.0, 0.6), (400, 0.0, 0.45)]
)
def test_few_change_little_and_many_change_much(many: int, least: float, most: float) -> None:
    learnt = learn_ranking(SHIPPED, [misled_by_text()] * many)
    assert least <= learnt.text <= most
    assert learnt.attribution >= SHIPPED.attribution
    assert learnt.base == SHIPPED.base
    assert learnt.min_confidence == SHIPPED.min_confidence


def test_evidence_never_turns_against_what_it_speaks_for() -> None:
    learnt = learn_ranking(SHIPPED, [Confirmation({"a": {"text": 9.0}}, "elsewhere")] * 400)
    assert learnt.text == 0.0
    assert learnt.noise == pytest.approx(SHIPPED.noise)


def test_what_was_right_is_trusted_more() -> None:
    one = Confirmation({"a": {"text": 2.0}, "b": {"deployment": 1.0}}, "a")
    learnt = learn_ranking(SHIPPED, [one] * 50)
    assert learnt.text > SHIPPED.text
    assert learnt.deployment < SHIPPED.deployment


def test_the_latest_confirmations_count() -> None:
    right = Confirmation({"a": {"text": 2.0}, "b": {"deployment": 1.0}}, "a")
    old_and_new = learn_ranking(SHIPPED, [misled_by_text()] * 500 + [right] * 500)
    assert old_and_new == learn_ranking(SHIPPED, [right] * 500)


def test_the_weights_are_a_maximum_of_the_posterior() -> None:
    cases = [misled_by_text()] * 7 + [Confirmation({"a": {"text": 1.0, "deployment": 0.5}}, "other")] * 3
    learnt = weights_of(learn_ranking(SHIPPED, cases))
    best = _log_posterior(cases, learnt)
    rng = np.random.default_rng(1)
    free = np.array([name != "base" for name in FEATURES])
    for _ in range(50):
        assert _log_posterior(cases, learnt + rng.normal(0, 0.01, len(FEATURES)) * free) < best


def _log_posterior(cases: list[Confirmation], weights: np.ndarray) -> float:
    total = -0.5 * float((((weights - weights_of(SHIPPED)) / 0.2) ** 2).sum())
    for one in cases:
        table = np.array(
            [[1.0 if f == "base" else row.get(f, 0.0) for f in FEATURES] for row in one.evidence.values()]
        )
        share = confidences(table, weights)
        names = list(one.evidence)
        total += float(np.log(share[names.index(one.cause)] if one.cause in names else 1 - share.sum()))
    return total


def test_astuple_keeps_every_number_finite() -> None:
    learnt = learn_ranking(SHIPPED, [misled_by_text()] * 400)
    assert np.isfinite(astuple(learnt)).all()
