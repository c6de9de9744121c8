"""The file of rules: targets with their secrets, owners, and rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field

from pipeline.delivery.alerts.delivery import DeliveryPlan
from pipeline.delivery.alerts.owners import Owners, parse_codeowners, parse_owner_patterns
from pipeline.delivery.alerts.rules import AlertRule
from pipeline.delivery.alerts.schedule import Zone
from pipeline.delivery.alerts.secret import secrets_in, with_secrets
from pipeline.delivery.alerts.targets import KINDS, Target
from pipeline.files.validation import StrictModel, read_yaml, validate
from pipeline.model.errors import ConfigError, file_errors
from pipeline.model.units import DAY_S
from pipeline.settings.config import Seconds


class _CodeOwners(StrictModel):
    """The CODEOWNERS of some services."""

    services: str = "*"
    file: Path


class _File(StrictModel):
    """The whole file; targets are read by their kinds."""

    dashboard_url: str = Field(default="", pattern=r"^(https?://\S+)?$")
    time_zone: Zone = "UTC"
    owners: Path | None = None
    codeowners: tuple[_CodeOwners, ...] = ()
    max_age_s: Seconds = Field(default=7 * DAY_S, alias="max_age", gt=0)
    give_up_s: Seconds = Field(default=DAY_S, alias="give_up", gt=0)
    targets: dict[str, dict[str, Any]] = Field(min_length=1)
    rules: tuple[AlertRule, ...] = Field(min_length=1)


class _OwnersFile(StrictModel):
    """Patterns of subroutines → owners."""

    subroutines: dict[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class AlertRules:
    """Content of a file of rules."""

    plan: DeliveryPlan
    targets: Mapping[str, Target]
    owners: Owners
    dashboard: str
    max_age_s: float  # events with an older event time are not alerted
    give_up_s: float  # after this time no failed message is sent again
    secrets: tuple[str, ...]


def load_rules(path: Path, environ: Mapping[str, str]) -> AlertRules:
    """Read a file of rules, the files that it names, and the secrets of its targets.

    Raises:
        ConfigError: the file and the key that is wrong, or the secret that is missing; never a secret.
    """
    raw = read_yaml(path)
    if isinstance(raw, dict) and isinstance(raw.get("targets"), dict):
        raw |= {"targets": with_secrets(raw["targets"], path.parent, environ, f"{path}: targets")}
    file = validate(_File, raw, str(path))
    targets = {name: _target(name, options, str(path)) for name, options in file.targets.items()}
    for number, rule in enumerate(file.rules):
        for name in (*rule.to, *(rule.unanswered.to if rule.unanswered else ())):
            if name not in targets:
                raise ConfigError(
                    f"{path}: rules.{number}: no target {name!r}; there are {', '.join(sorted(targets))}"
                )
    return AlertRules(
        plan=DeliveryPlan(file.rules, targets, file.time_zone),
        targets=targets,
        owners=_owners(file, path.parent),
        dashboard=file.dashboard_url,
        max_age_s=file.max_age_s,
        give_up_s=file.give_up_s,
        secrets=tuple(secrets_in(file.targets)),
    )


def _target(name: str, options: Mapping[str, Any], path: str) -> Target:
    where = f"{path}: targets.{name}"
    kind = options.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        raise ConfigError(f"{where}: kind: should be one of {', '.join(sorted(KINDS))}")
    return validate(KINDS[kind], options, where)


def _owners(file: _File, folder: Path) -> Owners:
    patterns = None
    if file.owners is not None:
        path = folder / file.owners.expanduser()
        patterns = validate(_OwnersFile, read_yaml(path), str(path)).subroutines
    return Owners(
        parse_owner_patterns(patterns or {}),
        tuple(
            (code_owners.services, parse_codeowners(_read(folder / code_owners.file.expanduser())))
            for code_owners in file.codeowners
        ),
    )


def _read(path: Path) -> str:
    with file_errors(path):
        return path.read_text(encoding="utf-8", errors="replace")
