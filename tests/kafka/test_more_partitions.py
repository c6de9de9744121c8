"""Partitions raised on Apache Kafka: of input topics at any time, of stages' topics once all is read."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from pipeline.cli import run
from pipeline.settings.topics import DEFAULT_PATH
from pipeline.storage.interface import Store
from tests.e2e.worker_process import (
    TOPICS,
    BrokerUrl,
    Ends,
    Load,
    WorkerProcess,
    assert_counted,
    build_load,
    publish_load,
    stream_of,
    wait_done,
    wait_until,
)
from tests.kafka.asking import ends, partitions

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]


def raised_copy(folder: Path, **counts: int) -> str:
    """Write a topics.yaml with other numbers of partitions."""
    raw = yaml.safe_load(DEFAULT_PATH.read_text(encoding="utf-8"))
    for name, count in counts.items():
        raw[name]["partitions"] = count
    path = folder / "topics.yaml"
    path.write_text(yaml.safe_dump(raw), encoding="utf-8")
    return str(path)


def assert_new_partitions_are_counted(broker: str, store: Store, sent: Ends, first_new: int) -> None:
    """Check that the ledger has all of each partition, and that new ones were written."""
    stream = stream_of(broker)
    ledger = {
        partition: extent.last_offset + 1
        for (topic, partition), extent in store.extents(["totals"], stream)["totals"].items()
        if topic == "profiles"
    }
    assert ledger == sent
    assert max(sent) >= first_new


def test_input_topics_are_raised_while_workers_run(
    kafka_broker: BrokerUrl,
    store_dsn: str,
    shared_store: Store,
    service_name: str,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """A running worker reads new partitions from their start; with the former topics.yaml none starts."""
    loads = [build_load(service_name, 60, hosts=40, seed=seed) for seed in (1, 2)]
    more = ("--topics", raised_copy(tmp_path, profiles=17))
    with WorkerProcess(kafka_broker, store_dsn, "aggregate") as worker:
        first = publish_load(kafka_broker, loads[0])
        wait_done(kafka_broker, first, worker)
        assert run(["topics", "apply", "--broker", kafka_broker, *more]) == 0
        assert capfd.readouterr().out == "profiles: 12 partitions raised to 17\n"
        publish_load(kafka_broker, loads[1])
        everything = ends(kafka_broker, "profiles")
        wait_done(kafka_broker, everything, worker)
        assert worker.stop() == 0
    both = Load(service_name, (*loads[0].profiles, *loads[1].profiles))
    assert_counted(shared_store, both)
    assert_new_partitions_are_counted(kafka_broker, shared_store, everything, 12)
    assert run(["worker", "aggregate", "--broker", kafka_broker, "--store", store_dsn]) == 2
    assert "topic profiles has 17 partitions instead of 12" in capfd.readouterr().err
    with WorkerProcess(kafka_broker, store_dsn, "aggregate", more=more) as worker:
        worker.wait_ready()
        assert worker.stop() == 0
    assert_counted(shared_store, both)


def test_topics_of_stages_are_raised_once_all_is_read_and_no_worker_runs(
    kafka_broker: BrokerUrl,
    store_dsn: str,
    shared_store: Store,
    service_name: str,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Until then nothing is raised, and workers go on with the former topics.yaml."""
    loads = [build_load(service_name, 60, hosts=40, seed=seed) for seed in (1, 2)]
    more = ("--topics", raised_copy(tmp_path, profiles=17, **dict.fromkeys(TOPICS.shared_key, 8)))

    def apply() -> tuple[int, list[str]]:
        capfd.readouterr()
        code = run(["topics", "apply", "--broker", kafka_broker, *more])
        return code, capfd.readouterr().out.splitlines()

    with WorkerProcess(kafka_broker, store_dsn, "aggregate") as aggregate:
        wait_done(kafka_broker, publish_load(kafka_broker, loads[0]), aggregate)
        code, lines = apply()
        assert code == 1
        assert lines[-1].startswith("windows: not raised: detect has ")
        assert ", releases has " in lines[-1]
        assert lines[-1].endswith(
            " messages to read: stop aggregate alone, and wait until they have read all"
        )
        assert {len(partitions(kafka_broker, name)) for name in ("profiles", *TOPICS.shared_key)} == {12, 6}
        assert aggregate.stop() == 0
    behind = ("detect", "releases", "filter", "dedup", "rootcause")
    with WorkerProcess(kafka_broker, store_dsn, *behind) as worker:
        busy = f"windows: not raised: stop the workers of {', '.join(behind)}, and try again"

        def refused_for_workers_alone() -> bool:
            """Scans take their time through the stages; until then they are what is in the way."""
            code, lines = apply()
            assert code == 1
            return lines[-1] == busy

        wait_until(refused_for_workers_alone, "all read", worker)
        assert worker.stop() == 0
    raised = [f"{name}: 6 partitions raised to 8" for name in TOPICS.shared_key]
    assert apply() == (0, ["profiles: 12 partitions raised to 17", *raised])
    assert apply() == (0, ["nothing to do"])

    with WorkerProcess(kafka_broker, store_dsn, "aggregate", "detect", more=more) as worker:
        publish_load(kafka_broker, loads[1])
        everything = ends(kafka_broker, "profiles")
        wait_done(kafka_broker, everything, worker)
        wait_done(kafka_broker, ends(kafka_broker, "windows"), worker, stage="detect", topic="windows")
        assert worker.stop() == 0
    assert_counted(shared_store, Load(service_name, (*loads[0].profiles, *loads[1].profiles)))
    assert_new_partitions_are_counted(kafka_broker, shared_store, everything, 12)
