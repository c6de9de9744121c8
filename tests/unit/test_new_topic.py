"""A new topic in three files: topics.yaml, the catalogue of messages, and the stage that reads it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml

from loadgen.bench.faults.watch import OffsetView, OffsetWatcher
from pipeline.kafka.topics import drift
from pipeline.messages.schema import catalogue
from pipeline.messages.schema.catalogue import Channel
from pipeline.messages.schema.generate import asyncapi_document
from pipeline.model import Outgoing, Record
from pipeline.model.errors import ConfigError
from pipeline.settings import topics as topics_module
from pipeline.settings.topics import DEFAULT_PATH, Topics, load_topics
from pipeline.stages.base import Stage
from tests.unit.worker.faked_loop import Bench, drive

PROBES = """
probes:
  name: probes
  key: service
  partitions: 6
  retention: 1d
  max_message: 1MiB
  writers: [rootcause]
  readers: [probe]
"""


class ProbeStage(Stage):
    name = "probe"
    inputs = {"probes": lambda value: value}

    def handle(self, batch: Sequence[Record]) -> list[Outgoing]:
        return []


@pytest.fixture
def topics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Topics:
    path = tmp_path / "topics.yaml"
    path.write_text(DEFAULT_PATH.read_text(encoding="utf-8") + PROBES, encoding="utf-8")
    monkeypatch.setattr(topics_module, "DEFAULT_PATH", path)
    channels = {**catalogue.CHANNELS, "probes": Channel("Probes", "One probe.", (catalogue.PROGRESS,))}
    monkeypatch.setattr("pipeline.messages.schema.generate.CHANNELS", channels)
    return load_topics()


def test_the_flow_knows_it(topics: Topics) -> None:
    assert topics.stages[-1] == "probe"
    assert topics.inputs("probe") == tuple(ProbeStage.inputs)
    assert "probes" in topics.shared_key
    assert "probes: missing" in drift(topics, {})


def test_a_copy_of_the_file_has_to_name_it(topics: Topics, tmp_path: Path) -> None:
    raw = yaml.safe_load(DEFAULT_PATH.read_text(encoding="utf-8"))
    copy = tmp_path / "copy.yaml"
    copy.write_text(yaml.safe_dump(raw), encoding="utf-8")
    with pytest.raises(ConfigError, match="probes: missing topic"):
        load_topics(copy)


def test_it_is_described(topics: Topics) -> None:
    document = asyncapi_document(topics)
    assert document["channels"]["probes"]["address"] == "probes"
    operations = document["operations"]
    assert {"rootcause-send-probes", "probe-receive-probes"} <= set(operations)
    group = operations["probe-receive-probes"]["bindings"]["kafka"]["groupId"]["const"]
    assert group == "smidgen-probe"


def test_its_lag_is_seen(topics: Topics) -> None:
    before = OffsetView(0.0, topics, {("probes", 0): 3})
    assert before.lag("probe") == 3
    assert not OffsetView(1.0, topics).covers(before)
    assert OffsetView(1.0, topics, {}, {("probes", 0): 3}).covers(before)
    assert "probes" in OffsetWatcher("127.0.0.1:9", topics)._logical


def test_a_worker_reads_it(topics: Topics) -> None:
    async def scenario() -> None:
        bench = Bench(inputs=ProbeStage.inputs, topics=topics)
        await bench.run([bench.event(0, topic="probes")], topic="probes")
        assert "handle [0]" in bench.log
        assert "ack 0/0" in bench.log

    drive(scenario())
