"""The topics: what topics.yaml says, checked at start."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from pipeline.errors import ConfigError
from pipeline.units import parse_duration_s, parse_size_bytes
from pipeline.validation import StrictModel, read_yaml, validate

DEFAULT_PATH = Path(__file__).with_name("topics.yaml")

REQUIRED = (
    "profiles",
    "metrics",
    "changes",
    "windows",
    "change-points",
    "filtered",
    "unique",
    "regressions",
    "feedback",
    "dead-letters",
)
"""Logical names of the topics that the flow needs."""

SHARED_KEY = ("windows", "change-points", "filtered", "unique", "regressions")
"""Topics keyed by service that must have equally many partitions, so that one service stays in order."""


def _retention_s(value: object) -> float:
    return -1.0 if value == "forever" else parse_duration_s(value)


class Topic(StrictModel):
    """One topic. ``retention_s`` is -1 for a topic that is kept forever."""

    name: str = Field(pattern=r"^[A-Za-z0-9._-]{1,249}$")
    key: str
    partitions: int = Field(ge=1, le=10_000)
    retention_s: Annotated[float, BeforeValidator(_retention_s)] = Field(alias="retention")
    cleanup: Literal["delete", "compact"] = "delete"
    max_message_bytes: Annotated[int, BeforeValidator(parse_size_bytes)] = Field(alias="max_message")

    def broker_config(self) -> dict[str, str]:
        """Return the settings that Kafka stores for this topic."""
        retention_ms = -1 if self.retention_s < 0 else int(self.retention_s * 1000)
        return {
            "cleanup.policy": self.cleanup,
            "retention.ms": str(retention_ms),
            "max.message.bytes": str(self.max_message_bytes),
        }


class Topics(Mapping[str, Topic]):
    """Every topic by its logical name."""

    def __init__(self, topics: Mapping[str, Topic]) -> None:
        self._topics = dict(topics)

    def __getitem__(self, name: str) -> Topic:
        return self._topics[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._topics)

    def __len__(self) -> int:
        return len(self._topics)


def load_topics(path: Path = DEFAULT_PATH) -> Topics:
    """Read and check a topics file.

    Raises:
        ConfigError: the file and the key that is missing, unknown or wrong.
    """
    raw = read_yaml(path)
    if not isinstance(raw, dict):
        raise ConfigError(f"{path}: should be a mapping of topics")
    for name in raw:
        if name not in REQUIRED:
            raise ConfigError(f"{path}: {name}: unknown topic; known topics are {', '.join(REQUIRED)}")
    missing = [name for name in REQUIRED if name not in raw]
    if missing:
        raise ConfigError(f"{path}: {missing[0]}: missing topic")
    topics = {name: validate(Topic, raw[name], f"{path}: {name}") for name in REQUIRED}
    _check_together(topics, path)
    return Topics(topics)


def _check_together(topics: Mapping[str, Topic], path: Path) -> None:
    names: dict[str, str] = {}
    for logical, topic in topics.items():
        if topic.name in names:
            raise ConfigError(
                f"{path}: {logical}.name: {topic.name!r} is also the name of {names[topic.name]}"
            )
        names[topic.name] = logical
    wanted = topics[SHARED_KEY[0]].partitions
    for logical in SHARED_KEY[1:]:
        if topics[logical].partitions != wanted:
            raise ConfigError(
                f"{path}: {logical}.partitions: should be {wanted}, as many as {SHARED_KEY[0]} has, "
                "because they share a key"
            )
