"""The gateway's file: clients and their tokens, names of labels, rates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from agents.gateway.access import EVERYBODY, Client
from agents.gateway.base import DecodeSetup
from agents.gateway.intake import IntakeRules
from agents.gateway.labels import DEFAULT_NAMES, LabelNames
from agents.gateway.quota import Rates
from agents.webhooks.mapping import MIN_SECRET
from pipeline.files.validation import StrictModel, read_yaml, validate
from pipeline.model.errors import ConfigError, file_errors
from pipeline.model.units import parse_size_bytes

Meaning = Literal["service", "host", "release", "endpoint", "region"]
LabelName = Annotated[str, Field(min_length=1, max_length=1024)]


class _Rates(StrictModel):
    samples_per_s: float = Field(default=0, ge=0, le=1e12)
    bytes_per_s: Annotated[int, BeforeValidator(parse_size_bytes)] = Field(default=0, ge=0)


class _Client(_Rates):
    secret_file: Path
    services: tuple[str, ...] = Field(default=("*",), min_length=1)


class _File(StrictModel):
    clients: dict[Annotated[str, Field(pattern=r"^[\w.-]{1,100}$")], _Client] = {}
    labels: dict[Meaning, Annotated[tuple[LabelName, ...], Field(min_length=1)]] = {}
    keep: tuple[LabelName, ...] = ()
    default: _Rates = _Rates()
    services: dict[str, _Rates] = {}


def load_rules(path: Path | None, token: str | None, *, max_message_bytes: int) -> IntakeRules:
    """Read clients, rates and names of labels.

    Args:
        path: The file; None has its defaults.
        token: Token of all senders, in a gateway without clients of its own; None asks for none.
        max_message_bytes: Most bytes of a message's value.

    Raises:
        ConfigError: the file and the key that is wrong; never a secret.
    """
    file = validate(_File, read_yaml(path), str(path)) if path else _File()
    spellings: dict[str, tuple[str, ...]] = dict(file.labels.items())
    names = LabelNames({**DEFAULT_NAMES, **spellings}, file.keep)
    clients = [
        Client(name, _secret(client.secret_file, f"{path}: clients.{name}"), client.services, _rates(client))
        for name, client in file.clients.items()
    ]
    if not clients or token:
        clients.append(Client(EVERYBODY, token))
    _check_tokens(clients, path)
    return IntakeRules(
        setup=replace(DecodeSetup(), names=names, max_message_bytes=max_message_bytes),
        clients=tuple(clients),
        default=_rates(file.default),
        services=_rates_by_service(file.services),
    )


def _check_tokens(clients: Sequence[Client], path: Path | None) -> None:
    """Refuse a token that two clients share, since it would not identify the sender."""
    names: dict[str | None, str] = {}
    for client in clients:
        if before := names.get(client.token):
            key = "http_token_file" if client.name == EVERYBODY else f"clients.{client.name}"
            raise ConfigError(f"{path}: clients.{before} has the same token as {key}")
        names[client.token] = client.name


def _rates(rates: _Rates) -> Rates:
    return Rates(rates.samples_per_s, float(rates.bytes_per_s))


def _rates_by_service(services: Mapping[str, _Rates]) -> Mapping[str, Rates]:
    return {name: _rates(rates) for name, rates in services.items()}


def _secret(path: Path, where: str) -> str:
    with file_errors(f"{where}.secret_file: {path}"):
        try:
            secret = path.expanduser().read_text(encoding="utf-8").strip()
        except UnicodeDecodeError:
            raise ConfigError(f"{where}.secret_file: {path}: not UTF-8 text") from None
    if len(secret) < MIN_SECRET:
        raise ConfigError(f"{where}.secret_file: {path}: shorter than {MIN_SECRET} characters")
    return secret
