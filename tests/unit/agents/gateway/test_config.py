"""The gateway's file, and what the command refuses before it listens."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from agents.gateway.access import EVERYBODY
from agents.gateway.config import load_rules
from agents.gateway.labels import DEFAULT_NAMES
from agents.gateway.quota import Budget, Rates
from pipeline.cli import smidgen
from pipeline.model.errors import ConfigError


def rules(folder: Path, text: str) -> Path:
    file = folder / "gateway.yaml"
    file.write_text(text, encoding="utf-8")
    (folder / "team").write_text("correct horse\n", encoding="utf-8")
    return file


def test_the_file(tmp_path: Path) -> None:
    file = rules(
        tmp_path,
        f"clients:\n  team: {{secret_file: {tmp_path}/team, services: ['shop*'], bytes_per_s: 1MiB}}\n"
        "labels: {host: [node_name]}\nkeep: [zone]\n"
        "default: {samples_per_s: 100}\nservices: {shop: {samples_per_s: 0}}\n",
    )
    found = load_rules(file, None, max_message_bytes=1000)
    (client,) = found.clients
    assert (client.name, client.token, client.rates) == ("team", "correct horse", Rates(0, 1024**2))
    assert client.may_send("shop.web")
    assert not client.may_send("till")
    assert found.setup.names.names == {**DEFAULT_NAMES, "host": ("node_name",)}
    assert found.setup.names.keep == ("zone",)
    assert (found.rates_of("till").samples_per_s, found.rates_of("shop").samples_per_s) == (100, 0)


def test_without_a_file_everybody_may_send_who_has_the_token() -> None:
    (client,) = load_rules(None, "correct horse", max_message_bytes=1000).clients
    assert (client.name, client.token) == (EVERYBODY, "correct horse")


TEAM = "clients:\n  team: {secret_file: TEAM}\n"


@pytest.mark.parametrize(
    ("text", "token", "what"),
    [
        pytest.param("client: {}", None, "did you mean clients", id="misspelt"),
        pytest.param("clients: {a: {}}", None, "secret_file", id="no secret"),
        pytest.param("clients: {a: {secret_file: /nowhere}}", None, "No such file", id="no file"),
        pytest.param("labels: {team: [a]}", None, "team", id="no such meaning"),
        pytest.param("default: {samples_per_s: -1}", None, "samples_per_s", id="negative"),
        pytest.param(
            f"{TEAM}  other: {{secret_file: TEAM}}",
            None,
            "clients.team has the same token as clients.other",
            id="a token of two clients",
        ),
        pytest.param(TEAM, "correct horse", "clients.team has the same token as", id="everybody's token"),
    ],
)
def test_a_wrong_file_is_refused_in_one_line(tmp_path: Path, text: str, token: str | None, what: str) -> None:
    file = rules(tmp_path, text.replace("TEAM", f"{tmp_path}/team"))
    with pytest.raises(ConfigError, match=what) as refused:
        load_rules(file, token, max_message_bytes=1000)
    assert not any(secret in str(refused.value) for secret in ("\n", "correct horse"))
    if token is None:
        done = CliRunner().invoke(smidgen, ["gateway", "--listen", "127.0.0.1:0", "--rules", str(file)])
        assert isinstance(done.exception, ConfigError)


def test_other_machines_need_a_token() -> None:
    done = CliRunner().invoke(smidgen, ["gateway", "--listen", "0.0.0.0:0"])
    assert isinstance(done.exception, ConfigError)
    assert "set http_token_file" in str(done.exception)


def test_a_budget_is_overdrawn_once_and_paid_back() -> None:
    budget = Budget(burst_s=60)
    budget.spend("shop", 1000, 10, now=0)  # 100 s of the rate
    assert budget.wait_s("shop", now=0) == 40
    assert budget.wait_s("shop", now=40) == 0
    assert budget.wait_s("till", now=0) == 0
    budget.spend("till", 1e9, 0, now=0)
    assert budget.wait_s("till", now=0) == 0


def test_a_budget_forgets_who_was_quiet_longest() -> None:
    budget = Budget(burst_s=0, remembered=2)
    for name in ("a", "b", "c"):
        budget.spend(name, 10, 1, now=0)
    assert [budget.wait_s(name, now=0) for name in "abc"] == [0, 10, 10]
