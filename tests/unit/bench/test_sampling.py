"""``smidgen bench sampling``: policies on services with truth, pruned threads, and what is shown."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import numpy as np
import orjson
import pytest
from click.testing import CliRunner

from agents.sampling.rates import PruningPlan, Trial
from loadgen.bench.sampling.command import SamplingResult
from loadgen.bench.sampling.rates import (
    CORRECTED,
    FIXED,
    POLICIES,
    PUBLISHED,
    PolicyPoint,
    measure_rates,
    saved,
)
from loadgen.bench.sampling.services import KINDS, draw_service
from loadgen.bench.sampling.stacks import (
    THINNING,
    THREAD_PRUNING,
    PruningResult,
    draw_hosts,
    own_samples,
    prune_stacks,
    prune_threads,
)
from pipeline.cli import smidgen


@pytest.mark.parametrize("kind", list(KINDS))
def test_services_have_shares(kind: str) -> None:
    service = draw_service(kind, 50, 1)
    assert service.shares.shape[0] == 50
    assert service.shares.sum(axis=1) == pytest.approx(1)


def test_a_steady_service_needs_fewer_samples_than_a_fixed_rate_takes() -> None:
    points = measure_rates(["stationary"], [1], 300, lambda: None)
    assert {point.policy for point in points} == set(POLICIES)
    best = max(saved(points, point) for point in points if point.policy == CORRECTED)
    assert best > 0.8
    assert all(
        saved(points, point) == pytest.approx(0, abs=1e-9) for point in points if point.policy == FIXED
    )


def test_most_threads_are_idle() -> None:
    host = draw_hosts(1, 1)[0]
    by_thread = np.sort(np.bincount(host.threads, weights=host.counts))[::-1]
    assert by_thread[:444].sum() / by_thread.sum() == pytest.approx(0.9, abs=0.01)
    whole = own_samples(prune_threads(host, 0.0, 0))
    assert whole.sum() == host.counts.sum()
    assert own_samples(prune_threads(host, 0.01, 0)).sum() / whole.sum() == pytest.approx(0.99, abs=0.001)
    thinned = prune_stacks(host, 0.1, 1)
    assert len(thinned) < len(prune_threads(host, 0.0, 0)) * 0.8
    assert own_samples(thinned).sum() == pytest.approx(whole.sum(), rel=0.001)


def _result() -> SamplingResult:
    points = [
        PolicyPoint(kind, policy, hz, hz * scale, 0.05 / hz**0.5, 0.01, 0.02)
        for kind in KINDS
        for policy, scale in zip(POLICIES, (1.0, 0.5, 1.0, 0.1), strict=True)
        for hz in (10.0, 100.0)
    ]
    trials = [Trial(0.0, 2.0, 0.0), Trial(0.1, 1.0, 0.01)]
    plan = PruningPlan(0.05, 1.5, 0.25, 0.005)
    return SamplingResult(
        points, [PruningResult(name, trials, plan, 0.25, 0.005, 0.001) for name in (THREAD_PRUNING, THINNING)]
    )


@pytest.mark.slow
def test_a_record_is_shown_and_drawn(tmp_path: Path) -> None:
    record, figure = tmp_path / "sampling.json", tmp_path / "sampling.svg"
    record.write_bytes(orjson.dumps(asdict(_result())))
    shown = CliRunner().invoke(smidgen, ["bench", "sampling", "--from", str(record), "--figure", str(figure)])
    assert shown.exit_code == 0, shown.output
    assert f"{CORRECTED}: saves 90.0 to 90.0 %" in shown.output
    assert f"{PUBLISHED}: saves 0.0 to 0.0 %" in shown.output
    assert "0.100%" in shown.output
    assert figure.read_text(encoding="utf-8").count("<path") > 20
    again = CliRunner().invoke(smidgen, ["bench", "sampling", "--from", str(record), "--json"])
    assert orjson.loads(again.output) == orjson.loads(record.read_bytes())


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    record = tmp_path / "other.json"
    record.write_text('{"points": 3}', encoding="utf-8")
    result = CliRunner().invoke(smidgen, ["bench", "sampling", "--from", str(record)])
    assert "is not what --json writes" in str(result.exception)
