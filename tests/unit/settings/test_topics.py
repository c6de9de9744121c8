from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from pipeline.model.errors import ConfigError
from pipeline.settings.config import Settings
from pipeline.settings.topics import DEFAULT_PATH, load_topics
from pipeline.stages.factory import STAGES
from tests.support.paths import ROOT

Edit = Callable[[dict[str, Any]], object]


def write(tmp_path: Path, edit: Edit) -> Path:
    raw = yaml.safe_load(DEFAULT_PATH.read_text(encoding="utf-8"))
    edit(raw)
    path = tmp_path / "topics.yaml"
    path.write_text(yaml.safe_dump(raw), encoding="utf-8")
    return path


def test_the_shipped_file_declares_every_topic_of_the_flow() -> None:
    topics = load_topics()
    inputs = ("profiles", "metrics", "requests", "changes")
    flow = (*inputs, "windows", "change-points", "filtered", "unique", "regressions")
    assert tuple(topics) == (*flow, "feedback", "trials", "trial-verdicts", "dead-letters")
    assert len(topics) == 13
    assert topics.stages == STAGES
    assert topics.shared_key == ("windows", "change-points", "filtered", "unique", "regressions")
    assert {topics[name].partitions for name in topics.shared_key} == {topics["windows"].partitions}


def test_the_package_carries_the_file_of_the_project() -> None:
    assert DEFAULT_PATH.resolve() == ROOT / "topics.yaml"


def test_no_compaction_loses_a_decision() -> None:
    assert load_topics()["feedback"].cleanup == "delete", (
        "compaction would keep a service's last decision only"
    )


@pytest.mark.parametrize(
    ("name", "config"),
    [
        (
            "profiles",
            {"cleanup.policy": "delete", "retention.ms": "86400000", "max.message.bytes": "16777216"},
        ),
        ("feedback", {"cleanup.policy": "delete", "retention.ms": "-1", "max.message.bytes": "1048576"}),
    ],
)
def test_broker_settings(name: str, config: dict[str, str]) -> None:
    assert load_topics()[name].broker_config() == config


def test_names_on_the_broker_may_differ(tmp_path: Path) -> None:
    path = write(tmp_path, lambda raw: raw["profiles"].update(name="prod.profiles"))
    assert load_topics(path)["profiles"].name == "prod.profiles"


def test_a_fleet_has_topics_and_groups_of_its_own() -> None:
    topics = Settings(topic_prefix="blue.").read_topics()
    assert {name: topic.name for name, topic in topics.items()} == {name: f"blue.{name}" for name in topics}
    assert [topics.group(stage) for stage in ("aggregate", "dlq-replay")] == [
        "blue.smidgen-aggregate",
        "blue.smidgen-dlq-replay",
    ]
    assert topics.inputs("detect") == ("windows",)
    assert {topic.partitions for topic in topics.values()} == {3, 6, 12}
    assert Settings(topic_prefix="blue.", group_prefix="b-").read_topics().group("detect") == "b-detect"
    assert Settings().read_topics().group("detect") == "smidgen-detect"


def test_a_prefix_that_makes_a_name_too_long_is_refused() -> None:
    load_topics().of_fleet("x" * 235)
    with pytest.raises(ConfigError, match="topic_prefix: 'x+profiles' is longer than 249 characters"):
        load_topics().of_fleet("x" * 242)


def test_no_command_reads_topics_without_the_prefix() -> None:
    """``Settings.read_topics`` is the one way from settings to topics."""
    files = [path for package in ("pipeline", "agents") for path in (ROOT / package).rglob("*.py")]
    callers = {path.relative_to(ROOT).as_posix() for path in files if "load_topics(" in path.read_text()}
    assert callers == {"pipeline/settings/config.py", "pipeline/settings/topics.py"}


def test_a_copy_from_before_the_flow_stood_in_the_file_is_read(tmp_path: Path) -> None:
    def strip(raw: dict[str, Any]) -> None:
        for topic in raw.values():
            del topic["writers"], topic["readers"]

    assert load_topics(write(tmp_path, strip)) == load_topics()


def edited(topic: str, **keys: Any) -> Edit:
    return lambda raw: raw[topic].update(keys)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        pytest.param(lambda raw: raw.pop("unique"), "unique: missing topic", id="missing topic"),
        pytest.param(
            lambda raw: raw.update(profile=raw["profiles"]), "profile: unknown topic", id="unknown topic"
        ),
        pytest.param(lambda raw: raw.update(windows=None), "windows: ", id="empty topic"),
        pytest.param(lambda raw: raw["changes"].pop("name"), "changes: name: is missing", id="missing key"),
        pytest.param(edited("changes", partition=3), "changes: partition: unknown key", id="unknown key"),
        pytest.param(
            edited("changes", retention_s=3),
            "changes: retention_s: unknown key; known keys are cleanup, key, max_message, name",
            id="inner name of a key",
        ),
        pytest.param(edited("changes", partitions=0), "changes: partitions: ", id="no partitions"),
        pytest.param(edited("changes", partitions="many"), "changes: partitions: ", id="wrong type"),
        pytest.param(
            edited("changes", retention="1 week"),
            "changes: retention: should be a duration",
            id="wrong retention",
        ),
        pytest.param(
            edited("changes", retention=float("inf")),
            "changes: retention: a duration should be finite",
            id="endless retention by another name",
        ),
        pytest.param(
            edited("changes", max_message="1MB"),
            "changes: max_message: should be a size",
            id="wrong size",
        ),
        pytest.param(edited("changes", cleanup="never"), "changes: cleanup: ", id="wrong cleanup"),
        pytest.param(edited("changes", name="a b"), "changes: name: ", id="wrong name"),
        pytest.param(
            edited("changes", name="profiles"),
            "changes.name: 'profiles' is also the name of profiles",
            id="one name for two",
        ),
        pytest.param(
            edited("filtered", partitions=7),
            "filtered.partitions: should be 6, as many as windows has",
            id="unequal partitions of a shared key",
        ),
        pytest.param(
            edited("filtered", readers=["rootcause"]),
            "filtered.readers: cannot be changed: dedup",
            id="another flow",
        ),
        pytest.param(
            lambda raw: raw.update(shards=["checkout"]), "shards: should be a mapping", id="shards in a list"
        ),
        pytest.param(lambda raw: raw.update(shards={"checkout": 0}), "shards.checkout: ", id="no shard"),
        pytest.param(
            lambda raw: raw.update(shards={f"service-{n}": 1000 for n in range(10)}),
            "shards: profiles would have 10012 partitions, more than 10000",
            id="too many shards",
        ),
    ],
)
def test_a_mistake_is_named_by_file_and_key(tmp_path: Path, edit: Edit, message: str) -> None:
    path = write(tmp_path, edit)
    with pytest.raises(ConfigError) as caught:
        load_topics(path)
    assert str(caught.value).startswith(f"{path}: {message}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(b"- profiles\n", ": should be a mapping of topics", id="a list"),
        pytest.param(b"", ": should be a mapping of topics", id="empty"),
        pytest.param(
            b"profiles: {}\nmetrics: {}\nprofiles: {}\n", ":3: key 'profiles' stands twice", id="twice"
        ),
        pytest.param(
            b"shards:\n  checkout: 4\n  checkout: 2\n", ":3: key 'checkout' stands twice", id="shard twice"
        ),
        pytest.param(b"profiles: [\n", ":2: ", id="not YAML"),
        pytest.param(b"a: !!python/object:os.system {}\n", ":1: ", id="object tag"),
        pytest.param(b"\xff\xfe\x00", ": not UTF-8 text", id="not text"),
        pytest.param(b"a: \x00\n", ": ", id="control character"),
    ],
)
def test_a_broken_file_is_one_line(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "topics.yaml"
    path.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        load_topics(path)
    assert str(caught.value).startswith(f"{path}{message}")
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        load_topics(tmp_path / "none.yaml")
