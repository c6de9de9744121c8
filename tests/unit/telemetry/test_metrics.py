"""Telemetry of a stage: delays of what comes from clocks ahead, and summaries of what was limited."""

from __future__ import annotations

from pipeline.model import Record
from pipeline.telemetry.metrics import Telemetry
from tests.support.builders import build_profile

NOW = 1_700_000_000.0


def test_what_comes_from_a_clock_ahead_counts_as_no_delay() -> None:
    telemetry = Telemetry("aggregate", clock=lambda: NOW)
    telemetry.batch([1], [Record("profiles", 0, 0, build_profile({"main": 1}, start=NOW + 60.0))], [])
    delays = {name: (labels, value) for name, labels, value in telemetry.samples() if "data_delay" in name}
    labels = {"stage": "aggregate", "topic": "profiles"}
    assert delays["data_delay_seconds_sum"] == (labels, 0.0)
    assert delays["data_delay_seconds_count"] == (labels, 1.0)


def test_a_summary_has_what_was_limited_since_the_last_one() -> None:
    limited = {"folded_names": 7}
    telemetry = Telemetry("aggregate", lambda: limited)
    assert "folded_names=7" in telemetry.summary(None)
    limited["folded_names"] = 9
    limited["cut_names"] = 0
    fields = telemetry.summary_fields(None)
    assert fields["folded_names"] == 2
    assert "cut_names" not in fields
