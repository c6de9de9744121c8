from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from pipeline.model.errors import ConfigError
from pipeline.settings.config import PREFIX, SECRETS, Settings, load_settings, redact


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No smidgen.yaml of the developer takes part."""
    monkeypatch.chdir(tmp_path)


def write(path: Path, raw: object) -> Path:
    path.write_text(yaml.safe_dump(raw), encoding="utf-8")
    return path


def test_defaults() -> None:
    assert load_settings({}, environ={}) == Settings()


# Each setting: its key, a value as text of the environment, and what it means.
SETTINGS = [
    ("broker", "kafka:9092,kafka2:9092", "broker", "kafka:9092,kafka2:9092"),
    ("store", "https://ch:8443/smidgen", "store", "https://ch:8443/smidgen"),
    ("broker_security", "SASL_SSL", "broker_security", "sasl_ssl"),
    ("broker_ca", "ca.pem", "broker_ca", Path("ca.pem")),
    ("broker_cert", "me.pem", "broker_cert", Path("me.pem")),
    ("broker_key", "me.key", "broker_key", Path("me.key")),
    ("sasl_mechanism", "PLAIN", "sasl_mechanism", "plain"),
    ("sasl_username", "smidgen", "sasl_username", "smidgen"),
    ("topics", "other.yaml", "topics", Path("other.yaml")),
    ("topic_prefix", "blue.", "topic_prefix", "blue."),
    ("group_prefix", "blue-", "group_prefix", "blue-"),
    ("instance", "worker-0", "instance", "worker-0"),
    ("instance_away", "5m", "instance_away_s", 300.0),
    ("workloads", "live, ct-demand,", "workloads", ("live", "ct-demand")),
    ("stream", "kafka-2", "stream", "kafka-2"),
    ("window", "30s", "window_s", 30.0),
    ("stack_window", "7m", "stack_window_s", 420.0),
    ("batch_size", "7", "batch_size", 7),
    ("batch_bytes", "4MiB", "batch_bytes", 4 * 1024**2),
    ("batch_wait", "250ms", "batch_wait_s", 0.25),
    ("partition_idle", "1h", "partition_idle_s", 3600.0),
    ("gates", "gates.yaml", "gates", Path("gates.yaml")),
    ("names", "names.yaml", "names", Path("names.yaml")),
    ("learn_suspects", "false", "learn_suspects", False),
    ("release_metrics", "metrics.yaml", "release_metrics", Path("metrics.yaml")),
    ("source_url", "https://git.invalid/{path}", "source_url", "https://git.invalid/{path}"),
    ("quotas", "quotas.yaml", "quotas", Path("quotas.yaml")),
    ("idempotent_producer", "false", "idempotent_producer", False),
    ("dead_letter_limit", "0.9", "dead_letter_limit", 0.9),
    ("dead_letter_min", "7", "dead_letter_min", 7),
    ("dead_letter_after", "1h", "dead_letter_after_s", 3600.0),
    ("drain", "30s", "drain_s", 30.0),
    ("health", "127.0.0.1:8088", "health", "127.0.0.1:8088"),
    ("log_level", "debug", "log_level", "debug"),
    ("log_format", "json", "log_format", "json"),
]


def test_the_table_under_has_every_setting() -> None:
    secret = {name for key in SECRETS for name in (key, key + "_file")}
    assert secret < set(Settings.model_fields)
    assert [field for _, _, field, _ in SETTINGS] == [f for f in Settings.model_fields if f not in secret]


@pytest.mark.parametrize(("key", "text", "field", "value"), SETTINGS, ids=[row[0] for row in SETTINGS])
def test_every_setting_can_come_from_anywhere(
    tmp_path: Path, key: str, text: str, field: str, value: object
) -> None:
    in_file = ["live", "ct-demand"] if key == "workloads" else text
    file = write(tmp_path / "s.yaml", {key: in_file})
    assert getattr(load_settings({}, file=file, environ={}), field) == value
    assert getattr(load_settings({}, environ={PREFIX + key.upper(): text}), field) == value
    assert getattr(load_settings({key: in_file}, environ={}), field) == value
    assert getattr(Settings(), field) != value, "the test would not see a value that is ignored"


@pytest.mark.parametrize(
    ("in_file", "in_environment", "flag", "expected"),
    [
        pytest.param(None, None, None, 500, id="default"),
        pytest.param(1, None, None, 1, id="file over default"),
        pytest.param(1, "2", None, 2, id="environment over file"),
        pytest.param(1, "2", 3, 3, id="flag over environment"),
        pytest.param(1, None, 3, 3, id="flag over file"),
        pytest.param(1, "", None, 1, id="an empty variable is not given"),
    ],
)
def test_precedence(
    tmp_path: Path, in_file: int | None, in_environment: str | None, flag: int | None, expected: int
) -> None:
    file = write(tmp_path / "s.yaml", {} if in_file is None else {"batch_size": in_file})
    environ = {} if in_environment is None else {"SMIDGEN_BATCH_SIZE": in_environment}
    settings = load_settings({"batch_size": flag}, file=file, environ=environ)
    assert settings.batch_size == expected


def test_a_switch_that_is_off_is_a_given_flag() -> None:
    assert not load_settings({"idempotent_producer": False}, environ={}).idempotent_producer


def test_a_repeatable_flag_that_was_not_given_changes_nothing() -> None:
    assert load_settings({"workloads": ()}, environ={"SMIDGEN_WORKLOADS": "live"}).workloads == ("live",)


def test_smidgen_yaml_is_read_from_the_working_directory(tmp_path: Path) -> None:
    write(tmp_path / "smidgen.yaml", {"batch_size": 9})
    assert load_settings({}, environ={}).batch_size == 9


def test_the_environment_can_name_the_file_and_a_flag_another(tmp_path: Path) -> None:
    write(tmp_path / "smidgen.yaml", {"batch_size": 9})
    named = write(tmp_path / "a.yaml", {"batch_size": 1})
    flagged = write(tmp_path / "b.yaml", {"batch_size": 2})
    environ = {"SMIDGEN_CONFIG": str(named)}
    assert load_settings({}, environ=environ).batch_size == 1
    assert load_settings({}, file=flagged, environ=environ).batch_size == 2


def test_a_named_file_has_to_be_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"gone\.yaml: No such file"):
        load_settings({}, file=tmp_path / "gone.yaml", environ={})


def test_an_empty_file_sets_nothing(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("# nothing\n")
    assert load_settings({}, file=tmp_path / "s.yaml", environ={}) == Settings()


WRONG: list[tuple[str, object, str]] = [
    ("batch_size", 0, "greater than or equal to 1"),
    ("batch_size", "many", "should be a whole number"),
    ("window", "1 minute", "should be a duration"),
    ("window", "0s", "greater than 0"),
    ("log_level", "loud", "'debug', 'info', 'warning' or 'error'"),
    ("idempotent_producer", "perhaps", "valid boolean"),
]


@pytest.mark.parametrize(("key", "value", "message"), WRONG)
def test_a_wrong_value_is_named_by_source_and_key(
    tmp_path: Path, key: str, value: object, message: str
) -> None:
    file = write(tmp_path / "s.yaml", {key: value})
    with pytest.raises(ConfigError) as caught:
        load_settings({}, file=file, environ={})
    assert str(caught.value).startswith(f"{file}: {key}: ")
    assert message in str(caught.value)

    variable = f"SMIDGEN_{key.upper()}"
    with pytest.raises(ConfigError) as caught:
        load_settings({}, environ={variable: str(value)})
    assert str(caught.value).startswith(f"environment {variable}: {key}: ")

    with pytest.raises(ConfigError) as caught:
        load_settings({key: value}, environ={})
    assert str(caught.value).startswith(f"command line: {key}: ")


@pytest.mark.parametrize("key", ["brokr", "window_s", "config"])
def test_an_unknown_key_lists_the_known_ones(tmp_path: Path, key: str) -> None:
    file = write(tmp_path / "s.yaml", {key: 1})
    with pytest.raises(ConfigError) as caught:
        load_settings({}, file=file, environ={})
    assert str(caught.value).startswith(
        f"{file}: {key}: unknown key; known keys are batch_bytes, batch_size, "
    )


@pytest.mark.parametrize("raw", [[1], "text", 5], ids=["list", "text", "number"])
def test_a_settings_file_is_a_mapping(tmp_path: Path, raw: object) -> None:
    with pytest.raises(ConfigError, match="should be a mapping of settings"):
        load_settings({}, file=write(tmp_path / "s.yaml", raw), environ={})


@pytest.mark.parametrize("raw", [{"workloads": []}, {"broker": ""}, {"store": ""}], ids=lambda raw: str(raw))
def test_nothing_to_work_with_is_refused(tmp_path: Path, raw: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(raw))):
        load_settings({}, file=write(tmp_path / "s.yaml", raw), environ={})


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("http://user:secret@host:8123/db", "http://user:***@host:8123/db"),
        ("http://:secret@host", "http://:***@host"),
        ("http://user:sec@ret@host", "http://user:***@host"),
        ("http://user:sec/ret,x@host", "http://user:***@host"),
        ("tried https://a:secret@h1 and kafka://b:secret@h2", "tried https://a:***@h1 and kafka://b:***@h2"),
        ("http://host/db?password=secret&secure=1", "http://host/db?password=***&secure=1"),
        ("http://host/db?x=1&access_token=secret", "http://host/db?x=1&access_token=***"),
        ("http://host:8123/db", "http://host:8123/db"),
        ("localhost:9092", "localhost:9092"),
        ("user@host:secret", "user@host:secret"),
    ],
)
def test_passwords_are_hidden(text: str, shown: str) -> None:
    assert redact(text) == shown


def test_settings_do_not_show_the_password_of_the_store() -> None:
    settings = load_settings({}, environ={"SMIDGEN_STORE": "http://user:hunter2@host"})
    assert settings.store == "http://user:hunter2@host"
    assert "hunter2" not in f"{settings!r} {settings}"


def test_a_message_about_a_wrong_store_does_not_hold_it(tmp_path: Path) -> None:
    file = write(tmp_path / "s.yaml", {"store": {"dsn": "http://user:hunter2@host"}})
    with pytest.raises(ConfigError) as caught:
        load_settings({}, file=file, environ={})
    assert "hunter2" not in str(caught.value)
