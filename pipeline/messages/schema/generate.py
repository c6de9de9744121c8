"""JSON Schema (2020-12) of every message, and the AsyncAPI 3.0 document of all topics, from declarations."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson
import yaml
from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

from pipeline import __version__
from pipeline.messages.schema.catalogue import BYTES, CHANNELS, Channel, Message
from pipeline.settings.topics import OUTSIDE, Topic, Topics

DIALECT = "https://json-schema.org/draft/2020-12/schema"

_BINDING = "0.5.0"
"""Version of AsyncAPI's Kafka bindings."""

_DESCRIPTION = (
    "Smidgen watches services in production and reports performance regressions, once each. A message is one "
    "JSON object. Readers ignore what they do not know: fields are added, and none is taken away."
)


def generated_files(topics: Topics) -> dict[str, bytes]:
    """Return every generated document by its path below docs/."""
    files = {f"schemas/{name}.json": _json(schema) for name, schema in message_schemas().items()}
    return {**files, "asyncapi.yaml": _yaml(asyncapi_document(topics))}


def message_schemas() -> dict[str, dict[str, Any]]:
    """Return the schema of every message that is JSON by its name, and of headers that are declared."""
    schemas: dict[str, dict[str, Any]] = {}
    for message in _messages():
        if message.payload:
            schemas[message.name] = _schema(message.payload, message.name)
        if message.headers:
            schemas[_headers(message)] = _schema(message.headers, _headers(message))
    return schemas


def asyncapi_document(topics: Topics) -> dict[str, Any]:
    """Return the AsyncAPI 3.0 document; payloads refer to the files of ``message_schemas``."""
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Smidgen",
            "version": __version__,
            "description": _DESCRIPTION,
            "license": {"name": "Apache-2.0", "url": "https://www.apache.org/licenses/LICENSE-2.0"},
        },
        "defaultContentType": "application/json",
        "channels": {name: _channel(topics[name], channel) for name, channel in CHANNELS.items()},
        "operations": {operation: body for name in CHANNELS for operation, body in _operations(name, topics)},
        "components": {"messages": {message.name: _message(message) for message in _messages()}},
    }


class _Plain(GenerateJsonSchema):
    """Leaves out titles that only repeat a field's name."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        """Never."""
        return False


def _schema(shape: type, name: str) -> dict[str, Any]:
    schema = TypeAdapter(shape).json_schema(schema_generator=_Plain)
    return {"$schema": DIALECT, "$id": f"urn:smidgen:{name}", **schema}


def _channel(topic: Topic, channel: Channel) -> dict[str, Any]:
    settings = topic.broker_config()
    return {
        "address": topic.name,
        "title": channel.title,
        "description": f"{channel.description} Keyed by {topic.key}.",
        "messages": {
            message.name: {"$ref": f"#/components/messages/{message.name}"} for message in channel.messages
        },
        "bindings": {
            "kafka": {
                "topic": topic.name,
                "partitions": topic.partitions,
                "topicConfiguration": {
                    "cleanup.policy": [settings["cleanup.policy"]],
                    "retention.ms": int(settings["retention.ms"]),
                    "max.message.bytes": int(settings["max.message.bytes"]),
                },
                "bindingVersion": _BINDING,
            }
        },
    }


def _operations(name: str, topics: Topics) -> Iterable[tuple[str, dict[str, Any]]]:
    """Yield what Smidgen does with a topic: what comes from outside it receives, what it makes it sends."""
    topic = topics[name]
    for action, stages in (("send", topic.writers), ("receive", topic.readers)):
        for stage in stages:
            if stage != OUTSIDE:
                body: dict[str, Any] = {"action": action, "channel": {"$ref": f"#/channels/{name}"}}
                if action == "receive":
                    body["bindings"] = {"kafka": _consumer(topics.group(stage))}
                yield f"{stage}-{action}-{name}", body


def _consumer(group: str) -> dict[str, Any]:
    return {"groupId": {"type": "string", "const": group}, "bindingVersion": _BINDING}


def _message(message: Message) -> dict[str, Any]:
    described = message.payload or message.headers
    body: dict[str, Any] = {
        "name": message.name,
        "summary": (described.__doc__ or "").partition("\n")[0] if described else "",
        "contentType": message.content_type,
    }
    if message.headers:
        body["headers"] = {"$ref": f"schemas/{_headers(message)}.json"}
    if message.payload:
        body["payload"] = {"$ref": f"schemas/{message.name}.json"}
    elif message.content_type == BYTES:
        body["payload"] = {"description": "The original message's bytes."}
    body["bindings"] = {"kafka": {"key": {"type": "string"}, "bindingVersion": _BINDING}}
    return body


def _headers(message: Message) -> str:
    return f"{message.name}-headers"


def _messages() -> list[Message]:
    return list(dict.fromkeys(m for channel in CHANNELS.values() for m in channel.messages))


def _json(document: dict[str, Any]) -> bytes:
    return orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def _yaml(document: dict[str, Any]) -> bytes:
    head = "# Written by `smidgen topics schemas`: make schemas.\n"
    body = yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=110)
    return (head + body).encode()
