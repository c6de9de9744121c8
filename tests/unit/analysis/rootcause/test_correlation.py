from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pipeline.analysis.rootcause.correlation import correlations, names_metric, shows_changes, subjects_of
from tests.support.builders import build_change

SERIES = np.array([1.0, 1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0])


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        pytest.param(SERIES * 3 - 1, 1.0, id="moves along"),
        pytest.param(-SERIES, -1.0, id="moves against it"),
        pytest.param(np.full(8, 5.0), np.nan, id="does not move"),
        pytest.param(np.where(np.arange(8) < 3, np.nan, SERIES), np.nan, id="too few windows"),
        pytest.param(np.where(np.arange(8) < 2, np.nan, SERIES), 1.0, id="six windows"),
    ],
)
def test_correlations(metric: np.ndarray, expected: float) -> None:
    found = correlations(SERIES, np.ones(8), metric[None].astype(np.float64))
    assert found == pytest.approx([expected], nan_ok=True)


def test_windows_without_weight_are_left_out() -> None:
    weights = np.array([0.0, *[1.0] * 7])
    metric = np.where(weights > 0, SERIES, 99.0)
    assert correlations(SERIES, weights, metric[None]) == pytest.approx([1.0])


@pytest.mark.parametrize(
    ("metric", "expected"),
    [("setup.gate.new_checkout", True), ("servers", False), ("smidgen.lag", False)],
)
def test_which_metrics_show_changes(metric: str, expected: bool) -> None:
    assert shows_changes(metric) is expected


@pytest.mark.parametrize(
    ("change", "metric", "expected"),
    [
        ({"gates": ("new_checkout",)}, "setup.gate.new_checkout", True),
        ({"title": "Set compression_level to 9"}, "setup.compression_level", True),
        ({"content": "+ compression_level: 9"}, "setup.compression_level", True),
        ({"title": "The servers of this page"}, "setup.page", True),
        ({"content": "the servers of this page"}, "setup.page", False),
    ],
    ids=["gate", "title", "identifier in a diff", "plain word in a title", "plain word in a diff"],
)
def test_what_a_change_names(change: dict[str, str], metric: str, expected: bool) -> None:
    subjects = subjects_of(replace(build_change("c1"), **{"title": "", "summary": "", **change}))  # type: ignore[arg-type]
    assert names_metric(subjects, metric) is expected
