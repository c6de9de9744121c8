"""A replay that is killed in the middle of its work: each dead letter is sent once."""

from __future__ import annotations

import random
import subprocess
import time
from collections import Counter

import pytest

from pipeline.storage.interface import Store
from tests.e2e.dead_letters import command, copies, dead_letters, dlq, make_dead_letters, wait_all_read
from tests.e2e.worker_process import BrokerUrl, WorkerProcess, assert_counted, build_load

pytestmark = pytest.mark.e2e

STEP_BY_STEP = """
import sys
from pipeline.commands import dlq
report = dlq._report
def step(batch):
    report(batch)
    sys.stdin.readline()
dlq._report = step
main()
"""
"""After each batch it waits for a line: on a busy machine it would be done before it is killed."""


@pytest.mark.kafka
def test_a_replay_that_is_killed_again_and_again_sends_every_dead_letter_once(
    own_broker: BrokerUrl,
    store_dsn: str,
    shared_store: Store,
    service_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loads = [build_load(f"{service_name}-{n}", 40, hosts=3, seed=n) for n in range(2)]
    make_dead_letters(monkeypatch, own_broker, store_dsn, loads)
    rng = random.Random(1)
    kills = 0
    replay = command(own_broker, "replay", batch=3)
    replay[2] = replay[2].replace("main()\n", STEP_BY_STEP)
    for _ in range(40):
        process = subprocess.Popen(
            replay,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        # Each … is a batch: after some of them, somewhere within the next one.
        assert process.stderr is not None
        assert process.stdin is not None
        for _ in range(rng.randrange(1, 6)):
            if not process.stderr.readline():
                break
            process.stdin.write("go on\n")
        time.sleep(rng.uniform(0.0, 0.05))
        if process.poll() is None and kills < 3:
            process.kill()
            kills += 1
        out, err = process.communicate("go on\n" * 1000, timeout=400)
        if process.returncode == 0:
            break
    assert process.returncode == 0, (out, err)
    assert kills == 3
    again = dlq(own_broker, "replay")
    assert (again.returncode, again.stdout) == (0, "sent 0 dead letters\n"), again
    origins = {f"{entry.partition}/{entry.offset}" for entry in dead_letters(own_broker)}
    assert copies(own_broker) == Counter(origins), "each of them, and once"
    with WorkerProcess(own_broker, store_dsn, "aggregate") as worker:
        wait_all_read(own_broker, worker)
        assert worker.stop() == 0
    for load in loads:
        assert_counted(shared_store, load)
