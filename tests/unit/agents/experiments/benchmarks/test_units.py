"""Units of results: values of one scale are comparable, and rates are better when they rise."""

from __future__ import annotations

import pytest

from agents.experiments.benchmarks.units import Better, unit_of


@pytest.mark.parametrize(
    ("unit", "dimension", "scale", "better"),
    [
        ("ns", "s", 1e-9, "lower"),
        ("µs", "s", 1e-6, "lower"),  # noqa: RUF001
        ("s", "s", 1.0, "lower"),
        ("nanoseconds", "s", 1e-9, "lower"),
        ("m", "m", 1.0, "unknown"),  # perhaps metres
        ("us/op", "s/op", 1e-6, "lower"),
        ("min/op", "s/op", 60.0, "lower"),
        ("ops/ms", "ops/s", 1e3, "higher"),
        ("ops/min", "ops/s", 1 / 60, "higher"),
        ("MB/s", "B/s", 1e6, "higher"),
        ("MiB/s", "B/s", 2.0**20, "higher"),
        ("items/s", "items/s", 1.0, "higher"),
        ("MB/sec", "B/s", 1e6, "higher"),
        ("KB", "B", 1e3, "lower"),
        ("ms/s", "s/s", 1e-3, "unknown"),
        ("allocations", "allocations", 1.0, "lower"),
        ("p99-ns", "p99-s", 1e-9, "lower"),
        ("p99_latency_ms", "p99_latency_s", 1e-3, "lower"),
        ("sec/GC", "s/GC", 1.0, "lower"),
        ("B/row", "B/row", 1.0, "lower"),
        ("allocs/op", "allocs/op", 1.0, "lower"),
        ("cache-misses", "cache-misses", 1.0, "lower"),
        ("peak-RSS-bytes", "peak-RSS-bytes", 1.0, "lower"),
        ("req/s", "req/s", 1.0, "higher"),
        ("/s", "/s", 1.0, "higher"),
        ("errors/s", "errors/s", 1.0, "unknown"),
        ("allocs/s", "allocs/s", 1.0, "unknown"),
        ("processed_bytes", "processed_bytes", 1.0, "unknown"),
        ("hits", "hits", 1.0, "unknown"),
        ("hits/op", "hits/op", 1.0, "unknown"),
        ("#", "#", 1.0, "unknown"),
        ("insns/clk", "insns/clk", 1.0, "unknown"),
        ("counts", "counts", 1.0, "unknown"),
        ("B/op", "B/op", 1.0, "lower"),
        ("QPS", "QPS", 1.0, "higher"),
        ("GFLOPS", "GFLOPS", 1.0, "higher"),
        ("", "", 1.0, "unknown"),
        ("msec", "s", 1e-3, "lower"),
        ("Seconds", "s", 1.0, "lower"),
        ("MSEC", "s", 1e-3, "lower"),
        ("Sec", "s", 1.0, "lower"),
        ("Milliseconds", "s", 1e-3, "lower"),
        ("MS", "MS", 1.0, "unknown"),  # perhaps megasiemens or samples
        ("Min", "Min", 1.0, "unknown"),  # perhaps a minimum
        ("seconds/op", "s/op", 1.0, "lower"),
        ("p99-msec", "p99-s", 1e-3, "lower"),
        ("p99-µs", "p99-s", 1e-6, "lower"),  # noqa: RUF001
        ("latency_seconds", "latency_s", 1.0, "lower"),
        ("Time (ms)", "Time-s", 1e-3, "lower"),
        ("Mean [s]", "Mean-s", 1.0, "lower"),
        ("wall_time_s", "wall_time_s", 1.0, "lower"),
        ("Time S", "Time s", 1.0, "lower"),
        ("latency-min", "latency-min", 1.0, "unknown"),
        ("requests_s", "requests_s", 1.0, "unknown"),
        ("ms_per_op", "s/op", 1e-3, "lower"),
        ("ops-per-sec", "ops/s", 1.0, "higher"),
        ("items_per_second", "items/s", 1.0, "higher"),
        ("bytes per ms", "B/s", 1e3, "higher"),
        ("requests/second", "requests/s", 1.0, "higher"),
        ("instructions_per_cycle", "instructions_per_cycle", 1.0, "unknown"),
    ],
)
def test_units_have_a_dimension_a_scale_and_a_direction(
    unit: str, dimension: str, scale: float, better: str
) -> None:
    measured = unit_of(unit)
    assert (measured.dimension, measured.better) == (dimension, Better(better))
    assert measured.scale == pytest.approx(scale)
