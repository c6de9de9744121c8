"""Topics and the flow of the stages through them, as topics.yaml declares them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from pipeline.files.validation import StrictModel, read_yaml, validate
from pipeline.model.errors import ConfigError
from pipeline.model.units import parse_duration_s, parse_size_bytes

DEFAULT_PATH = Path(__file__).with_name("topics.yaml")

GROUP_PREFIX = "smidgen-"
"""Prefix of the names of consumer groups, unless a fleet has another one."""

LONGEST_NAME = 249
"""Most characters of a topic's name in Kafka."""

MOST_PARTITIONS = 10_000
"""Most partitions of a topic, including those of shards."""

OUTSIDE = "outside"
"""Writers and readers of topics that are no stages: agents, CI, subscribers, people."""

SHARDS = "shards"
"""The key of a topics file that is no topic."""


def _retention_s(value: object) -> float:
    return -1.0 if value == "forever" else parse_duration_s(value)


class Topic(StrictModel):
    """One topic. ``retention_s`` is -1 for a topic that is kept forever.

    ``writers`` and ``readers`` are stages, or OUTSIDE.
    """

    name: str = Field(pattern=r"^[A-Za-z0-9._-]{1,249}$")
    key: str
    partitions: int = Field(ge=1, le=MOST_PARTITIONS)
    retention_s: Annotated[float, BeforeValidator(_retention_s)] = Field(alias="retention")
    cleanup: Literal["delete", "compact"] = "delete"
    max_message_bytes: Annotated[int, BeforeValidator(parse_size_bytes)] = Field(alias="max_message")
    writers: tuple[str, ...] = ()
    readers: tuple[str, ...] = ()

    @property
    def internal(self) -> bool:
        """True if only stages write it."""
        return bool(self.writers) and OUTSIDE not in self.writers

    def broker_config(self) -> dict[str, str]:
        """Return the settings that Kafka stores for this topic."""
        retention_ms = -1 if self.retention_s < 0 else int(self.retention_s * 1000)
        return {
            "cleanup.policy": self.cleanup,
            "retention.ms": str(retention_ms),
            "max.message.bytes": str(self.max_message_bytes),
        }


class _Shards(StrictModel):
    """The section of a topics file about services with partitions of their own."""

    shards: dict[
        Annotated[str, Field(min_length=1, max_length=1000)], Annotated[int, Field(ge=1, le=1000)]
    ] = Field(default_factory=dict)


class Topics(Mapping[str, Topic]):
    """Every topic by its logical name, and the flow of the stages through them.

    ``shards`` has the services with partitions of their own, and how many each has of profiles, metrics and
    requests; of topics between stages it has one. A topic's ``partitions`` includes them.
    """

    def __init__(
        self,
        topics: Mapping[str, Topic],
        group_prefix: str = GROUP_PREFIX,
        shards: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        self._topics = dict(topics)
        self._group_prefix = group_prefix
        self.shards = MappingProxyType(dict(shards))
        self._reserved = {
            name: MappingProxyType(_last(topic.partitions, widths))
            for name, topic in self.items()
            if (widths := self._widths(name, self.shards))
        }

    def __getitem__(self, name: str) -> Topic:
        return self._topics[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._topics)

    def __len__(self) -> int:
        return len(self._topics)

    @property
    def by_name(self) -> dict[str, Topic]:
        """Every topic by the broker's name."""
        return {topic.name: topic for topic in self.values()}

    @property
    def stages(self) -> tuple[str, ...]:
        """The stages, in the order of the flow."""
        readers = (reader for topic in self.values() for reader in topic.readers)
        return tuple(dict.fromkeys(reader for reader in readers if reader != OUTSIDE))

    @property
    def shared_key(self) -> tuple[str, ...]:
        """The topics that share a key and a number of partitions, so a service's messages stay in order."""
        return tuple(name for name, topic in self.items() if topic.internal and topic.key == "service")

    def reserved(self, name: str) -> Mapping[str, range]:
        """Return the partitions of a topic that belong to one service, by service: the last ones.

        Other services share the partitions before. So a further service at the end of ``shards``, with its
        additional partitions, moves no other service's messages.
        """
        return self._reserved.get(name, MappingProxyType({}))

    def widened(self, shards: Mapping[str, int]) -> Topics:
        """Return the topics with additional partitions for some services.

        Raises:
            ValueError: a topic gets more than MOST_PARTITIONS.
        """
        topics = {}
        for name, topic in self.items():
            partitions = topic.partitions + sum(self._widths(name, shards).values())
            if partitions > MOST_PARTITIONS:
                raise ValueError(f"{name} would have {partitions} partitions, more than {MOST_PARTITIONS}")
            topics[name] = topic.model_copy(update={"partitions": partitions})
        return Topics(topics, self._group_prefix, shards)

    def _widths(self, name: str, shards: Mapping[str, int]) -> dict[str, int]:
        """Return the number of partitions of a topic that each service has of its own."""
        if self[name].key.startswith("service/"):
            return dict(shards)
        return dict.fromkeys(shards, 1) if name in self.shared_key else {}

    def inputs(self, stage: str) -> tuple[str, ...]:
        """Return the topics that a stage reads."""
        return tuple(name for name, topic in self.items() if stage in topic.readers)

    def touched_by(self, stages: Iterable[str]) -> tuple[str, ...]:
        """Return the topics that some stages read or write."""
        wanted = frozenset(stages)
        return tuple(
            name for name, topic in self.items() if not wanted.isdisjoint((*topic.readers, *topic.writers))
        )

    def group(self, name: str) -> str:
        """Return the consumer group of a stage, or of a command that only one process may run."""
        return self._group_prefix + name

    def of_fleet(self, topic_prefix: str, group_prefix: str = "") -> Topics:
        """Return the topics and groups with the names of one of several fleets on a cluster.

        Without a ``group_prefix`` of its own, groups begin with ``topic_prefix`` and ``GROUP_PREFIX``.

        Raises:
            ConfigError: a topic's name becomes longer than Kafka allows.
        """
        for topic in self.values():
            if len(topic_prefix + topic.name) > LONGEST_NAME:
                raise ConfigError(
                    f"topic_prefix: {topic_prefix + topic.name!r} is longer than {LONGEST_NAME} characters"
                )
        renamed = {
            logical: topic.model_copy(update={"name": topic_prefix + topic.name})
            for logical, topic in self.items()
        }
        return Topics(renamed, group_prefix or topic_prefix + GROUP_PREFIX, self.shards)


def _last(partitions: int, widths: Mapping[str, int]) -> dict[str, range]:
    """Return the last of ``partitions`` partitions, assigned to services in order."""
    first = partitions - sum(widths.values())
    assigned = {}
    for service, width in widths.items():
        assigned[service] = range(first, first + width)
        first += width
    return assigned


def load_topics(path: Path | None = None) -> Topics:
    """Read and check a topics file, the packaged one unless given.

    Raises:
        ConfigError: the file and the key that is missing, unknown or wrong.
    """
    packaged = _packaged(DEFAULT_PATH)
    return packaged if path in (None, DEFAULT_PATH) else _copy(path, packaged)


@cache
def _packaged(path: Path) -> Topics:
    raw = _read(path)
    shards = raw.pop(SHARDS, None)
    topics = Topics({name: validate(Topic, raw[name], f"{path}: {name}") for name in raw})
    _check_together(topics, topics.shared_key, path)
    return _sharded(topics, shards, path)


def _copy(path: Path, packaged: Topics) -> Topics:
    """Read an operator's file: the topics of the packaged one, and its writers and readers."""
    raw = _read(path)
    shards = raw.pop(SHARDS, None)
    for name in raw:
        if name not in packaged:
            raise ConfigError(f"{path}: {name}: unknown topic; known topics are {', '.join(packaged)}")
    missing = [name for name in packaged if name not in raw]
    if missing:
        raise ConfigError(f"{path}: {missing[0]}: missing topic")
    topics = {}
    for name, base in packaged.items():
        topic = validate(Topic, raw[name], f"{path}: {name}")
        for side in ("writers", "readers"):
            if side in topic.model_fields_set and getattr(topic, side) != getattr(base, side):
                raise ConfigError(
                    f"{path}: {name}.{side}: cannot be changed: {', '.join(getattr(base, side)) or 'none'}"
                )
        topics[name] = topic.model_copy(update={"writers": base.writers, "readers": base.readers})
    _check_together(topics, packaged.shared_key, path)
    return _sharded(Topics(topics), shards, path)


def _sharded(topics: Topics, raw: object, path: Path) -> Topics:
    shards = validate(_Shards, {SHARDS: {} if raw is None else raw}, str(path)).shards
    try:
        return topics.widened(shards)
    except ValueError as error:
        raise ConfigError(f"{path}: {SHARDS}: {error}") from None


def _read(path: Path) -> dict[str, Any]:
    raw = read_yaml(path)
    if not isinstance(raw, dict):
        raise ConfigError(f"{path}: should be a mapping of topics")
    return raw


def _check_together(topics: Mapping[str, Topic], shared_key: Sequence[str], path: Path) -> None:
    names: dict[str, str] = {}
    for logical, topic in topics.items():
        if topic.name in names:
            raise ConfigError(
                f"{path}: {logical}.name: {topic.name!r} is also the name of {names[topic.name]}"
            )
        names[topic.name] = logical
    first, *further = shared_key
    wanted = topics[first].partitions
    for logical in further:
        if topics[logical].partitions != wanted:
            raise ConfigError(
                f"{path}: {logical}.partitions: should be {wanted}, as many as {first} has, "
                "because they share a key"
            )
