"""Stages killed and a store that loses answers, at random moments: every count and every event as sent."""

from __future__ import annotations

from pathlib import Path

import pytest

from loadgen.bench.faults.catalogue import Fault
from loadgen.bench.faults.hits import Hit
from loadgen.bench.faults.proxies import StoreFault
from loadgen.bench.faults.run import Options, run_fault
from loadgen.bench.faults.strikes import Context, kill_stage
from pipeline.stages.factory import SCAN_STAGES

pytestmark = [pytest.mark.e2e, pytest.mark.kafka]


def kill_while_answers_are_lost(context: Context) -> Hit:
    hit = iter(range(1000))

    def decide(insert: bool) -> StoreFault | None:
        return "lost" if insert and next(hit) % 4 == 1 else None

    context.rig.proxy.decide = decide
    struck = kill_stage(context)
    context.sleep(1, 2)
    context.rig.proxy.decide = lambda _insert: None
    return struck


@pytest.mark.timeout(1200)
def test_kills_and_lost_answers_lose_and_double_nothing(broker_kind: str, tmp_path: Path) -> None:
    about, shape = "a kill, and lost answers", {"hosts": 4}
    fault = Fault(
        kill_while_answers_are_lost, 5, about, gap_s=(0.5, 3), lasts_s=1.5, shape=shape, stages=True
    )
    options = Options(broker=broker_kind, seed=3, keep=tmp_path)  # type: ignore[arg-type]
    outcome = run_fault("short", fault, options, lambda _doing, _share: None)
    assert outcome.failure == ""
    assert outcome.passed, outcome
    assert {hit.stage for hit in outcome.hits if hit.struck} == set(SCAN_STAGES)
    assert {hit.proof for hit in outcome.hits} == {"exit code -9"}
    assert (outcome.samples > 100_000, outcome.events > 0, outcome.recovery_s > 0) == (True, True, True)
    assert (outcome.services, outcome.parted > 0) == (3, True)
    # A worker may end by itself when its group breaks up under it, and is started again; never by bad usage.
    assert all(code == 1 for codes in outcome.exits.values() for code in codes)
