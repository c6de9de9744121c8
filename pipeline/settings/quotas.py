"""The file that says how much each service may send."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pipeline.counting.quota.limits import PartitionQuota, Quota, Quotas
from pipeline.files.validation import StrictModel, read_yaml, validate
from pipeline.model.errors import ConfigError


class _File(StrictModel):
    default: Quota = Quota()
    services: dict[str, dict[str, Any]] = {}
    partition: PartitionQuota = PartitionQuota()


def read_quotas(path: Path) -> Quotas:
    """Read a quotas file; what a service leaves out is as in ``default``.

    Raises:
        ConfigError: it cannot be read, or the key that is wrong.
    """
    raw = read_yaml(path)
    file = validate(_File, {} if raw is None else raw, str(path))
    inherited = file.default.model_dump()
    services = {}
    for service, given in file.services.items():
        if not service:
            raise ConfigError(f"{path}: services: a service's name should not be empty")
        services[service] = validate(Quota, {**inherited, **given}, f"{path}: services.{service[:100]}")
    return Quotas(file.default, services, file.partition)
