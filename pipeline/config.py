"""Settings from file, environment and flags, in that order of rising precedence.

This is the only module that reads the environment.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from pipeline.errors import ConfigError
from pipeline.topics import DEFAULT_PATH as DEFAULT_TOPICS
from pipeline.units import parse_duration_s
from pipeline.validation import StrictModel, read_yaml, validate

DEFAULT_FILE = Path("smidgen.yaml")
PREFIX = "SMIDGEN_"

Seconds = Annotated[float, BeforeValidator(parse_duration_s)]
_URL_PASSWORD = re.compile(r"(://[^:/@\s]*:)\S*(@)")  # greedy: a password may itself hold an @
_QUERY_PASSWORD = re.compile(r"([?&](?:password|access_token)=)[^&\s]*", re.IGNORECASE)


class Settings(StrictModel):
    """Everything that can be configured; each field is also SMIDGEN_<FIELD> and a flag where it applies."""

    broker: str = Field(
        default="localhost:9092",
        min_length=1,
        description="Kafka bootstrap servers: host:port, comma-separated",
    )
    store: str = Field(
        default="http://localhost:8123",
        min_length=1,
        repr=False,  # may hold a password
        description="ClickHouse DSN: http(s)://… or chdb:///path",
    )
    topics: Path = Field(default=DEFAULT_TOPICS, description="topics file")
    workloads: tuple[str, ...] = Field(
        default=("frontfaas-large", "frontfaas-small"),
        min_length=1,
        description="workload presets or files",
    )
    stream: str = Field(
        default="",
        description="name of the log; the cluster id by default",
    )
    window_s: Seconds = Field(default=60.0, alias="window", gt=0, description="width of a gCPU window")
    stack_window_s: Seconds = Field(
        default=300.0, alias="stack_window", gt=0, description="width of a stack window"
    )
    batch_size: int = Field(default=500, ge=1, description="most messages in one batch")
    batch_wait_s: Seconds = Field(
        default=1.0, alias="batch_wait", gt=0, description="longest wait for a full batch"
    )
    partition_idle_s: Seconds = Field(
        default=300.0,
        alias="partition_idle",
        gt=0,
        description="after this silence a partition no longer holds scans back",
    )
    gates: Path | None = Field(
        default=None, description="file that maps gates to the subroutines they switch (smidgen gates)"
    )
    idempotent_producer: bool = Field(default=True, description="off for brokers without InitProducerId")
    log_level: Literal["debug", "info", "warning", "error"] = "info"


def load_settings(
    flags: Mapping[str, Any], *, file: Path | None = None, environ: Mapping[str, str] | None = None
) -> Settings:
    """Merge the settings file, the environment and the flags that were given.

    A flag that is None or () and a variable that is empty count as not given; SMIDGEN_WORKLOADS is
    separated by commas. Without ``file``, ``smidgen.yaml`` in the working directory is read if it is there.

    Raises:
        ConfigError: the source and key that is wrong.
    """
    environ = os.environ if environ is None else environ
    merged: dict[str, Any] = {}
    origin: dict[str, str] = {}
    named = Path(environ[PREFIX + "CONFIG"]) if file is None and environ.get(PREFIX + "CONFIG") else file
    path = named or DEFAULT_FILE
    if named or path.exists():
        raw = read_yaml(path) or {}
        if not isinstance(raw, dict):
            raise ConfigError(f"{path}: should be a mapping of settings")
        merged.update(raw)
        origin.update(dict.fromkeys(raw, str(path)))
    for key in _keys():
        name = PREFIX + key.upper()
        if environ.get(name):
            merged[key] = _split(environ[name]) if key == "workloads" else environ[name]
            origin[key] = f"environment {name}"
    for key, value in flags.items():
        if value is not None and value != ():
            merged[key] = value
            origin[key] = "command line"
    for key, value in merged.items():  # one at a time, so that the message names the source
        if key in _keys():
            validate(Settings, {key: value}, origin[key])
    return validate(Settings, merged, str(path))


def redact(text: str) -> str:
    """Hide the password of every URL in a text that a person may see."""
    return _QUERY_PASSWORD.sub(r"\1***", _URL_PASSWORD.sub(r"\1***\2", text))


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _keys() -> tuple[str, ...]:
    return tuple(field.alias or name for name, field in Settings.model_fields.items())
