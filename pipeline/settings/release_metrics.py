"""The file that says by which metrics releases are compared."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field

from pipeline.files.validation import StrictModel, read_yaml, validate
from pipeline.model.errors import ConfigError
from pipeline.releases.requests.metric_rules import CPU_AND_IO, MetricRule, ReleaseMetrics

_Rules = Annotated[tuple[MetricRule, ...], Field(min_length=1)]


class _File(StrictModel):
    default: _Rules = CPU_AND_IO
    services: dict[str, _Rules] = {}


def read_release_metrics(path: Path) -> ReleaseMetrics:
    """Read the file; rules of a service stand instead of those in ``default``.

    Raises:
        ConfigError: it cannot be read, or the key that is wrong.
    """
    raw = read_yaml(path)
    file = validate(_File, {} if raw is None else raw, str(path))
    if "" in file.services:
        raise ConfigError(f"{path}: services: a service's name should not be empty")
    return ReleaseMetrics(file.default, file.services)
