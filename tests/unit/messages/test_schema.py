"""The generated documents: as committed, complete, and sound as AsyncAPI and JSON Schema."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from pipeline.cli import run
from pipeline.messages.schema.generate import asyncapi_document, generated_files, message_schemas
from pipeline.model.clock import system_clock
from pipeline.settings.config import load_settings
from pipeline.settings.topics import OUTSIDE, load_topics
from pipeline.stages.factory import STAGES, StageNeeds, build_stage
from pipeline.stages.gather.streams import one_stream
from pipeline.storage.arrays import ArrayStore
from pipeline.worker.dlq.writer import DeadLetterWriter, Rejected
from tests.support.paths import ROOT
from tests.unit.worker.test_messages import Collector

DOCS = ROOT / "docs"
TOPICS = load_topics()
SCHEMAS = message_schemas()

TEXT = {"type": "string", "minLength": 1}


def closed(*required: str, optional: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    """Return the schema of an object with these properties and no others; ``_`` in a name is any mark."""
    named = {re.sub("[.$]", "_", name): name for name in (*required, *optional)}
    return {
        "type": "object",
        "required": list(required),
        "properties": {name: properties.get(key, True) for key, name in named.items()},
        "additionalProperties": False,
    }


def refers(pattern: str) -> dict[str, Any]:
    return closed("$ref", _ref={"type": "string", "pattern": pattern})


def each(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": schema}


def kafka(*names: str, **properties: Any) -> dict[str, Any]:
    binding = closed(*names, "bindingVersion", bindingVersion={"const": "0.5.0"}, **properties)
    return closed("kafka", kafka=binding)


# What AsyncAPI 3.0 and its Kafka bindings say of the parts that are used here.
SETTINGS = closed(
    *("cleanup.policy", "retention.ms", "max.message.bytes"),
    cleanup_policy={"type": "array", "items": {"enum": ["delete", "compact"]}},
    retention_ms={"type": "integer", "minimum": -1},
    max_message_bytes={"type": "integer", "minimum": 1},
)
CHANNEL = closed(
    *("address", "title", "description", "messages", "bindings"),
    address=TEXT,
    title=TEXT,
    description=TEXT,
    messages=each(refers("^#/components/messages/")),
    bindings=kafka(
        *("topic", "partitions", "topicConfiguration"),
        topic=TEXT,
        partitions={"type": "integer", "minimum": 1},
        topicConfiguration=SETTINGS,
    ),
)
OPERATION = closed(
    *("action", "channel"),
    optional=("bindings",),
    action={"enum": ["send", "receive"]},
    channel=refers("^#/channels/"),
    bindings=kafka("groupId", groupId={"type": "object"}),
)
MESSAGE = closed(
    *("name", "summary", "contentType", "payload", "bindings"),
    optional=("headers",),
    name=TEXT,
    summary=TEXT,
    contentType=TEXT,
    bindings=kafka("key", key={"type": "object"}),
)
ASYNCAPI = closed(
    *("asyncapi", "info", "defaultContentType", "channels", "operations", "components"),
    asyncapi={"const": "3.0.0"},
    info=closed(
        *("title", "version", "description", "license"),
        title=TEXT,
        version=TEXT,
        license=closed("name", "url", name=TEXT, url=TEXT),
    ),
    defaultContentType={"const": "application/json"},
    channels=each(CHANNEL),
    operations=each(OPERATION),
    components=closed("messages", messages=each(MESSAGE)),
)


def references(node: object) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(found := node.get("$ref"), str):
            yield found
        node = list(node.values())
    if isinstance(node, list):
        for child in node:
            yield from references(child)


def resolve(reference: str, within: dict[str, Any]) -> object:
    """Return what a reference names: a part of the document, or a file beside it."""
    file, _, path = reference.partition("#")
    node: Any = json.loads((DOCS / file).read_text()) if file else within
    for step in path.strip("/").split("/") if path else []:
        node = node[step]
    return node


def test_the_committed_documents_are_those_that_the_code_generates() -> None:
    files = generated_files(TOPICS)
    committed = {path.relative_to(DOCS).as_posix() for path in (DOCS / "schemas").iterdir()}
    assert committed | {"asyncapi.yaml"} == set(files), "run: make schemas"
    for name, content in files.items():
        assert (DOCS / name).read_bytes() == content, f"{name} is out of date; run: make schemas"


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_schema_is_one_of_json_schema_2020_12(name: str) -> None:
    schema = SCHEMAS[name]
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == jsonschema.Draft202012Validator.META_SCHEMA["$id"]
    assert schema["$id"] == f"urn:smidgen:{name}"
    assert schema["description"]
    assert all(reference.startswith("#/$defs/") for reference in references(schema))


def test_the_document_is_sound_asyncapi() -> None:
    document = yaml.safe_load((DOCS / "asyncapi.yaml").read_text(encoding="utf-8"))
    errors = [
        f"{error.json_path}: {error.message}"
        for error in jsonschema.Draft202012Validator(ASYNCAPI).iter_errors(document)
    ]
    assert errors == []
    for reference in references(document):
        assert resolve(reference, document), reference


def test_every_topic_is_described_with_its_settings() -> None:
    channels = asyncapi_document(TOPICS)["channels"]
    assert tuple(channels) == tuple(TOPICS)
    for name, channel in channels.items():
        binding = channel["bindings"]["kafka"]
        assert (channel["address"], binding["partitions"]) == (TOPICS[name].name, TOPICS[name].partitions)
        assert binding["topicConfiguration"]["max.message.bytes"] == TOPICS[name].max_message_bytes
        assert f"Keyed by {TOPICS[name].key}." in channel["description"]
    assert channels["feedback"]["bindings"]["kafka"]["topicConfiguration"]["retention.ms"] == -1


def test_stages_are_said_to_read_what_they_read() -> None:
    settings, store = load_settings({}), ArrayStore()
    for stage in STAGES:
        built = build_stage(
            stage,
            StageNeeds(
                settings=settings,
                workloads=(),
                store=store,
                streams=one_stream("test"),
                clock=system_clock,
            ),
        )
        assert TOPICS.inputs(stage) == tuple(built.inputs)
    for topic in TOPICS.values():
        assert {*topic.writers, *topic.readers} <= {*STAGES, OUTSIDE}


def test_a_reader_is_said_to_be_of_its_stages_group() -> None:
    operations = asyncapi_document(TOPICS)["operations"]
    group = operations["filter-receive-change-points"]["bindings"]["kafka"]["groupId"]["const"]
    assert group == TOPICS.group("filter")


@pytest.mark.parametrize("value", [b"bytes", None, b"x" * 20_000_000], ids=["bytes", "none", "too many"])
def test_the_headers_of_a_dead_letter_are_those_declared(value: bytes | None) -> None:
    collector = Collector()
    dead_letters = DeadLetterWriter(collector, TOPICS, "aggregate", lambda: 1_760_000_000.0)
    asyncio.run(dead_letters.send([Rejected("profiles", 3, 9, b"k", value, "not JSON")], asyncio.Event()))
    headers = {name: text.decode() for name, text in collector.packets[0].headers}
    schema = {**SCHEMAS["dead-letter-headers"], "additionalProperties": False}
    jsonschema.Draft202012Validator(schema).validate(headers)


def test_the_example_of_the_guide_is_an_event() -> None:
    guide = (DOCS / "events.md").read_text(encoding="utf-8")
    example = json.loads(guide.split("```json\n")[1].split("```")[0])
    jsonschema.Draft202012Validator(SCHEMAS["regression-detected"]).validate(example)
    data, schema = example["data"], SCHEMAS["regression-detected"]["$defs"]["DetectedData"]
    assert set(data) == set(schema["properties"]), "it shows every field"
    assert data["delta"] == pytest.approx(data["after"] - data["before"])
    assert data["waste_servers"] == pytest.approx(data["delta"] * data["servers"])


def test_the_command_writes_what_has_changed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = ["topics", "schemas", "-o", str(tmp_path)]
    assert run(out) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(generated_files(TOPICS))
    assert run(out) == 0
    assert capsys.readouterr().out == ""
    (tmp_path / "schemas" / "scan.json").write_text("{}")
    assert run(out) == 0
    assert capsys.readouterr().out.strip() == str(tmp_path / "schemas" / "scan.json")


def test_a_position_that_cannot_be_written_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "schemas").write_text("")
    assert run(["topics", "schemas", "-o", str(tmp_path)]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
