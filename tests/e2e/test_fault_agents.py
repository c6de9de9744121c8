"""Agents as processes, killed while they publish: the log lacks only messages they had not published."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from loadgen.bench.faults.agents import Agents
from loadgen.bench.faults.load import Shape, build_load, together
from loadgen.bench.faults.watch import OffsetWatcher, content_hash
from loadgen.harness import run_smidgen
from pipeline.embedded.broker import EmbeddedBroker
from pipeline.settings.config import Settings
from pipeline.settings.topics import load_topics

pytestmark = pytest.mark.e2e


@pytest.mark.timeout(300)
def test_a_killed_agent_goes_on_with_the_next_window(tmp_path: Path) -> None:
    shape = Shape(windows=24, hosts=3, subroutines=20)
    load = together([build_load(shape, 1, "one"), build_load(shape, 2, "two")])
    topics, rng = load_topics(), np.random.default_rng(1)
    with EmbeddedBroker() as broker, OffsetWatcher(broker.url, topics) as watcher:
        run_smidgen("topics", "apply", "--broker", broker.url)
        settings = Settings(broker=broker.url, idempotent_producer=False)
        with Agents(load, settings, tmp_path, seconds=5.0) as agents:
            killed = [agents.kill(rng) for _ in range(4)]
            published = agents.finish().published.messages
            deadline = time.monotonic() + 240
            while sum(watcher.view.ends.values()) < published and time.monotonic() < deadline:
                time.sleep(0.1)
    assert {one.name for one in killed} == {"one", "two"}
    assert {one.code for one in killed} == {-9}
    there = {content_hash(m.topic, m.value) for batch in load.batches for m in batch} & watcher.published
    lost = load.messages - len(there)
    # Of each window in which one was killed something is lost, and no other window is.
    assert sum(one.left for one in killed) <= lost <= 4 * max(map(len, load.of_service("one")))
    assert len(there) >= published
    assert len(watcher.published) == len(there)
