"""Units of results: values of one scale are comparable, and rates are better when they rise."""

from __future__ import annotations

import pytest

from agents.experiments.benchmarks.units import unit_of


@pytest.mark.parametrize(
    ("unit", "dimension", "scale", "is_rate"),
    [
        ("ns", "s", 1e-9, False),
        ("µs", "s", 1e-6, False),  # noqa: RUF001
        ("s", "s", 1.0, False),
        ("nanoseconds", "s", 1e-9, False),
        ("m", "m", 1.0, False),  # perhaps metres
        ("us/op", "s/op", 1e-6, False),
        ("min/op", "s/op", 60.0, False),
        ("ops/ms", "ops/s", 1e3, True),
        ("ops/min", "ops/s", 1 / 60, True),
        ("MB/s", "B/s", 1e6, True),
        ("MiB/s", "B/s", 2.0**20, True),
        ("items/s", "items/s", 1.0, True),
        ("MB/sec", "B/s", 1e6, True),
        ("KB", "B", 1e3, False),
        ("ms/s", "s/s", 1e-3, False),
        ("allocations", "allocations", 1.0, False),
        ("p99-ns", "p99-ns", 1.0, False),
        ("B/op", "B/op", 1.0, False),
        ("QPS", "QPS", 1.0, True),
        ("GFLOPS", "GFLOPS", 1.0, True),
        ("", "", 1.0, False),
    ],
)
def test_units_have_a_dimension_and_a_scale(unit: str, dimension: str, scale: float, is_rate: bool) -> None:  # noqa: FBT001
    measured = unit_of(unit)
    assert (measured.dimension, measured.is_rate) == (dimension, is_rate)
    assert measured.scale == pytest.approx(scale)
