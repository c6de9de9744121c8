"""Trials on the topic, through a worker that is killed: a verdict for each experiment, once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import orjson
import pytest

from pipeline.cli import run
from pipeline.storage.interface import RowQuery, Store
from tests.e2e.worker_process import BrokerUrl, WorkerProcess, publish, read_all, wait_until

pytestmark = pytest.mark.e2e

TRIALS = 10
EVER = (0.0, 4e9)


def write_trials(path: Path, slower: float) -> Path:
    draw = np.random.default_rng(1)
    lines = [
        f"t{trial},{side},cpu,{value}"
        for trial in range(TRIALS)
        for side, factor in (("A", 1.0), ("B", 1.0 + slower))
        for value in draw.normal(100.0, 1.0, 40) * factor
    ]
    path.write_text("\n".join(["trial,side,metric,value", *lines]) + "\n")
    return path


def test_a_killed_judge_publishes_each_verdict_once(
    own_broker: BrokerUrl, store_dsn: str, shared_store: Store, service_name: str, tmp_path: Path
) -> None:
    flags = ["--broker", own_broker, "--service", service_name, "--time", "2026-01-01T00:00:00Z"]
    flags += [] if own_broker.idempotent else ["--no-idempotent-producer"]

    def send(experiment: str, slower: float, *more: str) -> None:
        path = write_trials(tmp_path / f"{experiment}.csv", slower)
        assert run(["trial", "publish", str(path), "--experiment", experiment, *flags, *more]) == 0

    def stored() -> Counter[str]:
        return Counter(
            row["experiment"] for row in shared_store.rows(RowQuery("trials", service_name, *EVER))
        )

    def published() -> dict[str, str]:
        rows = shared_store.rows(
            RowQuery("trial_verdicts", service_name, *EVER, equal={"state": "published"})
        )
        return {row["experiment"]: row["decision"] for row in rows}

    publish(own_broker, [(b"shop/bad", b'{"kind": "A/B", "service": "shop"}')], topic="trials")
    with WorkerProcess(own_broker, store_dsn, "judge", batch_size=3) as worker:
        send("slower", 0.05, "--more")
        wait_until(lambda: stored()["slower"] >= 3, "some trials", worker)
        worker.kill()
    send("slower", 0.05)
    send("same", 0.0)
    with WorkerProcess(own_broker, store_dsn, "judge", batch_size=3) as worker:
        wait_until(lambda: len(published()) == 2, "both verdicts", worker)
        assert worker.stop() == 0, worker.log
    assert published() == {"slower": "fail", "same": "pass"}
    with WorkerProcess(own_broker, store_dsn, "judge") as worker:  # reads again what was not committed
        worker.wait_ready()
        send("same", 0.0)
        wait_until(lambda: "batch messages=" in worker.log, "the repeated trials", worker)
        assert worker.stop() == 0, worker.log
    events = [orjson.loads(entry.value or b"") for entry in read_all(own_broker, "trial-verdicts")]
    assert Counter(event["subject"] for event in events) == {"slower": 1, "same": 1}
    assert {event["data"]["trials"] for event in events} == {TRIALS}
    where = ["--service", service_name, "--store", store_dsn]
    assert run(["trial", "verdict", "--experiment", "slower", *where]) == 1
    assert run(["trial", "verdict", "--experiment", "same", *where, "--json"]) == 0
    assert run(["trial", "verdict", "--experiment", "other", *where]) == 3
    refused = [dict(one.headers) for one in read_all(own_broker, "dead-letters") if one.key == b"shop/bad"]
    assert {b"experiment: missing" in headers["reason"] for headers in refused} == {True}
    # A kill before its offset is committed repeats a dead letter; where it came from is the same.
    assert len({(headers["partition"], headers["offset"]) for headers in refused}) == 1
