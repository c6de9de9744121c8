from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from pipeline.analysis.rootcause.attribution import Attribution, attribute, call_distances
from pipeline.analysis.rootcause.onset import Deployments
from pipeline.analysis.rootcause.ranking import (
    FEATURES,
    Evidence,
    RankingConfig,
    candidate_changes,
    confidences,
    features,
    leave_out,
    over_cases,
    rank_over_cases,
    weights_of,
)
from pipeline.analysis.stacks import index_stacks, membership
from pipeline.model import BoolArray, SeriesKey, StackMatrix, Suspect
from pipeline.model.steps import FACTORS
from tests.support.builders import build_change, build_stacks

# FBDetect Table 4: gCPU of the stack samples that hold B, before and after, in hundredths of the service.
SHARES = {
    "A->B->C": (0.01, 0.02),
    "B->E->F": (0.02, 0.03),
    "D->B->C": (0.02, 0.02),
    "B->E->D": (0.04, 0.06),
    "G->B->D": (0.00, 0.01),
}
TABLE_4 = build_stacks(SHARES, total=1.0)
OF_B = membership(index_stacks(TABLE_4), [SeriesKey("subroutine", "B")])[0]
SAMPLES = 1_000_000
COUNTED = build_stacks(
    {name: (before * SAMPLES, after * SAMPLES) for name, (before, after) in SHARES.items()}, total=SAMPLES
)
T = 1_700_000_000.0


def attributed(matrix: StackMatrix, regressed: BoolArray, *changes: Sequence[str]) -> Sequence[Attribution]:
    return attribute(call_distances(index_stacks(matrix)), regressed, changes) or ()


def test_table_4_attributes_80_percent_to_the_change_of_a_and_e() -> None:
    (found,) = attributed(COUNTED, OF_B, ["A", "E"])
    assert found.fraction == pytest.approx(0.80)
    assert found.error < 0.02, "a million samples leave little doubt"


@pytest.mark.parametrize(
    ("subroutines", "fraction", "nearness"),
    [
        pytest.param(["B"], 1.0, (0.01 / 2 + 0.01 / 3 + 0.02 / 3 + 0.01 / 2) / 0.05, id="the regressed one"),
        pytest.param(["A"], 0.2, 0.01 / 3 / 0.05, id="only A"),
        pytest.param(["E"], 0.6, 0.03 / 2 / 0.05, id="only E"),
        pytest.param(["G"], 0.2, 0.01 / 3 / 0.05, id="a caller that did not exist before"),
        pytest.param(["A", "C"], 0.2, 0.01 / 0.05, id="the deepest frame counts"),
        pytest.param(["unrelated"], 0.0, 0.0, id="in no stack"),
        pytest.param([], 0.0, 0.0, id="a change that modified nothing known"),
    ],
)
def test_attribution(subroutines: list[str], fraction: float, nearness: float) -> None:
    (found,) = attributed(COUNTED, OF_B, subroutines)
    assert (found.fraction, found.nearness) == pytest.approx((fraction, nearness))


def test_attribution_needs_a_rise() -> None:
    few = build_stacks({"A->B": (10, 14), "C": (90, 86)})
    assert not attributed(few, np.array([True, False]), ["A"]), "four samples are noise"


def test_attribution_that_is_noise_counts_for_nothing() -> None:
    rows = {"A->B": (1000, 2000), "N->B": (1000, 1030), "other": (98_000, 96_970)}
    cause, chance = attributed(build_stacks(rows), np.array([True, True, False]), ["A"], ["N"])
    assert cause.counted > 0.9
    assert chance.fraction > 0, "the samples rose a little"
    assert (chance.counted, chance.chance) == (0.0, 1.0)


def test_over_dispersion_makes_noise_of_what_sampling_alone_would_not() -> None:
    rng = np.random.default_rng(7)
    rows = {"A->B": (1000.0, 1200.0)}
    for number in range(60):
        before, after = 1000 * rng.lognormal(0, 0.3, size=2)
        rows[f"x{number}"] = (float(before), float(after))
    matrix = build_stacks(rows, total=1e6)
    assert not attributed(matrix, np.arange(61) == 0, ["A"])
    calm = build_stacks({name: (1000, 1200 if name == "A->B" else 1000) for name in rows}, total=1e6)
    assert attributed(calm, np.arange(61) == 0, ["A"])


def test_the_shrinking_of_all_other_shares_is_no_noise() -> None:
    rows = {"A->B": (1000.0, 51_000.0), **{f"x{i}": (10_000.0, 10_000.0) for i in range(10)}}
    # Each other share falls from 9.9 % to 6.6 %.
    (found,) = attributed(build_stacks(rows), np.arange(11) == 0, ["A"])
    assert found.counted == pytest.approx(1.0)


def test_the_nearest_subroutine_is_the_least_likely_by_chance() -> None:
    rows = {"main->handle->work->loop": (100, 1100), "main->idle": (9900, 8900)}
    nearest_first = (["loop"], ["work"], ["handle"], ["main"])
    found = attributed(build_stacks(rows), np.array([True, False]), *nearest_first)
    chances = [one.chance for one in found]
    assert chances == sorted(chances)
    assert [one.rank for one in found] == [1, 2, 3, 4]
    assert [one.fraction for one in found] == [pytest.approx(1.0)] * 4


def test_a_change_of_many_subroutines_is_near_by_chance() -> None:
    rows = {"main->work": (100, 1100), **{f"main->other{i}": (100.0, 100.0) for i in range(50)}}
    others = [f"other{i}" for i in range(30)]
    one, many = attributed(build_stacks(rows), np.arange(51) == 0, ["work"], ["work", *others])
    assert one.nearness == many.nearness
    assert one.chance < 0.05 < many.chance


def test_subroutines_that_occur_in_no_stack_do_not_dilute_those_that_do() -> None:
    rows = {"main->work": (100, 1100), **{f"main->other{i}": (100.0, 100.0) for i in range(50)}}
    tests = [f"tests.test_work.test_{i}" for i in range(300)]
    given = (["work"], ["work", *tests], tests)
    alone, tested, only_tests = attributed(build_stacks(rows), np.arange(51) == 0, *given)
    assert tested == alone
    assert only_tests.chance == 1.0, "it modified something, but nothing that rose"


@pytest.mark.parametrize(
    ("subroutines", "expected"),
    [
        (["shop.cart.<module>"], True),
        (["<module>"], True),
        (["shop.cart"], True),  # a class, or a module, of which one subroutine is in the stacks
        (["shop.cart", "shop.cart.<module>"], True),
        (["shop.cart.total"], False),
        (["shop.start.<module>"], False),  # it ran while samples were taken
        (["shop.page"], False),
        (["shop.cart.<module>", "shop.cart.total"], False),
    ],
)
def test_bodies_that_ran_at_import_say_nothing_of_who_reads_what_they_define(
    subroutines: list[str], expected: bool
) -> None:
    rows = {"main->shop.cart.total": (1.0, 2.0), "main->shop.start.<module>": (1.0, 1.0)}
    assert call_distances(index_stacks(build_stacks(rows))).are_definitions(subroutines) is expected


def test_only_changes_deployed_just_before_are_candidates() -> None:
    times = {"long before": -101, "before": -50, "at": 0, "a window after": 9, "after": 20}
    changes = [build_change(name, time=T + at) for name, at in times.items()]
    found = candidate_changes(changes[::-1], T, lookback_s=100, tolerance_s=10)
    assert [change.id for change in found] == ["before", "at", "a window after"]


def test_a_change_that_is_announced_again_counts_from_its_first_deployment() -> None:
    changes = [build_change("one", time=T + at) for at in (-5, -40, -20)]
    (found,) = candidate_changes(changes, T, lookback_s=100, tolerance_s=10)
    assert found.time == T - 40


# Ranking


def near(chance: float, fraction: float = 1.0, rank: int = 1) -> Attribution:
    return Attribution(fraction, 0.0, fraction, rank, chance)


NOTHING = near(1.0, 0.0, 500)


def rank_suspects(evidence: Evidence, config: RankingConfig | None = None) -> tuple[Suspect, ...]:
    return rank_over_cases([(1.0, evidence)], config)


def evidence(
    *rows: tuple[str, Attribution | None],
    fit: float = 2.0,
    text: float = 1.0,
    correlation: float = np.nan,
    trial: float = 0.0,
) -> Evidence:
    """Every change with the same evidence but for its attribution."""
    size = len(rows)
    return Evidence(
        changes=tuple(build_change(name, time=T) for name, _ in rows),
        deployments=Deployments(np.full(size, fit), np.full(size, 0.7)),
        attributions=tuple(one for _, one in rows),
        similarity=np.full(size, 0.25),
        similarity_chance=np.full(size, text),
        correlation=np.full(size, correlation),
        trials=np.full(size, trial),
    )


def ranked(found: Evidence, config: RankingConfig | None = None) -> list[str]:
    return [suspect.change.id for suspect in rank_suspects(found, config)]


def test_the_change_that_explains_most_comes_first() -> None:
    found = evidence(("none", NOTHING), ("part", near(0.004, 0.4)), ("all", near(0.001)))
    assert ranked(found)[:2] == ["all", "part"]


def test_between_equals_the_later_comes_first() -> None:
    found = evidence(("early", near(0.001)), ("late", near(0.001)))
    changes = (replace(found.changes[0], time=T - 5), found.changes[1])
    assert ranked(replace(found, changes=changes)) == ["late", "early"]


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(evidence(), id="no changes"),
        pytest.param(
            evidence(*((f"c{i}", None) for i in range(20)), fit=0.5), id="deployed at about the right time"
        ),
        pytest.param(evidence(("noise", NOTHING), fit=3.0, text=0.1), id="attribution is noise"),
        pytest.param(
            evidence(*((f"c{i}", near(0.05)) for i in range(20)), fit=0.0), id="many that might be it"
        ),
    ],
)
def test_nothing_is_suggested_on_weak_evidence(found: Evidence) -> None:
    assert ranked(found) == []


def test_at_most_three_are_reported_with_their_factors() -> None:
    found = evidence(*((f"c{i}", near(0.001)) for i in range(3)), ("d", near(0.0015)), correlation=0.9)
    suspects = rank_suspects(found)
    assert [suspect.change.id for suspect in suspects] == ["c0", "c1", "c2"]
    assert suspects[0].factors == {"attribution": 1.0, "recency": 0.7, "text": 0.25, "correlation": 0.9}
    assert sum(suspect.score for suspect in suspects) <= 1


def test_factors_that_were_not_computed_are_absent() -> None:
    (suspect,) = rank_suspects(evidence(("flip", None), fit=4.0, text=0.002, correlation=np.nan))
    assert set(suspect.factors) == {"recency", "text"}


def test_unlikely_changes_are_not_reported_beside_a_likely_one() -> None:
    assert ranked(evidence(("cause", near(0.001)), ("a", NOTHING), ("b", NOTHING))) == ["cause"]


def test_words_say_nothing_new_of_what_stacks_attribute() -> None:
    plain = features(evidence(("one", near(0.01)), ("two", near(0.01, 0.5)), ("three", None)))
    showing = features(evidence(("one", near(0.01)), ("two", near(0.01, 0.5)), ("three", None), text=0.01))
    gain = (showing - plain)[:, FEATURES.index("text")]
    np.testing.assert_allclose(gain, [0.0, 0.5 * np.log(100), np.log(100)])


def test_confidences_leave_room_for_no_root_cause() -> None:
    table = np.random.default_rng(3).normal(size=(40, len(FEATURES)))
    confidence = confidences(table, weights_of(RankingConfig()))
    assert (confidence > 0).all()
    assert confidence.sum() < 1
    huge = confidences(table * 1000, np.ones(len(FEATURES)))
    assert np.isfinite(huge).all()


def test_more_harmless_changes_do_not_make_a_root_cause_likelier() -> None:
    weights = weights_of(RankingConfig())
    few, many = (np.tile(features(evidence(("docs", None))), (size, 1)) for size in (2, 200))
    assert confidences(few, weights).sum() == pytest.approx(confidences(many, weights).sum())


@pytest.mark.parametrize(
    ("factor", "columns"),
    [
        ("factor_attribution", {"attribution", "rank", "noise"}),
        ("factor_recency", {"deployment"}),
        ("factor_text", {"text"}),
        ("factor_correlation", {"correlation"}),
        ("factor_trial", {"trial"}),
    ],
)
def test_a_factor_that_is_left_out_says_nothing_of_any_change(factor: str, columns: set[str]) -> None:
    known = evidence(
        ("some", near(0.01, 0.5, rank=3)), ("none", NOTHING), text=0.01, correlation=0.9, trial=2.0
    )
    whole, lacking = (features(leave_out(known, frozenset(keys))) for keys in ((), (factor,)))
    silent = {name for name, column in zip(FEATURES, lacking.T, strict=True) if not column.any()}
    assert silent == columns
    others = [index for index, name in enumerate(FEATURES) if name not in {*columns, "text"}]
    np.testing.assert_array_equal(lacking[:, others], whole[:, others])
    assert (
        factor.removeprefix("factor_") not in rank_suspects(leave_out(known, frozenset({factor})))[0].factors
    )


def test_every_factor_has_a_switch_and_filters_are_none_of_its_own() -> None:
    known = evidence(("some", near(0.01)), correlation=0.9)
    assert leave_out(known, frozenset({"went_away"})) == known
    assert leave_out(known, frozenset(FACTORS)).without == set(FACTORS)
    assert not features(leave_out(known, frozenset(FACTORS)))[:, 1:].any()


def test_every_feature_has_a_weight() -> None:
    assert weights_of(RankingConfig()).shape == features(evidence(("a", None))).shape[1:]


# One of several cases


@pytest.mark.parametrize(
    ("probabilities", "confidence", "expected", "best"),
    [
        pytest.param([1.0], [[0.7, 0.2]], [0.7, 0.2], [0, 0], id="one case"),
        pytest.param([0.5, 0.5], [[0.8, 0.0], [0.0, 0.6]], [0.4, 0.3], [0, 1], id="as likely"),
        pytest.param([0.2, 0.8], [[0.8, 0.0], [0.0, 0.6]], [0.16, 0.48], [0, 1], id="one likelier"),
        pytest.param([0.1, 0.4], [[0.8, 0.0], [0.0, 0.6]], [0.16, 0.48], [0, 1], id="parts of their sum"),
        pytest.param([0.0, 1.0], [[0.8, 0.1], [0.0, 0.6]], [0.0, 0.6], [0, 1], id="one for sure"),
        pytest.param([0.9, 0.1], [[0.1, 0.0], [0.5, 0.0]], [0.14, 0.0], [0, 0], id="in both"),
        pytest.param([0.5, 0.5], [[], []], [], [], id="no changes"),
    ],
)
def test_confidence_over_cases(
    probabilities: list[float], confidence: list[list[float]], expected: list[float], best: list[int]
) -> None:
    found, of = over_cases(probabilities, confidence)
    assert found == pytest.approx(np.array(expected))
    assert of.tolist() == best


def test_the_likelier_case_decides_whose_suspect_comes_first() -> None:
    first = evidence(("a", near(0.001)), ("b", NOTHING))
    second = evidence(("a", NOTHING), ("b", near(0.002)))
    found = {p: rank_over_cases([(1.0 - p, first), (p, second)])[0].change.id for p in (0.2, 0.5, 0.8)}
    assert found == {0.2: "a", 0.5: "a", 0.8: "b"}
