"""The bench of the gateway: a few agents, an outage, and every sample once."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from loadgen.bench.gateway.fleet import draw_profiles, percentile
from pipeline.cli import smidgen


def test_percentiles() -> None:
    assert percentile([], 0.99) == 0
    assert percentile([3.0, 1.0, 2.0], 0.5) == 2.0
    assert percentile([float(n) for n in range(1, 101)], 0.99) == 99.0


def test_profiles_differ_and_know_their_samples() -> None:
    variants = draw_profiles(3)
    assert len({variant.content for variant in variants}) == len(variants)
    assert all(3 <= variant.samples <= 60 for variant in variants)


@pytest.mark.e2e
def test_nothing_is_lost_or_doubled_over_an_outage() -> None:
    words = [
        "--agents",
        "5",
        "--interval",
        "1s",
        "--profiles",
        "3",
        "--stacks",
        "5",
        "--outage",
        "1s",
        "--json",
    ]
    done = CliRunner().invoke(smidgen, ["bench", "gateway", *words])
    assert done.exit_code == 0, done.output
    result = json.loads(done.stdout)
    assert result["profiles"] == 15
    assert result["samples_taken"] == result["samples_on_topic"] > 0
