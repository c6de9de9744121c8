"""The rules of a fleet: one text for all hosts, known by its version."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from pipeline.model.errors import ConfigError, file_errors

MAX_RULES_BYTES = 1024**2


@dataclass(frozen=True, slots=True)
class HostRules:
    """The unchanged text of a rules file."""

    content: bytes

    @property
    def version(self) -> str:
        """The version: a hash of the text."""
        return hashlib.sha256(self.content).hexdigest()[:32]

    @property
    def etag(self) -> str:
        """The version as HTTP spells it."""
        return f'"{self.version}"'


def read_fleet_rules(path: Path) -> HostRules:
    """Read a file of rules without parsing it.

    Raises:
        ConfigError: it cannot be read, or is larger than MAX_RULES_BYTES.
    """
    with file_errors(path), path.open("rb") as file:
        content = file.read(MAX_RULES_BYTES + 1)
    if len(content) > MAX_RULES_BYTES:
        raise ConfigError(f"{path}: larger than {MAX_RULES_BYTES // 1024**2} MiB")
    return HostRules(content)
