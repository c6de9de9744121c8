from __future__ import annotations

import numpy as np
import pytest

from pipeline.analysis.rootcause.correlation import correlations, names_metric, shows_changes, subjects_of
from pipeline.analysis.rootcause.text import (
    NO_WORDS,
    ChangeTexts,
    chances,
    change_words,
    compact,
    regression_words,
    tokens,
)
from pipeline.model import Change, FloatArray

T = 1_700_000_000.0


def change(title: str = "", **given: object) -> Change:
    return Change(**{"id": "c", "service": "shop", "time": T, "title": title, **given})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("shop.PriceList.total_of", {"shop", "pricelist", "price", "list", "total_of", "total", "of"}),
        ("parseHTTPResponse2", {"parsehttpresponse2", "parse", "http", "response"}),
        ("__init__ _x", {"init"}),
        ("a 1 == +", set()),
        ("", set()),
    ],
)
def test_identifiers_count_whole_and_in_parts(text: str, words: set[str]) -> None:
    assert set(tokens(text)) == words


def test_every_text_of_a_change_is_read() -> None:
    one = change(
        "alpha",
        summary="beta",
        files=("src/gamma.py",),
        gates=("delta",),
        content="+epsilon()",
        author="zeta",
    )
    assert {"alpha", "beta", "gamma", "delta", "epsilon"} <= set(change_words(one))
    assert "zeta" not in change_words(one)


def similar(regression: str, *titles: str) -> list[float]:
    texts = ChangeTexts([compact(change_words(change(title))) for title in titles])
    return list(texts.similarities(regression_words(regression, "subroutine", {})))


def test_the_papers_example() -> None:
    """Nothing modifies foo, but one change loosens the constraints for it."""
    found = similar("shop.rules.foo", "Loosening constraints for foo", "Fix a typo", "Update the header")
    assert found[0] > 0.3
    assert found[1:] == [0.0, 0.0]


def test_a_word_of_every_change_says_nothing() -> None:
    titles = [f"Work on shop item{i}" for i in range(5)]
    assert similar("shop", *titles) == [0.0] * 5


def test_a_rare_word_says_more_than_a_common_one() -> None:
    rare, common, *_ = similar("cache.evict", "about evict", "about cache", "cache one", "cache two", "x y z")
    assert rare > common > 0


def test_frames_count_by_their_part_of_the_rise() -> None:
    words = regression_words("top", "subroutine", {"shop.much": 0.9, "shop.little": 0.1})
    assert words["much"] > words["little"]
    texts = ChangeTexts([compact(change_words(change(title))) for title in ("much", "little", "else")])
    much, little, other = texts.similarities(words)
    assert much > little > other


def test_no_changes_and_no_words_are_no_error() -> None:
    assert ChangeTexts([]).similarities({"a": 1.0}).shape == (0,)
    assert ChangeTexts([NO_WORDS, NO_WORDS]).similarities({"a": 1.0}).tolist() == [0.0, 0.0]
    assert similar("", "some title") == [0.0]


def test_a_huge_text_is_read_up_to_a_bound() -> None:
    words = tokens(" ".join(f"w{number}" for number in range(100_000)))
    assert sum(words.values()) < 100_000


def test_chances_are_ranks() -> None:
    np.testing.assert_allclose(chances(np.array([0.5, 0.0, 0.9, 0.5])), [4 / 5, 1.0, 2 / 5, 4 / 5])


# Set-up metrics

STEP: FloatArray = (np.arange(40) >= 20).astype(np.float64)
NOISE: FloatArray = np.random.default_rng(4).normal(size=40)


def test_a_metric_that_steps_with_the_regression_correlates() -> None:
    metrics = np.array([STEP, -STEP, np.ones(40), NOISE, np.full(40, np.nan)])
    with_it, against, constant, unrelated, unknown = correlations(STEP + 0.2 * NOISE, np.ones(40), metrics)
    assert with_it == pytest.approx(-against)
    assert with_it > 0.9
    assert abs(unrelated) < 0.5
    assert np.isnan([constant, unknown]).all()


def test_correlation_needs_windows_that_both_know() -> None:
    metrics = np.array([np.where(np.arange(40) < 20, np.nan, STEP)])
    weights = (np.arange(40) < 22).astype(np.float64)
    assert np.isnan(correlations(STEP, weights, metrics)).all()


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_correlation_does_not_depend_on_units(scale: float) -> None:
    metrics = np.array([3 * scale * STEP + 5 * scale])
    assert correlations(scale * (STEP + NOISE), np.ones(40), metrics)[0] == pytest.approx(
        correlations(STEP + NOISE, np.ones(40), np.array([STEP]))[0]
    )


@pytest.mark.parametrize(
    ("one", "metric", "shown"),
    [
        (change(gates=("new_checkout",)), "setup.gate.new_checkout", True),
        (change("Set compression_level to 5"), "setup.compression_level", True),
        (change(files=("config/compression_level.json",)), "setup.compression_level", True),
        (change(content='+"compression_level": 5'), "compression_level", True),
        (change(content="+level = conf.setup.level"), "setup.level", False),
        (change(content="+log(setup.level)"), "setup.level", True),
        (change(content="+# the level of this page"), "setup.level", False),
        (change("Raise the level"), "setup.level", True),
        (change(content="+ cacheSize: 5"), "setup.cacheSize", True),
        (change(content="+ x = 1"), "setup.region.1", False),
        (change("Set level to 5"), "setup.compression_level", False),
        (change("Change the compression_levels"), "setup.compression_level", False),
        (change(), "setup.compression_level", False),
    ],
)
def test_a_change_names_a_metric(one: Change, metric: str, shown: bool) -> None:
    assert names_metric(subjects_of(one), metric) is shown


@pytest.mark.parametrize(
    ("metric", "shown"),
    [("setup.gate.x", True), ("servers", False), ("smidgen.refused_points", False), ("servers_old", True)],
)
def test_what_follows_load_or_smidgen_itself_is_no_evidence(metric: str, shown: bool) -> None:
    assert shows_changes(metric) is shown
