"""A worker fed far more than its store takes: its memory stays bounded, and every sample is counted."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.model.frames import OTHER
from pipeline.storage.interface import SeriesQuery, Store, UsageQuery
from tests.e2e.worker_process import (
    SPAN_S,
    START,
    FailingStore,
    Load,
    WorkerProcess,
    assert_counted,
    build_load,
    publish_load,
    stream_of,
    wait_done,
    wait_until,
)
from tests.support.builders import build_profile

pytestmark = pytest.mark.e2e

MESSAGES = 100
NAMES = [f"app.f{i}.{'x' * 980}" for i in range(100)]
PADDING = [f"app.pad{i}.{'y' * 980}" for i in range(4000)]


def heavy_load(service: str) -> Load:
    """Messages of about 4 MB: what hosts would send whose frames have very long names."""
    stacks = {name: 1 + i % 3 for i, name in enumerate(NAMES)} | dict.fromkeys(PADDING, 0)
    return Load(
        service,
        tuple(
            build_profile(stacks, service=service, host=f"h{number}", start=START + number)
            for number in range(MESSAGES)
        ),
    )


def memory_mb(process: int, key: str) -> float:
    """A figure of /proc/PID/status in MB: VmRSS now, VmHWM at most so far."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    (value,) = (line.split()[1] for line in lines if line.startswith(f"{key}:"))
    return int(value) / 1024


@pytest.mark.timeout(700)
def test_memory_is_bounded_while_the_store_is_slow(
    own_broker: str,
    store_dsn: str,
    shared_store: Store,
    service_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Some 390 MB wait while the store takes nothing: a fraction of it is held, the rest stays in the log.

    While the store takes again it is no more: what unpacks to a hundred messages is taken in portions.
    """
    monkeypatch.setattr("tests.e2e.worker_process.DEADLINE_S", 300.0)
    monkeypatch.setenv("SMIDGEN_BATCH_BYTES", "8MiB")
    begun, held, released = threading.Event(), threading.Event(), threading.Event()

    def slow(_number: int) -> Callable[[bool], None]:
        def hold(done: bool) -> None:
            if begun.is_set() and not done:
                held.set()
                released.wait(120)

        return hold

    load = heavy_load(service_name)
    published_mb = sum(len(name) for profile in load.profiles for name in profile.frames) / 2**20
    with (
        FailingStore(store_dsn, slow) as failing,
        WorkerProcess(own_broker, failing.url, "aggregate", batch_size=500) as worker,
    ):
        worker.wait_ready()
        before_mb = memory_mb(worker.process.pid, "VmRSS")
        begun.set()  # what a worker inserts as it starts passes
        ends = publish_load(own_broker, load)
        wait_until(held.is_set, "the first INSERT", worker)
        time.sleep(2)  # long enough to fetch all there is, if nothing held it back
        held_mb = memory_mb(worker.process.pid, "VmHWM") - before_mb
        released.set()
        wait_done(own_broker, ends, worker)
        peak_mb = memory_mb(worker.process.pid, "VmHWM") - before_mb
        assert worker.stop() == 0
    figures = (
        f"published {published_mb:.0f}, before {before_mb:.0f}, held {held_mb:.0f}, peak {peak_mb:.0f} MB"
    )
    print(figures)
    assert published_mb > 350
    assert held_mb < 200, figures
    assert peak_mb < 300, figures
    assert_counted(shared_store, load)


@pytest.mark.timeout(300)
def test_a_flood_of_one_service_costs_the_others_nothing(
    own_broker: str,
    store_dsn: str,
    shared_store: Store,
    service_name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Beyond its quota a service is refused, and counted as refused, while the others are counted whole."""
    quotas = tmp_path / "quotas.yaml"
    hostile, quiet = f"{service_name}-hostile", f"{service_name}-quiet"
    quotas.write_text(f"services:\n  {hostile}: {{messages: 3, names: 5}}\n")
    monkeypatch.setenv("SMIDGEN_QUOTAS", str(quotas))
    flood = build_load(hostile, 300, hosts=1)
    load = build_load(quiet, 60)
    publish_load(own_broker, flood)
    ends = publish_load(own_broker, load)
    for _ in range(2):  # the second one begins where the first was killed, and knows what that decided
        with WorkerProcess(own_broker, store_dsn, "aggregate", batch_size=50) as worker:
            wait_until(lambda w=worker: w.messages > 0, "a worker at work", worker)  # type: ignore[misc]
            worker.kill()
    with WorkerProcess(own_broker, store_dsn, "aggregate", batch_size=50) as worker:
        worker.wait_ready()  # those before it may have left it nothing to do
        wait_done(own_broker, ends, worker)
        assert worker.stop() == 0
        assert not re.search(r"dead_letters=[1-9]", worker.log)
    assert_counted(shared_store, load)
    matrix = shared_store.series(SeriesQuery("gcpu", hostile, START, START + SPAN_S, 60.0))
    periods = int(SPAN_S / 300.0)
    stream = stream_of(own_broker)
    used = [
        shared_store.counts(
            UsageQuery(stream, "profiles", partition, [hostile], (START, START + SPAN_S), 300.0)
        )
        for partition in range(12)
    ]
    assert 0 < sum(messages for found in used for messages, _ in found.values()) <= 3 * (periods + 1)
    assert 0 < matrix.totals.sum() < flood.samples
    kept = {name for name in matrix.names if name != OTHER}
    assert len(kept) == 5
    assert OTHER in matrix.names
