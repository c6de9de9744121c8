"""The mapping file: YAML, gate → the subroutines that it switches, spelt as in stack frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

from pipeline.files.validation import read_yaml
from pipeline.model.errors import ConfigError


def read_gates(path: Path) -> dict[str, tuple[str, ...]]:
    """Read a mapping file; an empty one maps nothing.

    Raises:
        ConfigError: it cannot be read, or the gate whose value is not a list of names.
    """
    raw = read_yaml(path)
    if raw is None:
        return {}
    if not isinstance(raw, dict):
        raise ConfigError(f"{path}: should map gates to lists of subroutines")
    found = {}
    for gate, names in raw.items():
        if not isinstance(gate, str) or not gate:
            raise ConfigError(f"{path}: {str(gate)[:100]!r}: a gate's name should be a text")
        if not isinstance(names, list) or not all(isinstance(name, str) and name for name in names):
            raise ConfigError(f"{path}: {gate[:100]}: should be a list of subroutines")
        found[gate] = tuple(names)
    return found


def write_gates(gates: Mapping[str, Sequence[str]]) -> str:
    """Return a mapping file's text; the inverse of ``read_gates``."""
    return yaml.safe_dump(
        {gate: list(names) for gate, names in gates.items()}, allow_unicode=True, width=1000
    )
