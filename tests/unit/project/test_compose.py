"""docker-compose.yml against the Compose specification and against the code that it starts.

No container engine takes part; the schema comes from the installed package check-jsonschema.
"""

from __future__ import annotations

import json
import re
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

import clickhouse_connect
import jsonschema
import pytest
import yaml

from pipeline.cli import COMMANDS
from pipeline.model.errors import ConfigError
from pipeline.settings.config import PREFIX, load_settings
from pipeline.stages.factory import STAGES
from pipeline.storage.connect import open_client
from pipeline.worker.health import health_address
from pipeline.worker.service import CLOSE_S
from tests.support.cases import for_every
from tests.support.command_lines import trouble
from tests.support.paths import ROOT

COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OWN = {name: service for name, service in SERVICES.items() if "build" in service}
TAG = r"[a-z0-9./-]+:\d+\.\d+\.\d+(\.\d+)?(-[a-z0-9.-]+)?"
PINNED = re.compile(rf"^{TAG}@sha256:[0-9a-f]{{64}}$")


PROFILES = ("alerts", "dashboard")
"""What needs a file of rules, or a proxy that logs people in, before it is started."""

WORKERS = (*STAGES, *PROFILES)
PROBE = ["python", "-m", "pipeline.http.probe", "ready"]


def schema() -> dict[str, Any]:
    package = metadata.distribution("check-jsonschema")
    file = Path(str(package.locate_file("check_jsonschema/builtin_schemas/vendor/compose-spec.json")))
    loaded: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return loaded


def violations(compose: dict[str, Any]) -> list[str]:
    validator = jsonschema.Draft7Validator(schema())
    return [error.json_path for error in validator.iter_errors(compose)]


def test_the_file_follows_the_compose_specification() -> None:
    assert violations(COMPOSE) == []


@pytest.mark.parametrize(
    "mistake",
    [
        pytest.param({"comand": ["worker"]}, id="misspelt key"),
        pytest.param({"depends_on": {"kafka": {"condition": "healthy"}}}, id="unknown condition"),
        pytest.param({"healthcheck": {"test": 5}}, id="wrong type"),
    ],
)
def test_the_schema_sees_mistakes(mistake: dict[str, Any]) -> None:
    broken = {**COMPOSE, "services": {**SERVICES, "kafka": {**SERVICES["kafka"], **mistake}}}
    assert violations(broken)


@pytest.mark.parametrize("kept", ["", "AbCdEf"], ids=["an empty volume", "a volume in use"])
def test_kafka_gets_a_cluster_id_of_its_own_and_keeps_it(tmp_path: Path, kept: str) -> None:
    """The image gives every cluster one and the same id."""
    if kept:
        (tmp_path / "meta.properties").write_text(f"version=1\ncluster.id={kept}\nnode.id=1\n")
    for name, line in (("random-uuid", "printf fresh-$1"), ("run", "printf $CLUSTER_ID")):
        (tmp_path / name).write_text(f"#!/bin/bash\n{line}\n")
        (tmp_path / name).chmod(0o755)
    shell, option, script = SERVICES["kafka"]["command"]
    paths = {
        "/var/lib/kafka/data": str(tmp_path),
        "/opt/kafka/bin/kafka-storage.sh": str(tmp_path / "random-uuid"),
        "/etc/kafka/docker/run": str(tmp_path / "run"),
        "$$": "$",
    }
    for there, here in paths.items():
        assert there in script
        script = script.replace(there, here)
    done = subprocess.run([shell, option, script], capture_output=True, text=True, check=True)
    assert done.stdout == (kept or "fresh-random-uuid")


def test_every_stage_has_one_container_of_its_own() -> None:
    commands = [service["command"] for name, service in OWN.items() if name != "init"]
    rules = ["--rules", "/etc/smidgen/alerts/alerts.yaml"]
    dashboard = commands.pop()
    assert commands == [*(["worker", stage] for stage in STAGES), ["alerts", "run", *rules]]
    assert dashboard[:2] == ["dashboard", "--host=0.0.0.0"]
    assert trouble([re.sub(r"\$\{\w+:-(.*)\}", r"\1", word) for word in dashboard]) == ""
    assert [name for name in OWN if name != "init"] == list(WORKERS)
    assert [name for name in OWN if "profiles" in OWN[name]] == [*PROFILES]


@for_every("name", SERVICES)
def test_images_are_pinned(name: str) -> None:
    image = SERVICES[name]["image"]
    assert re.fullmatch(TAG, image) if name in OWN else PINNED.match(image)


def test_images_of_the_dockerfile_are_pinned() -> None:
    lines = (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines()
    images = [line.split()[1] for line in lines if line.startswith("FROM")]
    assert len(images) == 2
    assert len(set(images)) == 1
    assert all(PINNED.match(image) for image in images)


@for_every("name", SERVICES)
def test_a_container_has_limits_and_its_log_does_not_fill_the_disk(name: str) -> None:
    limits = SERVICES[name]["deploy"]["resources"]["limits"]
    assert set(limits) == {"cpus", "memory", "pids"}
    assert float(limits["cpus"]) > 0
    assert re.fullmatch(r"\d+G", limits["memory"])
    logging = SERVICES[name]["logging"]
    assert logging["driver"] == "json-file"  # whatever the engine's default is
    assert re.fullmatch(r"\d+m", logging["options"]["max-size"])
    assert int(logging["options"]["max-file"]) > 1


@for_every("name", OWN)
def test_own_containers_write_nothing_and_have_no_rights(name: str) -> None:
    service = OWN[name]
    assert service["read_only"] is True
    assert service["tmpfs"] == ["/tmp"]
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]


@for_every("name", OWN)
def test_the_environment_is_one_that_settings_read(name: str) -> None:
    environment = environment_of(name)
    known = {PREFIX + key.upper() for key in _settings_keys()}
    assert set(environment) <= known
    settings = load_settings({}, environ=environment)
    assert settings.broker == "kafka:9092"
    assert settings.store == "http://smidgen:smidgen@clickhouse:8123/smidgen"
    assert settings.idempotent_producer


def test_the_store_has_the_user_and_database_of_the_dsn() -> None:
    environment = SERVICES["clickhouse"]["environment"]
    user, password = environment["CLICKHOUSE_USER"], environment["CLICKHOUSE_PASSWORD"]
    own = OWN["init"]["environment"]
    assert own["SMIDGEN_STORE"] == f"http://{user}@clickhouse:8123/{environment['CLICKHOUSE_DB']}"
    assert own["SMIDGEN_STORE_PASSWORD"] == password


@pytest.mark.parametrize(
    "password",
    ["pass:word@home", "50%25/#?&=+", "a b", "quote'\"\\", "[::1]", "$HOME", "pässwörd✓", "@", "%"],
)
def test_a_password_may_hold_any_character(password: str, monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, Any] = {}

    def connect(**arguments: Any) -> None:
        given.update(arguments)
        raise ConnectionError

    monkeypatch.setattr(clickhouse_connect, "get_client", connect)
    settings = load_settings({}, environ=environment_of("detect", CLICKHOUSE_PASSWORD=password))
    with pytest.raises(ConfigError):
        open_client(settings.store)
    assert (given["username"], given["password"]) == ("smidgen", password)
    assert (given["host"], given["port"]) == ("clickhouse", 8123)


def test_stages_start_after_topics_and_tables_and_those_after_healthy_engines() -> None:
    assert OWN["init"]["depends_on"] == {
        "kafka": {"condition": "service_healthy"},
        "clickhouse": {"condition": "service_healthy"},
    }
    for stage in WORKERS:
        assert OWN[stage]["depends_on"] == {"init": {"condition": "service_completed_successfully"}}


@for_every("name", [name for name in SERVICES if name != "init"])
def test_what_keeps_running_has_a_healthcheck_and_comes_back(name: str) -> None:
    assert SERVICES[name]["healthcheck"]["test"][0] == "CMD"
    assert SERVICES[name]["restart"] == "unless-stopped"


def test_data_outlives_containers() -> None:
    volumes = [volume for service in SERVICES.values() for volume in service.get("volumes", [])]
    mounted = {volume.split(":")[0] for volume in volumes if not volume.startswith("./")}
    assert [volume for volume in volumes if volume.startswith("./")] == ["./alerts:/etc/smidgen/alerts:ro"]
    assert mounted == set(COMPOSE["volumes"]) == {"kafka-data", "clickhouse-data"}


def test_ports_are_open_on_this_machine_only() -> None:
    ports = [port for service in SERVICES.values() for port in service.get("ports", [])]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_containers_run_commands_that_exist() -> None:
    used = {OWN[stage]["command"][0] for stage in WORKERS}
    used |= set(re.findall(r"smidgen (\w+)", OWN["init"]["entrypoint"][-1]))
    assert used == {"worker", *PROFILES, "topics", "store"}
    assert used <= set(COMMANDS)


def test_a_stage_is_healthy_if_its_own_endpoint_says_so() -> None:
    for stage in WORKERS:
        where = OWN[stage]["environment"]["SMIDGEN_HEALTH"]
        assert health_address(where, None) == (
            "127.0.0.1",
            8088 if stage == "dashboard" else 9464,
        ), "no other container can ask it"
        assert OWN[stage]["healthcheck"]["test"] == ["CMD", *PROBE]


def test_a_container_has_longer_to_stop_than_a_worker_takes() -> None:
    drain_s = load_settings({}, environ={}).drain_s
    for stage in STAGES:
        assert float(OWN[stage]["stop_grace_period"].removesuffix("s")) > drain_s + 4 * CLOSE_S


def test_the_image_does_not_run_as_root_has_git_and_checks_hashes_and_its_endpoint() -> None:
    dockerfile = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    final = dockerfile.rsplit("FROM ", 1)[1]
    user = re.search(r"^USER (\d+):(\d+)$", final, re.MULTILINE)
    assert user
    assert min(int(number) for number in user.groups()) >= 10_000
    assert f"--uid {user[1]} --gid {user[2]}" in final
    assert "--constraints requirements.lock" in dockerfile
    assert "'.[server]'" in dockerfile
    assert re.search(r"apt-get install --yes --no-install-recommends git\b", final)
    endpoint = re.search(r"SMIDGEN_HEALTH=(\S+)", final)
    assert endpoint
    assert health_address(endpoint[1], None) == ("127.0.0.1", 9464)
    assert f"CMD {json.dumps(PROBE)}" in final


def test_the_build_context_has_what_the_dockerfile_copies() -> None:
    kept = {
        line[1:]
        for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
        if line[:1] == "!"
    }
    copied = set()
    for line in (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines():
        if line.startswith("COPY ") and "--from" not in line:
            copied.update(line.split()[1:-1])
    assert copied == kept
    assert all((ROOT / name).exists() for name in copied)


def _settings_keys() -> set[str]:
    return {field.alias or name for name, field in type(load_settings({}, environ={})).model_fields.items()}


def environment_of(name: str, **given: str) -> dict[str, str]:
    """Apply ``${NAME:-default}`` as Compose does, once, to the environment of a service."""
    return {
        key: re.sub(r"\$\{(\w+):-([^}]*)\}", lambda found: given.get(found[1]) or found[2], value)
        for key, value in OWN[name]["environment"].items()
    }
