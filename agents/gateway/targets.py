"""The file of services whose profiles and metrics are fetched."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, Self
from urllib.parse import urlencode, urlsplit

from pydantic import BeforeValidator, Field, model_validator

from pipeline.files.validation import StrictModel, read_yaml, validate
from pipeline.files.values import service_name
from pipeline.model.errors import ConfigError
from pipeline.model.units import parse_duration_s

Collected = Literal["profile", "metrics"]

DEFAULT_PATHS: Mapping[Collected, str] = {"profile": "/debug/pprof/profile", "metrics": "/metrics"}
MAX_TARGETS = 10_000

_Seconds = Annotated[float, BeforeValidator(parse_duration_s)]


class _Target(StrictModel):
    service: str
    address: str = Field(min_length=1, max_length=1000)
    host: str = ""
    collect: Collected = "profile"
    path: str = Field(default="", pattern=r"^(/[^\s?#]*)?$")
    seconds: int = Field(default=10, ge=1, le=300)
    interval: _Seconds = Field(default=60.0, ge=1, le=86_400)
    labels: dict[str, str] = {}

    @model_validator(mode="after")
    def _fits(self) -> Self:
        service_name(self.service)
        if self.collect == "profile" and self.interval < self.seconds:
            raise ValueError("interval: should be at least seconds")
        url = urlsplit(self.address if "://" in self.address else f"http://{self.address}")
        if url.scheme not in ("http", "https") or not url.hostname or url.path not in ("", "/") or url.query:
            raise ValueError("address: should be HOST:PORT or http(s)://HOST:PORT")
        try:
            _ = url.port
        except ValueError as error:
            raise ValueError(f"address: {error}") from None
        return self


class _File(StrictModel):
    targets: tuple[_Target, ...] = Field(max_length=MAX_TARGETS)


@dataclass(frozen=True, slots=True)
class ScrapeTarget:
    """A service's process whose profile or metrics are fetched every ``interval_s`` seconds."""

    name: str
    url: str
    labels: tuple[tuple[str, str], ...]  # service and host among them
    seconds: int = 10  # seconds that the service samples
    interval_s: float = 60.0
    collects: Collected = "profile"


def load_targets(path: Path) -> tuple[ScrapeTarget, ...]:
    """Read the file.

    Raises:
        ConfigError: the file and the key that is wrong.
    """
    file = validate(_File, read_yaml(path), str(path))
    targets = tuple(_target(entry) for entry in file.targets)
    for name, count in Counter(target.name for target in targets).items():
        if count > 1:
            raise ConfigError(f"{path}: targets: {name}: stands twice")
    return targets


def _target(entry: _Target) -> ScrapeTarget:
    address = entry.address if "://" in entry.address else f"http://{entry.address}"
    host = entry.host or urlsplit(address).netloc.rpartition("@")[2]  # without user and password
    labels = {**entry.labels, "service": entry.service, "host": host}
    path = entry.path or DEFAULT_PATHS[entry.collect]
    sampled = f"?{urlencode({'seconds': entry.seconds})}" if entry.collect == "profile" else ""
    return ScrapeTarget(
        name=f"{entry.service} at {address.rstrip('/')}{path}",
        url=f"{address.rstrip('/')}{path}{sampled}",
        labels=tuple(labels.items()),
        seconds=entry.seconds if entry.collect == "profile" else 0,
        interval_s=entry.interval,
        collects=entry.collect,
    )
