from __future__ import annotations

import numpy as np
import pytest

from pipeline.analysis.published.som_features import (
    FeatureConfig,
    candidate_features,
    cause_bits,
    log_variances,
    spectra,
)
from pipeline.model import BoolArray, FloatArray

TIME = np.arange(512)
NAMES = ["shop.cart.Cart.total", "shop.cart.Cart.tax", "lib.json.encode", "api.login.Session.open"]


def waves(*periods: float) -> FloatArray:
    return np.stack([1 + 0.1 * np.sin(2 * np.pi * TIME / period) for period in periods])


def bits(*rows: str) -> BoolArray:
    return np.array([[bit == "1" for bit in row] for row in rows], dtype=np.bool_)


def test_a_spectrum_shows_a_cycle_at_its_frequency() -> None:
    assert spectra(waves(128, 64), 16).argmax(axis=1).tolist() == [512 // 128 - 1, 512 // 64 - 1]


def test_a_spectrum_shows_the_shape_and_not_the_size() -> None:
    small = waves(128)
    assert spectra(7 * small + 3, 16) == pytest.approx(spectra(small, 16))


@pytest.mark.parametrize(
    "values",
    [
        pytest.param(np.full((1, 512), 0.1), id="constant"),
        pytest.param(np.full((1, 512), np.nan), id="without data"),
        pytest.param(np.zeros((1, 2)), id="fewer windows than frequencies"),
    ],
)
def test_a_series_without_change_has_no_spectrum(values: FloatArray) -> None:
    assert spectra(values, 16).tolist() == [[0.0] * 16]


def test_gaps_hold_the_mean() -> None:
    whole = waves(64)
    gappy = whole.copy()
    gappy[:, 100:110] = np.nan
    assert float(spectra(whole, 16)[0] @ spectra(gappy, 16)[0]) > 0.99
    assert log_variances(gappy) == pytest.approx(log_variances(whole), abs=0.02)


def test_variance_is_in_decades() -> None:
    assert np.diff(log_variances(np.vstack([waves(64), 10 * waves(64)]))) == pytest.approx([2.0])


def test_a_constant_series_has_the_least_variance_there_is() -> None:
    found = log_variances(np.vstack([np.ones((1, 512)), waves(64)]))
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("causes", "cosines"),
    [
        pytest.param(bits("10", "10"), 1.0, id="the same change"),
        pytest.param(bits("10", "01"), 0.0, id="different changes"),
        pytest.param(bits("10", "00"), 0.0, id="one without any"),
        pytest.param(bits("110", "100"), 0.5**0.5, id="one of two in common"),
    ],
)
def test_bitmaps_are_compared_by_cosine(causes: BoolArray, cosines: float) -> None:
    found = cause_bits(causes, 64)
    assert float(found[0] @ found[1]) == pytest.approx(cosines)


def test_bitmaps_of_many_changes_are_projected() -> None:
    found = cause_bits(np.eye(400, dtype=np.bool_), 64)
    assert found.shape == (400, 64)
    apart = found @ found.T - np.eye(400)
    assert np.sqrt(np.mean(np.square(apart))) == pytest.approx(1 / 8, rel=0.1)


def test_times_within_the_tolerance_hardly_differ() -> None:
    def block(times: list[float]) -> FloatArray:
        only = FeatureConfig(spectrum_weight=0, variance_weight=0, causes_weight=0, name_weight=0)
        return candidate_features(
            waves(64, 64, 64), ["a", "b", "c"], np.array(times), bits("", "", ""), config=only
        )

    near = block([1e9, 1e9, 1e9 + 600])
    far = block([1e9, 1e9, 1e9 + 36_000])
    assert np.abs(near).max() <= 0.5
    assert np.abs(far).max() == pytest.approx(3**0.5)


def test_every_block_can_distinguish_two_candidates_and_none_by_much_more() -> None:
    rng = np.random.default_rng(5)
    n = 200
    values = rng.normal(size=(n, 512)).cumsum(axis=1) * 10 ** rng.uniform(-2, 0, size=(n, 1))
    names = ["".join(map(chr, rng.integers(97, 123, 20))) for _ in range(n)]
    causes = np.eye(n, dtype=np.bool_)
    arguments = (values, names, rng.uniform(0, 36_000, n), causes)
    weights = ["spectrum_weight", "variance_weight", "time_weight", "causes_weight", "name_weight"]
    for weight in weights:
        only = FeatureConfig(**{other: float(other == weight) for other in weights})  # type: ignore[arg-type]
        found = candidate_features(*arguments, config=only)
        apart = np.square(found[:, None] - found[None]).sum(axis=2)
        assert 0.2 < apart.sum() / (n * (n - 1)) <= 2.2, weight


def test_arguments_of_different_candidates_are_refused() -> None:
    with pytest.raises(ValueError, match="as many each"):
        candidate_features(waves(64), ["a", "b"], np.zeros(1), bits("1"))


def test_no_candidates_have_no_features() -> None:
    assert len(candidate_features(np.zeros((0, 8)), [], np.zeros(0), np.zeros((0, 0), dtype=np.bool_))) == 0
